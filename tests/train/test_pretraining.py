"""Target corpus pre-training: what is hidden, what follows what, and that the result is a base."""

import json

import pytest

from pyserini_repbert.tasks.recipe import Source
from pyserini_repbert.train.checkpoints import new_task, open_base
from pyserini_repbert.train.pretraining import CorpusSource, TextPair
from pyserini_repbert.train.training import train


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / 'sentences.jsonl'
    with open(path, 'w', encoding='utf-8') as stream:
        for number in range(40):
            text = (
                f'the cat sat on mat number{number} . a dog ran . the fish ate' if number else 'cat'
            )
            stream.write(json.dumps({'id': f's{number}', 'contents': text}) + '\n')
    return str(path)


def test_pairs_are_halves_of_a_passage_or_of_two(corpus):
    pairs = list(CorpusSource(Source(corpus=corpus), 'data.0').instances(0, 0))
    # A single word makes no pair.
    assert len(pairs) == 39
    assert 8 < sum(pair.follows for pair in pairs) < 31
    whole = {f'the cat sat on mat number{n} . a dog ran . the fish ate' for n in range(40)}
    assert all(f'{pair.first} {pair.second}' in whole for pair in pairs if pair.follows)
    assert pairs == list(CorpusSource(Source(corpus=corpus), 'data.0').instances(0, 0))
    assert pairs != list(CorpusSource(Source(corpus=corpus), 'data.0').instances(0, 1))


@pytest.fixture
def task(tiny_recipe, corpus):
    recipe = tiny_recipe('mlm', ranking={'max_length': 24}, data=[{'corpus': corpus}])
    return new_task(recipe, open_base(recipe.base), [])


FIRST = 'the cat sat on the mat'
SECOND = 'a big dog ran in the sun'


@pytest.fixture
def original(task):
    """The wordpieces of [CLS] FIRST [SEP] SECOND [SEP]: 13 words and three special tokens."""
    first, second = task.tokenizer.ids([FIRST, SECOND])
    sep = task.tokenizer.sep
    return [task.tokenizer.cls, *first, sep, *second, sep]


@pytest.mark.parametrize('seed', range(5))
def test_hidden_words_are_remembered(task, original, seed):
    """15% of 13 words are two; [CLS] and [SEP] are never hidden, and the others stay."""
    batch = task.collate([TextPair(FIRST, SECOND, True, seed)])
    positions = batch['positions'].tolist()
    assert len(positions) == 2
    assert batch['words'].tolist() == [original[position] for position in positions]
    special = {task.tokenizer.cls, task.tokenizer.sep}
    assert not special.intersection(batch['words'].tolist())
    restored = batch['input_ids'][0].tolist()
    for position in positions:
        restored[position] = original[position]
    assert restored == original


def test_most_hidden_words_become_masks(task):
    """80% of 100."""
    n_masks = 0
    for seed in range(50):
        ids = task.collate([TextPair(FIRST, SECOND, True, seed)])['input_ids'][0]
        n_masks += ids.tolist().count(task.mask)
    assert 65 <= n_masks <= 95


def test_a_second_text_that_does_not_follow_has_class_one(task):
    batch = task.collate([TextPair(FIRST, SECOND, True, 1), TextPair(FIRST, SECOND, False, 1)])
    assert batch['follows'].tolist() == [0, 1]


def test_long_texts_are_cut(task):
    batch = task.collate([TextPair('cat ' * 50, 'dog ' * 50, False, 1)])
    assert batch['input_ids'].shape == (1, 24)


def test_a_cross_encoder_starts_from_a_pre_trained_base(tiny_recipe, corpus, tmp_path):
    training = {
        'steps': 60,
        'batch_size': 8,
        'learning_rate': 3e-3,
        'log_every': 10,
        'save_every': 60,
    }
    recipe = tiny_recipe(
        'mlm', ranking={'max_length': 32}, data=[{'corpus': corpus}], training=training
    )
    train(recipe, tmp_path / 'tcp', device='cpu')
    rows = (tmp_path / 'tcp/log.csv').read_text(encoding='utf-8').splitlines()
    first_loss = float(rows[1].split(',')[1])
    last_loss = float(rows[6].split(',')[1])
    assert last_loss < 0.8 * first_loss
    assert 'ranking' not in json.loads((tmp_path / 'tcp/config.json').read_text(encoding='utf-8'))
    ranking = {'max_query_length': 8, 'max_length': 48}
    mono = tiny_recipe('monobert', base=str(tmp_path / 'tcp'), ranking=ranking)
    assert train(mono, tmp_path / 'mono', device='cpu').steps == 6
