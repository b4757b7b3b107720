"""Every address is at a commit or has a checksum: what a branch gives can change, or go."""

import re
from pathlib import Path

import pytest

from pyserini_repbert import catalog
from pyserini_repbert.lucene.published import published_addresses
from pyserini_repbert.regression.regression_files import read_regression

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / 'regressions').glob('*.yaml'))
AT_A_COMMIT = re.compile(r'https://raw\.githubusercontent\.com/[\w-]+/[\w-]+/[0-9a-f]{40}/\S+')
ON_A_BRANCH = re.compile(
    r'(raw\.githubusercontent\.com/[\w-]+/[\w.-]+/(?![0-9a-f]{40}/)'
    r'|github\.com/[\w-]+/[\w.-]+/(raw|blob)/(?![0-9a-f]{40}/))'
)
# Its authors published no checksum. That of the first download is recorded.
WITHOUT_CHECKSUM = ['published.doc2query']
# Their commits are not known here.
WITHOUT_COMMIT = [
    'castorini/monobert-large-msmarco',
    'castorini/monobert-large-msmarco-finetune-only',
]


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
def test_addresses_of_regressions(path):
    known = published_addresses()
    for resource in read_regression(path).resources.values():
        for address in resource.address:
            is_fixed = AT_A_COMMIT.fullmatch(address) or resource.md5
            assert is_fixed or resource.name in WITHOUT_CHECKSUM, address
            if '/castorini/eval/' in address:
                assert address in known


def test_addresses_of_the_catalog():
    for kind in catalog.KINDS:
        for entry in catalog.entries(kind):
            download = catalog.get(kind, entry).values.get('download')
            assert download is None or re.fullmatch('[0-9a-f]{32}', download['md5']), entry


def test_repositories_of_the_hub_have_a_commit():
    for kind in catalog.KINDS:
        for name in catalog.entries(kind):
            hub = catalog.get(kind, name).values.get('hub')
            is_fixed = hub is None or re.fullmatch('[0-9a-f]{40}', hub.get('revision', ''))
            assert is_fixed or hub['repository'] in WITHOUT_COMMIT


def test_no_file_here_names_a_branch():
    found = []
    for folder in ('pyserini_repbert', 'regressions', 'docs', 'examples', 'tools'):
        for path in (ROOT / folder).rglob('*'):
            if path.suffix in ('.py', '.yaml', '.md') and path != Path(__file__):
                text = path.read_text(encoding='utf-8')
                found += [f'{path}: {match[0]}' for match in ON_A_BRANCH.finditer(text)]
    assert found == []
