import pytest
from hypothesis import given, settings, strategies as st

from pyserini_repbert.models.tokenizer import WordPieceTokenizer
from pyserini_repbert.systems.duobert.inputs import TripleInputs
from pyserini_repbert.systems.monobert.inputs import (
    PairInputs,
    PairLayout,
)

CLS = 2
SEP = 3
LENGTHS = st.integers(0, 700)


@pytest.fixture(scope='module')
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp('vocabulary') / 'vocab.txt'
    path.write_text(
        '\n'.join(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *map(chr, range(97, 123))]) + '\n'
    )
    return WordPieceTokenizer.from_vocabulary(path)


def parts(sequence):
    """Lengths of what stands between the special tokens."""
    lengths = []
    count = 0
    for token in sequence.input_ids[1:]:
        if token == SEP:
            lengths.append(count)
            count = 0
        else:
            count += 1
    return lengths


@pytest.mark.parametrize(
    ('layout', 'query', 'text', 'expected'),
    [
        ('paper', 3, 5, [3, 5]),
        ('paper', 64, 445, [64, 445]),
        ('paper', 64, 446, [64, 445]),  # 512 in all
        ('paper', 100, 600, [64, 445]),
        ('dl4marco', 64, 600, [62, 446]),  # 511 in all
        ('dl4marco', 4, 600, [4, 504]),
        ('pygaggle', 300, 400, [255, 254]),
        ('pygaggle', 400, 300, [255, 254]),
        ('pygaggle', 10, 600, [10, 499]),
        ('pygaggle', 600, 10, [499, 10]),
        ('pygaggle_fast_tokenizer', 300, 400, [254, 255]),
        ('pygaggle_fast_tokenizer', 3, 0, [3]),
        ('pygaggle', 3, 0, [3, 0]),
        ('paper', 0, 0, [0, 0]),
    ],
)
def test_pairs_are_cut_as_the_layout_says(layout, query, text, expected, tokenizer):
    built = PairInputs(tokenizer, layout).build([7] * query, [8] * text)
    assert parts(built.sequence) == expected
    assert built.truncated == (len(expected) == 2 and expected[1] < text)
    boundary = built.sequence.input_ids.index(SEP) + 1
    length = len(built.sequence.input_ids)
    assert built.sequence.token_type_ids == [0] * boundary + [1] * (length - boundary)


@settings(max_examples=60, deadline=None)
@given(query=LENGTHS, text=LENGTHS)
def test_the_fast_layout_is_that_of_the_tokenizers_library(query, text, tokenizer):
    from tokenizers import Tokenizer, processors

    theirs = Tokenizer.from_str(tokenizer.backend.to_str())
    theirs.post_processor = processors.BertProcessing(('[SEP]', SEP), ('[CLS]', CLS))
    theirs.enable_truncation(512, strategy='longest_first')
    encoding = theirs.encode('a ' * query, 'b ' * text)
    built = (
        PairInputs(tokenizer, PairLayout.PYGAGGLE_FAST)
        .build(*tokenizer.ids(['a ' * query, 'b ' * text]))
        .sequence
    )
    assert parts(built)[:1] == [encoding.ids.index(SEP) - 1]
    if text:  # Hugging Face's wrapper, not this library, drops the [SEP] of an empty second text
        assert built.input_ids == encoding.ids
        assert built.token_type_ids == encoding.type_ids


@pytest.mark.parametrize(
    ('layout', 'query', 'expected'),
    [
        ('paper', 62, [62, 223, 223]),
        ('paper', 4, [4, 223, 223]),
        ('paper', 90, [62, 223, 223]),
        ('code', 62, [62, 222, 222]),
        ('code', 4, [4, 251, 251]),
    ],
)
def test_triples_are_cut_as_the_layout_says(layout, query, expected, tokenizer):
    built = TripleInputs(tokenizer, layout).build([7] * query, [8] * 400, [9] * 400)
    assert parts(built.sequence) == expected
    assert built.truncated
    types = [kind for kind, length in enumerate(expected) for _ in range(length + 1 + (kind == 0))]
    assert built.sequence.token_type_ids == types
    assert not TripleInputs(tokenizer, layout).build([7], [8] * 200, []).truncated
    assert TripleInputs(tokenizer, layout).build([7], [], [8] * 400).truncated
