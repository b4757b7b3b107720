"""The pages on file formats name every key there is."""

import dataclasses
import re

import pytest
from doc_runner import ROOT

from pyserini_repbert.collection import generation_manifest as collection
from pyserini_repbert.collection.settings import CollectionSettings
from pyserini_repbert.collection.shards import PassageShardRecord as CollectionShard
from pyserini_repbert.extension import representations
from pyserini_repbert.index.records import (
    DenseSettings,
    Manifest,
    Overlap,
    ShardRecord,
    TermWeightsSettings,
)
from pyserini_repbert.record import Input, Model, Record

_COLLECTION = (
    collection.GenerationManifest,
    collection.ShardOfGeneration,
    CollectionSettings,
    CollectionShard,
)


@pytest.mark.parametrize(
    ('page', 'kinds', 'not_in_files'),
    [
        ('dense', (Manifest, DenseSettings, ShardRecord, Overlap), {'kind'}),
        ('collection', _COLLECTION, {'further'}),
        ('epic', (TermWeightsSettings,), set()),
        ('records', (Record, Model, Input), set()),
    ],
)
def test_every_key_is_described(page, kinds, not_in_files):
    text = (ROOT / 'docs' / 'formats' / f'{page}.md').read_text(encoding='utf-8')
    named = {word for code in re.findall(r'`([^`\n]+)`', text) for word in re.split(r'\W+', code)}
    keys = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    assert keys - not_in_files - named == set()


def test_the_settings_of_further_models_are_described():
    text = (ROOT / 'docs' / 'formats' / 'collection.md').read_text(encoding='utf-8')
    settings = [kind.setting for kind in representations()]
    assert settings
    assert [name for name in settings if f'`{name}`' not in text] == []


def test_environment_variables_are_described():
    text = (ROOT / 'docs' / 'environment.md').read_text(encoding='utf-8')
    found = set()
    for path in (ROOT / 'pyserini_repbert').rglob('*.py'):
        found |= set(re.findall(r'\bPYSERINI_REPBERT_[A-Z_]+', path.read_text(encoding='utf-8')))
    assert found
    assert {name for name in found if f'`{name}`' not in text} == set()
