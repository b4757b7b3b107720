"""Every address is at a commit or has a checksum: what a branch gives can change, or go."""

import contextlib
import re
import subprocess
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
# Its commit is a variable.
WITH_A_BRANCH = {'tests/lucene/test_published.py'}


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
    """A file that is not in UTF-8 has no text."""
    listed = subprocess.run(['git', 'ls-files', '-z'], cwd=ROOT, check=True, capture_output=True)
    paths = listed.stdout.decode().split('\0')[:-1]
    assert 'Makefile' in paths
    named = set()
    for path in paths:
        with contextlib.suppress(UnicodeDecodeError):
            if ON_A_BRANCH.search((ROOT / path).read_text(encoding='utf-8')):
                named.add(path)
    assert named == WITH_A_BRANCH
