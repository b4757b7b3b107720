"""The checkpoints that ship with the package: small, described, and in working order."""

import csv
import json
import re

import numpy as np
import pytest

from pyserini_repbert import catalog
from pyserini_repbert.checksums import CHECKSUMS, verify_checksums
from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.train.recipe_files import read_recipe

LARGEST = 40_000_000  # bytes, all together
FOLDER = catalog.RESOURCES / 'checkpoints'
SHIPPED = [
    (kind, name)
    for kind in ('encoders', 'rerankers')
    for name, entry in catalog.entries(kind).items()
    if 'resource' in entry.values
]
QUESTION = 'who got the first nobel prize in physics'
TEXTS = (
    'The first Nobel Prize in Physics was awarded in 1901 to Wilhelm Conrad Röntgen, of Germany.',
    'Lithium is produced from brine, which is pumped into ponds and left to the sun.',
    '',
)


def test_they_are_small_and_all_in_the_catalog():
    files = [path for path in FOLDER.rglob('*') if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= LARGEST
    assert {path.relative_to(FOLDER).parts[0] for path in files} == {name for _, name in SHIPPED}


@pytest.mark.parametrize(('kind', 'name'), SHIPPED)
def test_what_the_catalog_says_is_what_the_folder_holds(kind, name):
    entry = catalog.get(kind, name)
    opened = open_checkpoint(name, kind)
    assert entry.values['resource'] == f'checkpoints/{name}'
    assert opened.config['ranking'] == entry.values['ranking']
    assert entry.values['sha256'].keys() == {'adapter_model.safetensors'}
    assert entry.values['licence'].startswith('Apache-2.0')
    assert entry.values.get('dimension') == (
        opened.config['hidden_size'] if kind == 'encoders' else None
    )
    assert opened.base.name == catalog.base(entry).name


@pytest.mark.parametrize(('kind', 'name'), SHIPPED)
def test_card_recipe_and_log_say_how_it_was_made(kind, name):
    entry = catalog.get(kind, name)
    folder = catalog.resource(entry)
    texts = {
        path.name: path.read_text(encoding='utf-8')
        for path in folder.iterdir()
        if path.suffix != '.safetensors'
    }
    covered = [line.split('  ')[1] for line in texts[CHECKSUMS].splitlines()]
    assert covered == ['adapter_config.json', 'adapter_model.safetensors', 'config.json']
    assert verify_checksums(folder, covered) == 3
    base = entry.values['base']
    assert f'\nbase_model: {base}\n' in texts['README.md'] and f'# {name}\n' in texts['README.md']
    assert json.loads(texts['adapter_config.json'])['base_model_name_or_path'] == base
    for text in texts.values():
        assert not re.search(r'(?<![^\s\'"=\[(,:])/\w', text), 'a path of the machine that trained'
    recipe = read_recipe(
        folder / 'recipe.yaml',
        tuple(f'variables.{key}=/x' for key in ('MATERIAL', 'MEDQUAD', 'RUNS', 'START', 'VANILLA')),
    )
    assert (recipe.name, recipe.base) == (name, base)
    assert not recipe.allow_test_topics and any('liveqa' in topics for topics in recipe.test_topics)
    rows = list(csv.DictReader(texts['log.csv'].splitlines()))
    assert np.isfinite([float(row['loss']) for row in rows if row['loss']]).all()
    assert any(row['eval_measure'] for row in rows)


@pytest.mark.parametrize(('kind', 'name'), SHIPPED)
def test_it_puts_an_answer_above_another_text(kind, name):
    if kind == 'encoders':
        scores = RepBertDocumentEncoder(name).encode(TEXTS) @ RepBertQueryEncoder(name).encode(
            QUESTION
        )
        assert np.isfinite(scores).all() and scores.argmax() == 0
        return
    candidates = [Candidate(str(number), 0.0, text) for number, text in enumerate(TEXTS)]
    assert open_reranker(name).rerank(QUESTION, candidates)[0].docid == '0'
