"""MkDocs hook: a reference page for each package with public names, a warning for each name
without a docstring, and links of pages to files outside docs/.

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
    found = {}
    for path in sorted((root / PACKAGE).rglob('__init__.py')):
        tree = ast.parse(path.read_text(encoding='utf-8'))
        guarded = [node for block in tree.body if isinstance(block, ast.If) for node in block.body]
        imports = [node for node in guarded if isinstance(node, ast.ImportFrom)]
        if names := sorted(
            alias.asname for node in imports for alias in node.names if alias.asname
        ):
            found['.'.join(path.parent.relative_to(root).parts)] = names
    return found


def page(package: str, names: list[str]) -> str:
    """The Markdown of a package's reference page; mkdocstrings fills it in."""
    docstring = ast.get_docstring(
        ast.parse((ROOT / Path(*package.split('.')) / '__init__.py').read_text('utf-8'))
    )
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
    """Lead the links of a page to files outside docs/ to those of the site."""
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
    """The public names, and public methods of public classes, that have no docstring, as dotted
    paths.

    A method without one has that of the method that it overrides.
    """
    import griffe

    loader = griffe.GriffeLoader(search_paths=[ROOT])
    top = loader.load(PACKAGE, try_relative_path=False)
    loader.resolve_aliases(implicit=True)
    found = []
    for package, names in public_names().items():
        module = top if package == PACKAGE else top[package.removeprefix(f'{PACKAGE}.')]
        for name in names:
            own = module[name]
            if not own.has_docstring:
                found.append(f'{package}.{name}')
            methods = own.functions.items() if own.is_class else ()
            above = [base.members for base in own.mro()] if own.is_class else []
            found += [
                f'{package}.{name}.{key}'
                for key, one in methods
                if one.is_public
                and not any(key in of and of[key].has_docstring for of in (own.members, *above))
            ]
    return [name for name in found if not name.endswith('__')]
