"""A tiny world to train in: passages, topics, judgments, a run, and recipes over tiny
checkpoints.
"""

import gc
import itertools
import json
from collections import defaultdict

import pytest
import yaml

from pyserini_repbert.train.recipe_files import read_recipe

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
    lines = defaultdict(list)
    for n, (animal, place) in enumerate(itertools.product(ANIMALS, PLACES)):
        size = 'big' if n % 2 else 'small'
        text = f'the {animal} sat on the {place} , a {size} {animal} .'
        lines['corpus.jsonl'].append(json.dumps({'id': f'd{n}', 'contents': text}))
        lines['topics.tsv'].append(f'q{n}\t{animal} {place} ?')
        lines['qrels.txt'].append(f'q{n} 0 d{n} 1')
        for rank in range(6):
            docid = f'd{(n + 5 * rank) % 24}'
            lines['run.txt'].append(f'q{n} Q0 {docid} {rank + 1} {9 - rank} t')
        lines['triples.tsv'].append(f'q{n}\td{n}\td{(n + 7) % 24}')
    files = {}
    for name, of_file in lines.items():
        path = tmp_path / name
        path.write_text('\n'.join(of_file) + '\n', encoding='utf-8')
        files[path.stem] = str(path)
    return files


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
