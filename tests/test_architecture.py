"""docs/architecture.md names files, classes and functions that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / 'pyserini_repbert'
PAGE = (ROOT / 'docs' / 'architecture.md').read_text()
# Paragraphs, points of lists, and rows of tables.
PARTS = re.split(r'\n\n|\n(?=\||\d\. )', PAGE)


def folders_of(part):
    """Where the files of a part are: it may name their folder, or a file beside them."""
    folders = [PACKAGE, ROOT, *(PACKAGE / 'systems').iterdir()]
    for folder in re.findall(r'`([\w/]+/)', part):
        folders.append(PACKAGE / folder)
    return folders


def found(path, part):
    """The files that a path of a part may be."""
    return [folder / path for folder in folders_of(part) if (folder / path).is_file()]


@pytest.mark.parametrize('part', [part for part in PARTS if '.py`' in part])
def test_files_are_there(part):
    for path in re.findall(r'`([\w./]+\.py)`', part):
        assert 'NAME' in path or found(path, part), path


@pytest.mark.parametrize('part', [part for part in PARTS if re.search(r'` \(`[\w./]+\.py`', part)])
def test_names_are_in_the_files_that_follow_them(part):
    for name, path in re.findall(r'`([\w.]+)` \(`([\w./]+\.py)`', part):
        definition = re.compile(rf'(class|def) {name.rpartition(".")[2]}\b|^{name} =', re.MULTILINE)
        assert any(definition.search(file.read_text()) for file in found(path, part)), name
