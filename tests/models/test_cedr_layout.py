from dataclasses import astuple
from types import SimpleNamespace

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.systems.cedr.layout import (
    CedrLayout,
    Pair,
)
from pyserini_repbert.systems.cedr.settings import (
    Architecture,
    CedrSettings,
)

CLS = 101
SEP = 102
PAD = 0


def layout(positions=512, **settings):
    config = BertConfig(max_position_embeddings=positions)
    tokenizer = SimpleNamespace(cls=CLS, sep=SEP, pad=PAD)
    return CedrLayout(config, CedrSettings(**settings), tokenizer)


def test_document_positions_begin_behind_the_padded_query():
    batch = layout().collate([Pair([7, 8], [11, 12, 13])])
    assert batch.input_ids.tolist() == [[CLS, 7, 8, SEP, 11, 12, 13, SEP]]
    assert batch.position_ids.tolist() == [[0, 1, 2, 21, 22, 23, 24, 25]]
    assert batch.token_type_ids.tolist() == [[0, 0, 0, 0, 1, 1, 1, 1]]
    assert batch.attention_mask is None
    assert batch.query_mask.tolist() == [[True, True]]
    assert batch.query_index.tolist() == [[1, 2]]
    assert batch.document_index.tolist() == [[4, 5, 6]]


def test_a_long_document_is_split_evenly_and_its_last_part_keeps_the_place_of_its_separator():
    small = layout(positions=14, max_query_length=4)  # room for 14 - 4 - 3 = 7 document tokens
    pair = Pair([7], list(range(20, 35)))  # 15 tokens: 3 parts of 5
    assert small.n_parts(pair) == 3
    batch = small.collate([pair])
    assert batch.input_ids[:, 3:].tolist() == [
        [*range(start, start + 5), SEP] for start in (20, 25, 30)
    ]
    uneven = small.collate([Pair([7], list(range(20, 28)))])  # 8 tokens: 4 and 4
    assert uneven.attention_mask is None
    pair = Pair([7], list(range(20, 33)))  # 13 tokens: 7 and 6
    assert small.cost(pair) == 2 * (1 + 3 + 7)
    batch = small.collate([pair])
    assert batch.input_ids[1].tolist() == [CLS, 7, SEP, *range(27, 33), SEP, PAD]
    assert batch.position_ids[:, -2:].tolist() == [[12, 13], [13, 0]]
    assert batch.attention_mask.tolist() == [[True] * 11, [True] * 10 + [False]]
    assert batch.part_weights.tolist() == [[0.5, 0.5]]
    assert batch.input_ids.flatten()[batch.document_index].tolist() == [pair.document]


def test_settings_are_those_of_the_released_code_by_default():
    expected = (Architecture.PACRR, True, 2, 20, 800, True, False)
    assert astuple(CedrSettings.from_ranking({'architecture': 'pacrr'})) == expected


def test_settings_from_a_ranking_object():
    ranking = {'system': 'cedr', 'architecture': 'pacrr', 'joint': False, 'k_max': 30, 'other': 1}
    settings = CedrSettings.from_ranking(ranking)
    assert settings == CedrSettings(Architecture.PACRR, joint=False, k_max=30)
    assert settings.max_doc_length == 800
    assert CedrSettings.from_ranking(settings.ranking()) == settings
