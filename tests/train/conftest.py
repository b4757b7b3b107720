"""A tiny world to train in: passages, topics, judgments, a run, and recipes over tiny
checkpoints.
"""

import gc
import itertools
import json

import pytest
import yaml

from pyserini_repbert.train.reading import read_recipe

ANIMALS = ('cat', 'dog', 'fish', 'bird')
PLACES = ('mat', 'hat', 'sea', 'sky', 'tree', 'moon')


@pytest.fixture(scope='module', autouse=True)
def _nothing_older_is_garbage():
    """At its start, the Trainer looks through all there is for garbage: 0.4 seconds, after all
    the other tests.
    """
    gc.freeze()


@pytest.fixture
def world(tmp_path):
    """24 passages ('the cat sat on the mat'), a topic for each ('cat mat'), and for each a run
    of six hits.
    """
    pairs = list(itertools.product(ANIMALS, PLACES))
    with open(tmp_path / 'corpus.jsonl', 'w', encoding='utf-8') as stream:
        for number, (animal, place) in enumerate(pairs):
            text = (
                f'the {animal} sat on the {place} , a {"big" if number % 2 else "small"} {animal} .'
            )
            stream.write(json.dumps({'id': f'd{number}', 'contents': text}) + '\n')
    topics = ''.join(
        f'q{number}\t{animal} {place} ?\n' for number, (animal, place) in enumerate(pairs)
    )
    (tmp_path / 'topics.tsv').write_text(topics, encoding='utf-8')
    (tmp_path / 'qrels.txt').write_text(
        ''.join(f'q{n} 0 d{n} 1\n' for n in range(24)), encoding='utf-8'
    )
    hits = (
        f'q{n} Q0 d{(n + 5 * rank) % 24} {rank + 1} {9 - rank} t\n'
        for n in range(24)
        for rank in range(6)
    )
    (tmp_path / 'run.txt').write_text(''.join(hits), encoding='utf-8')
    triples = ''.join(f'q{n}\td{n}\td{(n + 7) % 24}\n' for n in range(24))
    (tmp_path / 'triples.tsv').write_text(triples, encoding='utf-8')
    names = {
        'corpus': 'corpus.jsonl',
        'topics': 'topics.tsv',
        'qrels': 'qrels.txt',
        'run': 'run.txt',
    }
    return {key: str(tmp_path / name) for key, name in (names | {'triples': 'triples.tsv'}).items()}


@pytest.fixture
def recipe_file(tmp_path, world, tiny_checkpoint):
    """make(system, ranking={}, training={}, data=None, **keys) -> a recipe over a tiny base with
    dropout, 6 steps.
    """

    def make(system, ranking=None, training=None, data=None, **keys):
        base = tmp_path / 'base'
        if not base.is_dir():
            tiny_checkpoint('base')
        source = {key: world[key] for key in ('topics', 'qrels', 'corpus', 'run')}
        content = {
            'name': f'tiny-{system}',
            'system': system,
            'base': str(base),
            'licence': 'not stated',
            'ranking': ranking or {},
            'data': data or [source],
            'training': {
                'steps': 6,
                'batch_size': 4,
                'learning_rate': 1e-3,
                'log_every': 1,
                'save_every': 2,
            }
            | (training or {}),
            **keys,
        }
        path = tmp_path / f'{system}.yaml'
        path.write_text(yaml.safe_dump(content), encoding='utf-8')
        return path

    return make


@pytest.fixture
def tiny_recipe(recipe_file):
    """`recipe_file`, read."""

    def make(system, **keys):
        return read_recipe(recipe_file(system, **keys))

    return make
