"""MkDocs hook for the reference of the API.

It makes a page for each package with public names, warns of each name without a docstring, and
leads links of pages to files outside docs/.

A page links what is in the repository: a package's `__init__.py`, which the site replaces by the
reference page, or a notebook, which the site has a copy of.

The names are those that a package's `__init__.py` imports for type checkers (`from … import X as
X`); `tests/docs/test_reference.py` compares them with its `__all__`. A warning fails a strict
build.
"""

from __future__ import annotations

import ast
import logging
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = 'pyserini_repbert'
FOLDER = 'reference'
EXAMPLES = 'examples'
_OUTSIDE = re.compile(rf'(?<=\]\()(?:\.\./)+({PACKAGE}|{EXAMPLES})/([\w/-]+)\.(py|ipynb)(?=\))')
log = logging.getLogger('mkdocs.hooks.docs_reference')


def public_names(root: Path = ROOT) -> dict[str, list[str]]:
    """{package: its public names, sorted}, for the packages that have any."""
    names_of = {}
    for path in sorted((root / PACKAGE).rglob('__init__.py')):
        names = _names_for_type_checkers(path)
        if names:
            package = '.'.join(path.parent.relative_to(root).parts)
            names_of[package] = sorted(names)
    return names_of


def _names_for_type_checkers(path: Path) -> list[str]:
    """The names that a module imports as themselves below an `if`."""
    names = []
    for block in ast.parse(path.read_text(encoding='utf-8')).body:
        if isinstance(block, ast.If):
            for node in block.body:
                if isinstance(node, ast.ImportFrom):
                    names += [alias.asname for alias in node.names if alias.asname]
    return names


def page(package: str, names: list[str]) -> str:
    """The Markdown of a package's reference page; mkdocstrings fills it in."""
    path = ROOT / Path(*package.split('.')) / '__init__.py'
    docstring = ast.get_docstring(ast.parse(path.read_text('utf-8')))
    parts = [f'# {package}', docstring or '', *(f'::: {package}.{name}' for name in names)]
    return '\n\n'.join(parts) + '\n'


def on_config(config: Any) -> Any:
    """Add the pages to the navigation."""
    pages = [{package: f'{FOLDER}/{package}.md'} for package in public_names()]
    config.nav = [*config.nav, {'API reference': pages}]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to the site, and warn of public names without docstrings."""
    from mkdocs.structure.files import File

    for package, names in public_names().items():
        files.append(File.generated(config, f'{FOLDER}/{package}.md', content=page(package, names)))
    for path in sorted((ROOT / EXAMPLES).glob('*.ipynb')):
        name = f'{EXAMPLES}/{path.name}'
        files.append(File.generated(config, name, abs_src_path=str(path)))
    for name in undocumented():
        log.warning('%s has no docstring', name)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead the links of a page to files outside docs/ to the files of the site."""
    return site_links(markdown, page.file.src_uri)


def site_links(markdown: str, page: str) -> str:
    """The Markdown of a page, such as 'guides/hybrid.md', with links to files of the site."""
    up = '../' * page.count('/')

    def on_site(link: re.Match[str]) -> str:
        folder, name, suffix = link.groups()
        if suffix == 'ipynb':
            return f'{up}{folder}/{name}.{suffix}'
        package = '.'.join((folder, *name.split('/'))).removesuffix('.__init__')
        return f'{up}{FOLDER}/{package}.md'

    return _OUTSIDE.sub(on_site, markdown)


def undocumented() -> list[str]:
    """The public names and methods that have no docstring, as dotted paths.

    A method without one has the docstring of the method that it overrides.
    """
    import griffe

    loader = griffe.GriffeLoader(search_paths=[ROOT])
    top = loader.load(PACKAGE, try_relative_path=False)
    loader.resolve_aliases(implicit=True)
    without = []
    for package, names in public_names().items():
        module = top if package == PACKAGE else top[package.removeprefix(f'{PACKAGE}.')]
        for name in names:
            documented = module[name]
            if not documented.has_docstring:
                without.append(f'{package}.{name}')
            if documented.is_class:
                methods = _undocumented_methods(documented)
                without += [f'{package}.{name}.{method}' for method in methods]
    return without


def _undocumented_methods(documented: Any) -> list[str]:
    """The public methods of a class that have no docstring there or in a base."""
    classes = [documented.members, *(base.members for base in documented.mro())]
    names = []
    for name, method in documented.functions.items():
        if not method.is_public or name.endswith('__'):
            continue
        if not any(name in members and members[name].has_docstring for members in classes):
            names.append(name)
    return names
