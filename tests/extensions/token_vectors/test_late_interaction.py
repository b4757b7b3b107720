"""Late interaction: scores equal those of sentence-transformers, whatever the folder says; each
token of the query is shown with the token that it found.
"""

import json
import shutil
import string

import numpy as np
import pytest
import torch
from sentence_folders import TEXTS, write_body, write_json, write_multi_vector

from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.extensions.token_vectors import reranker as reranker_module
from pyserini_repbert.extensions.token_vectors.encoder import (
    MultiVectorTextEncoder,
    TokenVectors,
)
from pyserini_repbert.extensions.token_vectors.folder import (
    is_multi_vector_folder,
    read_multi_vector,
)
from pyserini_repbert.extensions.token_vectors.inputs import open_readers
from pyserini_repbert.extensions.token_vectors.reranker import (
    NO_TOKENS,
    best_matches,
)
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.ranking import Candidate, Excerpt, Query, Ranking
from pyserini_repbert.rerank.base import ExplanationSettings
from pyserini_repbert.systems.encoders import document_encoder, query_encoder, term_weights_encoder
from pyserini_repbert.systems.sentence_transformers.folder import Unsupported
from pyserini_repbert.systems.sentence_transformers.tokenizing import open_tokenizer

pytest.importorskip('sentence_transformers')

QUERIES = ['the cat sat', 'old dogs?', '', 'a red sea and an old dog on the sea ' * 3]
EXPANSION = {'strategy': 'fixed', 'length': 12, 'attend': False}


FOLDERS = {
    'plain': {},
    'colbert': {
        'query_expansion': EXPANSION,
        'document_length': 20,
        'dense': [(16, 8, False)],
        'skiplist': list(string.punctuation),
        'prompts': {'query': '[Q] ', 'document': '[D] '},
    },
    'attended': {'query_expansion': {**EXPANSION, 'attend': True}, 'dense': [(16, 8, True)]},
    'at least': {
        'query_expansion': {**EXPANSION, 'strategy': 'min', 'token': '[UNK]'},
        'query_length': 16,
        'document_length': 9,
    },
    'at least, without a limit': {'query_expansion': {**EXPANSION, 'strategy': 'min'}},
    'skips in queries': {
        'skiplist': ['the', 'cat', 'not a token'],
        'skiplist_tasks': ['query', 'document'],
        'query_length': 7,
    },
    'two layers, mean': {
        'dense': [(16, 24, True), (24, 8, False)],
        'similarity': 'meanmaxsim',
        'skiplist': ['[CLS]', '[SEP]'],
        'query_expansion': EXPANSION,
    },
    'not normalized': {'normalize': False, 'dense': [(16, 8, False)]},
    'roberta': {'kind': 'roberta', 'query_expansion': EXPANSION, 'dense': [(16, 8, False)]},
    'xlm-roberta': {'kind': 'xlm-roberta', 'query_expansion': EXPANSION, 'skiplist': ['.', ',']},
}


def candidates(texts=TEXTS):
    docids = [f'd{number}' for number in range(len(texts))]
    return Ranking(docids, [0.0] * len(docids), list(texts))


def expected_scores(folder, queries, texts):
    """The scores of sentence-transformers, (queries, texts)."""
    from sentence_transformers import MultiVectorEncoder

    model = MultiVectorEncoder(str(folder), device='cpu')
    asked = model.encode_query(queries, batch_size=1)
    passages = model.encode_document(texts, batch_size=1)
    return model.similarity(asked, passages).numpy()


@pytest.mark.parametrize('name', FOLDERS)
def test_scores_equal_those_of_sentence_transformers(name, tmp_path):
    folder = write_multi_vector(tmp_path, **FOLDERS[name])
    reranker = open_reranker(folder)
    assert reranker.engine == 'pyserini_repbert'
    scores = reranker.score_lists(QUERIES, [candidates()] * len(QUERIES))
    expected = expected_scores(folder, QUERIES, TEXTS)
    np.testing.assert_allclose(np.array(scores), expected, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope='module')
def colbert(tmp_path_factory):
    return write_multi_vector(tmp_path_factory.mktemp('colbert'), **FOLDERS['colbert'])


def test_what_the_engine_does_not_know_is_run_by_sentence_transformers(tmp_path):
    folder = write_multi_vector(tmp_path, pooling=2, skiplist=['the'], query_expansion=EXPANSION)
    reranker = open_reranker(folder)
    assert reranker.engine == 'sentence-transformers'
    scores = reranker.score_lists(QUERIES, [candidates()] * len(QUERIES))
    expected = expected_scores(folder, QUERIES, TEXTS)
    np.testing.assert_allclose(np.array(scores), expected, rtol=1e-5, atol=1e-5)
    explained = reranker.explain(QUERIES[0], candidates(), ExplanationSettings())
    assert explained['scores'] == pytest.approx(expected[0].tolist(), abs=1e-5)


def test_best_matches_by_hand():
    query = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    vectors = torch.tensor([[0.5, 0.1], [0.2, 0.9], [-1.0, -2.0]])
    lengths = np.array([2, 0, 1])
    passages = TokenVectors(vectors, lengths, np.array([0, 1, 0]), None)
    matches = best_matches(query, passages)
    assert matches[0].tolist() == pytest.approx([0.5, 0.9])
    assert matches[1].tolist() == [-np.inf, -np.inf]
    assert matches[2].tolist() == pytest.approx([-1.0, -2.0])
    assert passages.select([2, 0]).lengths.tolist() == [1, 2]
    assert passages.select([2, 0]).vectors.tolist() == vectors[[2, 0, 1]].tolist()


def test_a_passage_without_a_token_is_last(tmp_path):
    folder = write_multi_vector(tmp_path, skiplist=['[CLS]', '[SEP]', '.'])
    reranker = open_reranker(folder)
    hits = reranker.rerank('cat', [Candidate('a', text='.'), Candidate('b', text='dog')])
    assert [hit.docid for hit in hits] == ['b', 'a']
    assert hits[1].score == NO_TOKENS == expected_scores(folder, ['cat'], ['.'])[0, 0]


def test_groups_and_shared_passages_change_nothing(colbert, monkeypatch):
    reranker = open_reranker(colbert)
    lists = [candidates(), candidates(TEXTS[:2]), candidates([]), candidates(TEXTS[1:4])]
    done = []
    scores = reranker.score_lists(QUERIES, lists, done.append)
    assert sum(done) == sum(map(len, lists))
    assert reranker.work.inferences == len(set(TEXTS))
    assert reranker.work.candidates == sum(map(len, lists))
    assert reranker.work.truncated == 2
    monkeypatch.setattr(reranker_module, 'GROUP', 3)
    for own, other in zip(reranker.score_lists(QUERIES, lists), scores, strict=True):
        np.testing.assert_allclose(own, other, atol=1e-5)


def test_memory_is_that_of_a_batch(colbert, monkeypatch):
    # Vectors are dropped batch by batch: at no time are those of all passages there.
    alive = []
    reranker = open_reranker(colbert, token_budget=64)
    scored = reranker._scores

    def score(query, passages):
        alive.append(passages)
        return scored(query, passages)

    monkeypatch.setattr(reranker, '_scores', score)
    reranker.score_lists(['cat'], [candidates([f'the cat {"sat " * n}' for n in range(30)])])
    assert max(int(passages.lengths.sum()) for passages in alive) <= 64
    assert len(alive) > 5


def test_settings_of_a_stage(colbert):
    short = open_reranker(colbert, options={'max_length': 5})
    assert short.identity()['max_tokens'] == 5
    assert open_reranker(colbert).identity()['max_tokens'] == 20
    assert short.score_lists(['cat'], [candidates()])[0][3] != pytest.approx(
        open_reranker(colbert).score_lists(['cat'], [candidates()])[0][3]
    )
    with pytest.raises(InputError, match='maximum length 49 was given'):
        open_reranker(colbert, options={'max_length': 49})
    rounded = open_reranker(colbert, precision='bfloat16')
    assert rounded.precision == 'bfloat16'
    np.testing.assert_allclose(
        rounded.score_lists(['cat'], [candidates()])[0],
        open_reranker(colbert).score_lists(['cat'], [candidates()])[0],
        rtol=0.05,
    )


def test_each_token_of_the_query_has_what_it_found(colbert):
    reranker = open_reranker(colbert)
    explained = reranker.explain('the cat', candidates(), ExplanationSettings())
    scores = reranker.score_lists(['the cat'], [candidates()])[0]
    assert explained['scores'] == pytest.approx(scores.tolist(), abs=1e-5)
    assert [table['docid'] for table in explained['tables']] == explained['docids']
    for table, score in zip(explained['tables'], scores, strict=True):
        rows = table['rows']
        assert sum(row['adds'] for row in rows) == pytest.approx(score, abs=1e-4)
        assert sum(row['share'] for row in rows) == pytest.approx(1, abs=0.002)
    (first, *_) = explained['tables']
    tokens = [row['token'] for row in first['rows']]
    # '[Q] the cat' filled up to 12 tokens.
    assert len(tokens) == 12
    assert tokens[0] == '[CLS]'
    assert tokens.index('cat') == tokens.index('the') + 1
    assert set(tokens[tokens.index('[SEP]') + 1 :]) == {'[MASK]'}
    words = '[CLS] [UNK] [UNK] [UNK] the cat sat on the [UNK] . [SEP]'.split()
    for row in first['rows']:
        assert words[row['position']] == row['match'] != '.'


def test_which_folders_are_recognised(colbert, tmp_path):
    assert is_multi_vector_folder(str(colbert))
    assert not is_multi_vector_folder('minilm')
    assert not is_multi_vector_folder(tmp_path)
    for number, (file, content) in enumerate(
        [
            ('config_sentence_transformers.json', {'model_type': 'ColBERT'}),
            ('config.json', {'architectures': ['HF_ColBERT']}),
            ('modules.json', [{'type': 'pylate.models.Dense.Dense'}]),
        ]
    ):
        write_json(tmp_path / str(number) / file, content)
        assert is_multi_vector_folder(tmp_path / str(number))
    write_json(tmp_path / 'x' / 'modules.json', [{'type': 'sentence_transformers.models.Dense'}])
    (tmp_path / 'x' / 'config.json').write_text('[', encoding='utf-8')
    assert not is_multi_vector_folder(tmp_path / 'x')


@pytest.mark.parametrize(
    ('open_encoder', 'expected'),
    [
        (query_encoder, 'an encoder of dense vectors'),
        (document_encoder, 'an encoder of dense vectors'),
        (term_weights_encoder, 'an encoder of term weights'),
    ],
)
def test_it_gives_no_index(open_encoder, expected, colbert):
    with pytest.raises(MismatchError) as caught:
        open_encoder(str(colbert))
    assert str(caught.value) == (
        f"'{colbert}' is a MultiVectorEncoder, which gives a vector for each token, {expected} was "
        'expected: rerank with it, as a stage NAME@100, or give a collection its token vectors'
    )


def test_another_folder_is_none(tmp_path):
    with pytest.raises(InputError, match='is not a MultiVectorEncoder'):
        MultiVectorTextEncoder(write_body(tmp_path / 'body', 'bert'))


def copy_changed(folder, copy, file, change):
    """A copy of a folder, with other values in a JSON file."""
    shutil.copytree(folder, copy)
    values = json.loads((copy / file).read_text('utf-8'))
    write_json(copy / file, values | change)
    return copy


def test_queries_longer_than_the_model_reads(colbert, tmp_path):
    change = {'query_expansion': {**EXPANSION, 'length': 500}}
    folder = copy_changed(colbert, tmp_path / 'long', 'sentence_bert_config.json', change)
    with pytest.raises(InputError, match='up to 500 tokens, its model reads 48: correct'):
        open_reranker(folder)


@pytest.mark.parametrize(
    ('file', 'change'),
    [
        ('sentence_bert_config.json', {'query_length': 0}),
        ('sentence_bert_config.json', {'query_expansion': {'strategy': 'other', 'length': 3}}),
        ('sentence_bert_config.json', {'query_expansion': {**EXPANSION, 'token': 'no token'}}),
        ('2_MultiVectorMask/config.json', {'keep_only_token_ids': [3]}),
        ('2_MultiVectorMask/config.json', {'skiplist_words': 'the'}),
        ('config_sentence_transformers.json', {'query_prefix': '[Q] '}),
    ],
)
def test_what_the_engine_leaves_to_sentence_transformers(file, change, colbert, tmp_path):
    folder = copy_changed(colbert, tmp_path / 'changed', file, change)
    with pytest.raises(Unsupported):
        model = read_multi_vector(folder, 'changed')
        open_readers(model, open_tokenizer(model.network.body))


def test_excerpts_of_documents(colbert):
    reranker = open_reranker(colbert).with_settings(n_excerpts=2)
    excerpts = [Excerpt(number, 0, len(text), text) for number, text in enumerate(TEXTS[:2])]
    document = Candidate('doc', 1.0, TEXTS[0], excerpts=tuple(excerpts))
    run = reranker.rank([Query('1', 'dog')], {'1': Ranking.of([document])})
    single = open_reranker(colbert).score_lists(['dog'], [candidates(TEXTS[:2])])[0]
    assert run['1'].scores[0] == pytest.approx(max(single), abs=1e-5)
