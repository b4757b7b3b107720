"""The API reference holds each public name; README and docs name and link no file that is not
there.
"""

import importlib
import importlib.util
import os
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
    assert 'DenseSearcher' in static['pyserini_repbert.search']
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


PAGES = [
    path
    for folder in ('.', 'examples', 'benchmarks', 'regressions', 'pyserini_repbert', 'docs')
    for path in sorted((ROOT / folder).glob('*.md' if folder == '.' else '**/*.md'))
]


@pytest.mark.parametrize('path', PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_files_exist(path):
    """A link leads to a file of the repository, not to a page that only the site has."""
    text = path.read_text(encoding='utf-8')
    missing = [name for name in _LINK.findall(text) if not (path.parent / name).exists()]
    if path.name != 'CHANGELOG.md':
        missing += [name for name in _FILE.findall(text) if not (ROOT / name).exists()]
    assert not missing


def test_links_out_of_docs_lead_to_files_of_the_site():
    reference = _load('docs_reference')
    site = {f'reference/{package}.md' for package in reference.public_names()}
    site |= {f'examples/{path.name}' for path in (ROOT / 'examples').glob('*.ipynb')}
    docs = ROOT / 'docs'
    for path in sorted(docs.rglob('*.md')):
        page = path.relative_to(docs).as_posix()
        links = _LINK.findall(reference.site_links(path.read_text(encoding='utf-8'), page))
        targets = [os.path.relpath(path.parent / link, docs) for link in links]
        assert [link for link in targets if not (docs / link).exists() and link not in site] == []
        assert [link for link in targets if link.startswith('..')] == []


def test_links_of_a_page_on_the_site():
    site_links = _load('docs_reference').site_links
    text = '[a](../../pyserini_repbert/fusion/__init__.py) [b](../../examples/epic.ipynb) [c](x.md)'
    expected = '[a](../reference/pyserini_repbert.fusion.md) [b](../examples/epic.ipynb) [c](x.md)'
    assert site_links(text, 'guides/epic.md') == expected
    assert site_links('[b](../examples/epic.ipynb)', 'index.md') == '[b](examples/epic.ipynb)'


def test_each_notebook_is_linked():
    readme = (ROOT / 'README.md').read_text(encoding='utf-8')
    guides = [path.read_text(encoding='utf-8') for path in (ROOT / 'docs').rglob('*.md')]
    for path in sorted((ROOT / 'examples').glob('*.ipynb')):
        assert f'](examples/{path.name})' in readme
        assert sum(f'/examples/{path.name})' in text for text in guides) >= 2, path.name
