"""Target corpus pre-training: what is hidden, what follows what, and that the result is a base."""

import json

import pytest

from pyserini_repbert.tasks.recipe import Source
from pyserini_repbert.train.checkpoints import new_task, open_base
from pyserini_repbert.train.pretraining import (
    CorpusSource,
    TextPair,
)
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
    assert len(pairs) == 39  # a single word makes no pair
    assert 8 < sum(pair.follows for pair in pairs) < 31
    whole = {f'the cat sat on mat number{n} . a dog ran . the fish ate' for n in range(40)}
    assert all(f'{pair.first} {pair.second}' in whole for pair in pairs if pair.follows)
    assert pairs == list(CorpusSource(Source(corpus=corpus), 'data.0').instances(0, 0))
    assert pairs != list(CorpusSource(Source(corpus=corpus), 'data.0').instances(0, 1))


def test_hidden_words_are_remembered(tiny_recipe, corpus):
    recipe = tiny_recipe('mlm', ranking={'max_length': 24}, data=[{'corpus': corpus}])
    task = new_task(recipe, open_base(recipe.base), [])
    texts = ('the cat sat on the mat', 'a big dog ran in the sun')
    cls = task.tokenizer.cls
    sep = task.tokenizer.sep
    first, second = task.tokenizer.ids(list(texts))
    original = [cls, *first, sep, *second, sep]
    changed = 0
    for draw in range(50):
        batch = task.collate([TextPair(*texts, True, draw)])
        ids = batch['input_ids'][0].tolist()
        places = batch['places'].tolist()
        assert len(places) == round(0.15 * 13)
        assert batch['words'].tolist() == [original[place] for place in places]
        assert not {cls, sep} & {original[place] for place in places}
        assert [
            i
            for i, (a, b) in enumerate(zip(ids, original, strict=True))
            if a != b and i not in places
        ] == []
        changed += sum(ids[place] == task.mask for place in places)
        assert batch['follows'].tolist() == [0]
    assert 65 <= changed <= 95  # 80% of 100
    assert task.collate([TextPair('cat ' * 50, 'dog ' * 50, False, 1)])['input_ids'].shape == (
        1,
        24,
    )


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
    first, last = (float(row.split(',')[1]) for row in (rows[1], rows[6]))
    assert last < 0.8 * first
    assert 'ranking' not in json.loads((tmp_path / 'tcp/config.json').read_text(encoding='utf-8'))
    ranking = {'max_query_length': 8, 'max_length': 48}
    mono = tiny_recipe('monobert', base=str(tmp_path / 'tcp'), ranking=ranking)
    assert train(mono, tmp_path / 'mono', device='cpu').steps == 6
