"""The removal test: a part of the package is taken away, and everything else imports and works."""

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

import pyserini_repbert
from pyserini_repbert.extension import extensions

PACKAGE = Path(pyserini_repbert.__file__).parent
# What is the plugin's alone, and what the other parts are.
PARTS = ('collection', 'serve', 'extensions')
SHELF = sorted(
    f'extensions/{extension.name}'
    for extension in extensions().values()
    if extension.package.startswith('pyserini_repbert.extensions.')
)
CASES = {'the plugin alone': PARTS, **{folder: (folder,) for folder in SHELF}}
IMPORT_ALL = """
import contextlib, importlib, json, pkgutil, sys
import pyserini_repbert
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import InputError, MissingDependencyError

failed = []
for module in pkgutil.walk_packages(pyserini_repbert.__path__, 'pyserini_repbert.', onerror=str):
    if not module.name.endswith('.__main__'):
        try:
            importlib.import_module(module.name)
        except MissingDependencyError:
            # The package of an extra is not installed.
            pass
        except ImportError as error:
            if (error.name or 'pyserini_repbert').startswith('pyserini_repbert'):
                failed.append(f'{module.name}: {error}')
print(failed)
for command in ('', 'search', 'adapt', 'index', 'index sync'):
    # An action may be gone.
    with contextlib.suppress(SystemExit, InputError):
        main([*command.split(), '--help'])
with contextlib.suppress(ImportError):
    # The HTTP description and the page; the service may be gone, or its extra not installed.
    from pyserini_repbert.serve.app import create_app, page_text
    from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

    settings = ServeSettings(indexes={'mine': IndexSettings(path='mine')})
    print(json.dumps(create_app(settings).openapi()))
    print(page_text('index.html') + page_text('lab.html'))
sys.stderr = sys.stdout
print('status', run(main, ['search', '--index', sys.argv[1], '--query', 'slugs']))
"""


def take_away(folders, target):
    """A copy of the package without some of its folders; big files are links."""
    gone = {PACKAGE / folder for folder in folders}

    def left_out(parent, names):
        return [name for name in names if name == '__pycache__' or Path(parent, name) in gone]

    copy = target / 'pyserini_repbert'
    shutil.copytree(PACKAGE, copy, ignore=left_out, copy_function=os.symlink)
    return target


def output_without(folders, folder):
    """What importing all, the help of commands and a search of a collection print."""
    (folder / 'mine').mkdir()
    (folder / 'mine' / 'collection.sqlite').touch()
    tree = take_away(folders, folder / 'tree')
    environment = {**os.environ, 'PYTHONPATH': str(tree), 'OMP_NUM_THREADS': '1'}
    command = [sys.executable, '-c', IMPORT_ALL, 'mine']
    shown = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return shown.stdout


@cache
def shown_with_all():
    """What all of the package prints."""
    with tempfile.TemporaryDirectory() as folder:
        return output_without((), Path(folder))


@pytest.mark.parametrize('folders', CASES.values(), ids=CASES)
def test_everything_else_imports(folders, tmp_path):
    shown = output_without(folders, tmp_path)
    assert shown.partition('\n')[0] == '[]'
    for words in WORDS[folders]:
        assert words not in shown
    if folders == PARTS:
        assert "error: 'mine' is a collection, and this installation opens none" in shown
        assert shown.endswith('status 2\n')


@pytest.mark.parametrize('folders', CASES.values(), ids=CASES)
def test_words_that_leave_are_there(folders):
    """Words that nothing shows would prove nothing."""
    shown = shown_with_all()
    for words in WORDS[folders]:
        assert words in shown, words


# Words of help, of the HTTP description and of the page that leave with a part.
WORDS = {
    PARTS: ('--filter', '--confidence', 'index sync', '  serve ', '--even-if-worse'),
    ('extensions/confidence',): (
        *('--confidence', '--min-confidence', '"min_confidence"', '"probability"'),
        *('"lost_confidence"', 'extensions/confidence/'),
    ),
    ('extensions/following',): ('--follow',),
    ('extensions/several',): ('several collections',),
    ('extensions/trials',): ('    try ',),
    ('extensions/watching',): ('    history ', '--watch', '/history', 'extensions/watching/'),
}


def names_imported(path, package):
    """The modules that a file imports, lazily and for types too."""
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ''
            if node.level:
                parents = package.split('.')[: len(package.split('.')) - node.level + 1]
                base = '.'.join([*parents, base]).rstrip('.')
            yield from (f'{base}.{alias.name}' for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # 'MODULE:ATTRIBUTE', which is imported on first use.
            yield node.value.partition(':')[0]


@pytest.mark.parametrize('folders', CASES.values(), ids=CASES)
def test_nothing_else_names_it(folders):
    """import-linter reads imports; here are the names in strings, too."""
    gone = tuple(f'pyserini_repbert.{folder.replace("/", ".")}' for folder in folders)
    naming = []
    for path in sorted(PACKAGE.rglob('*.py')):
        module = '.'.join(path.relative_to(PACKAGE.parent).with_suffix('').parts)
        if module.startswith(gone):
            continue
        for name in names_imported(path, module.rpartition('.')[0]):
            if name.startswith(tuple(f'{each}.' for each in gone)):
                naming.append(f'{module} names {name}')
    assert naming == []
