"""The API reference holds each public name, and README and docs name no file that is not there."""

import importlib
import importlib.util
import pkgutil
import re

import pytest
from doc_runner import ROOT

import pyserini_repbert

_LINK = re.compile(r'\]\((?!https?://|#|mailto:)([^)#\s]+)')
_FILE = re.compile(r'`((?:regressions|benchmarks|tools|tests|docs)/[\w./-]+\.\w+)`')


def _load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / 'tools' / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _packages():
    found = pkgutil.walk_packages(
        pyserini_repbert.__path__, 'pyserini_repbert.', onerror=lambda name: None
    )
    return ['pyserini_repbert', *(module.name for module in found if module.ispkg)]


def test_each_public_name_is_in_the_reference():
    reference = _load('docs_reference')
    static = reference.public_names()
    with_names = {}
    for package in _packages():
        names = getattr(importlib.import_module(package), '__all__', [])
        if names:
            with_names[package] = sorted(names)
    assert static == with_names
    assert 'RepBertSearcher' in static['pyserini_repbert.search']
    for package, names in with_names.items():
        entries = re.findall(r'^::: (.+)$', reference.page(package, static[package]), re.MULTILINE)
        assert entries == [f'{package}.{name}' for name in names]


def test_each_public_name_has_a_docstring():
    pytest.importorskip('griffe', reason='the docs extra is not installed')
    assert _load('docs_reference').undocumented() == []


def test_docstrings_as_numpydoc():
    pytest.importorskip('griffe', reason='the docs extra is not installed')
    given = (
        'First.\n\nParameters\n----------\na, b : two things\n    that go on\n\nBelow,\nand '
        'on.\n\nReturns\n-------\n'
        'docids, best first\n\nRaises\n------\nInputError\n    for nothing'
    )
    assert _load('docs_docstrings').as_numpydoc(given) == (
        'First.\n\nBelow,\nand on.\n\nParameters\n----------\na, b\n    two things\n    that go '
        'on\n\n'
        '\nReturns\n-------\n:\n    docids, best first\n\nRaises\n------\nInputError\n    for '
        'nothing'
    )


@pytest.mark.parametrize(
    'path', [ROOT / 'README.md', *sorted((ROOT / 'docs').rglob('*.md'))], ids=lambda p: p.name
)
def test_named_files_exist(path):
    text = path.read_text(encoding='utf-8')
    missing = [
        name
        for name in _LINK.findall(text)
        if not (path.parent / name).exists() and 'reference/' not in name
    ]
    missing += [name for name in _FILE.findall(text) if not (ROOT / name).exists()]
    assert not missing


def test_reference_pages_that_are_linked_exist():
    pages = {f'reference/{package}.md' for package in _load('docs_reference').public_names()}
    for path in sorted((ROOT / 'docs').rglob('*.md')):
        for name in _LINK.findall(path.read_text(encoding='utf-8')):
            if 'reference/' in name:
                assert name.removeprefix('../') in pages, path
