"""Predicted queries and term weights: formats, alignment with the corpus, and errors that say
where.
"""

import pytest

from pyserini_repbert.errors import InputError
from pyserini_repbert.index.expansions import (
    SAMPLES,
    predicted_queries,
    repeated,
    weighted_texts,
    word_weights,
)


def three():
    return ['a', 'b', 'c']


def written(path, *lines):
    path.write_text(''.join(f'{line}\n' for line in lines), encoding='utf-8')
    return path


def test_one_line_a_passage(tmp_path):
    file = written(tmp_path / 'p.txt', 'what is a / who is a', 'where is b', '')
    assert list(predicted_queries(file, three)) == ['what is a who is a', 'where is b', '']
    assert list(predicted_queries(str(file), three, topk=1)) == ['what is a', 'where is b', '']


def test_several_lines_a_passage_are_counted(tmp_path):
    file = written(tmp_path / 'p.txt', 'a1', 'a2', 'b1', 'b2', 'c1\tc2', 'c3')
    assert list(predicted_queries(file, three)) == ['a1 a2', 'b1 b2', 'c1 c2 c3']
    assert list(predicted_queries(file, three, topk=2)) == ['a1 a2', 'b1 b2', 'c1 c2']


def test_too_few_lines_are_counted(tmp_path):
    file = written(tmp_path / 'p.txt', 'one', 'two')
    with pytest.raises(InputError, match=r'p\.txt have 2 lines for 3 passages'):
        list(predicted_queries(file, three))


def samples(folder, parts, n_samples=2):
    folder.mkdir()
    for part, docids in enumerate(parts):
        for sample in range(n_samples):
            name = f'predicted_queries_topk_sample{sample:03d}.txt{part:03d}-1004000'
            written(folder / name, *(f'{docid}{sample}' for docid in docids))
    return folder


def test_folder_of_samples_is_read_side_by_side(tmp_path):
    folder = samples(tmp_path / 'f', ['ab', 'c'], n_samples=11)
    read = list(predicted_queries(folder, three, topk=3))
    assert read == ['a0 a1 a2', 'b0 b1 b2', 'c0 c1 c2']
    assert next(predicted_queries(folder, three)).endswith(' a10')
    assert SAMPLES == 40


def test_wordpieces_are_joined_with_the_first_weight():
    line = '[CLS] 0.0\tob 0.25\t##lite 0.9\t##rated 0.0\t. -0.5\tob 0.1\t[SEP] -0.0\t[PAD] -0.0'
    assert word_weights(line) == {'obliterated': 0.25, '.': -0.5, 'ob': 0.1}


def test_a_repeated_word_weighs_its_heaviest_occurrence():
    assert word_weights('x 0.1\ty 0.2\tx 0.3\ty -1') == {'x': 0.3, 'y': 0.2}


def test_terms_repeat_by_weight():
    # 100 x 0.026 = 2.6 -> 3; 0.025 -> 2.5 -> 2 (to even); 0.0099 is below 1 before rounding;
    # negative never
    assert repeated({'a': 0.026, 'b': 0.025, 'c': 0.0099, 'd': 0.01, 'e': -0.3}) == 'a a a b b d'
    # 100 sqrt(0.0004) = 2; 100 sqrt(0.0001) = 1; 100 sqrt(0.00009) = 0.95
    assert (
        repeated({'a': 0.0004, 'b': 0.0001, 'c': 0.00009, 'd': -0.2, 'e': 0.0}, sqrt=True)
        == 'a a b'
    )


def test_weights_of_both_formats(tmp_path):
    tsv = written(tmp_path / 'test_results.tsv', 'red 0.02\t##dish 0.5', '', 'blue 0.01')
    assert list(weighted_texts(tsv, three)) == ['reddish reddish', '', 'blue']
    jsonl = written(
        tmp_path / 'w.jsonl',
        '{"id": "a", "contents": "red red"}',
        '{"id": "b", "weights": {"blue": 0.03}}',
        '{"id": "c", "contents": ""}',
    )
    assert list(weighted_texts(jsonl, three)) == ['red red', 'blue blue blue', '']


@pytest.mark.parametrize(
    ('bad', 'why'),
    [
        ('red heavy', 'heavy'),
        ('red nan', 'not a finite number'),
        ('{"id": "x", "contents": ""}', "id 'x', but the corpus has 'b' here"),
        ('{"id": "b"', 'delimiter'),
        ('{"id": "b", "weights": {"cat": NaN}}', "no 'weights', a number for each term"),
        ('{"id": "b", "weights": {"cat": true}}', "no 'weights', a number for each term"),
    ],
)
def test_bad_weights_name_their_line(tmp_path, bad, why):
    file = written(tmp_path / 'w.tsv', 'x 0.1', bad, 'y 0.1')
    with pytest.raises(
        InputError, match=rf"w\.tsv:2: expected 'token weight' pairs or JSON .*{why}"
    ):
        list(weighted_texts(file, three))
