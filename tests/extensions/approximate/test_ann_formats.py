"""The pages on file formats name every key of the record of an approximate index."""

import dataclasses
import re
from pathlib import Path

import pytest

from pyserini_repbert.extensions.approximate.bundles import BundleAnnRecord
from pyserini_repbert.extensions.approximate.covered import CollectionAnnRecord, CoveredShard
from pyserini_repbert.extensions.approximate.index import AnnRecord

FORMATS = Path(__file__).parents[3] / 'docs' / 'formats'


def names(*kinds):
    return {field.name for kind in kinds for field in dataclasses.fields(kind)}


@pytest.mark.parametrize(
    ('page', 'keys'),
    [
        ('dense', names(BundleAnnRecord)),
        # The page on dense bundles has the other keys.
        ('collection', names(CollectionAnnRecord, CoveredShard) - names(AnnRecord)),
    ],
)
def test_every_key_is_described(page, keys):
    text = (FORMATS / f'{page}.md').read_text(encoding='utf-8')
    named = {word for code in re.findall(r'`([^`\n]+)`', text) for word in re.split(r'\W+', code)}
    assert keys - named == set()
