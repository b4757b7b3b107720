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
from pyserini_repbert.collection import Collection
from pyserini_repbert.commands import command
from pyserini_repbert.commands.index import main as index_command
from pyserini_repbert.extension import extensions

PACKAGE = Path(pyserini_repbert.__file__).parent
TESTS = Path(__file__).parent
# What is the plugin's alone, and what the other parts are.
PARTS = ('collection', 'serve', 'extensions')
SHELF = sorted(
    f'extensions/{extension.name}'
    for extension in extensions().values()
    if extension.package.startswith('pyserini_repbert.extensions.')
)
# Each takes as long as importing the service does.
CASES = {
    'the plugin alone': pytest.param(PARTS),
    'no extension': pytest.param(tuple(SHELF)),
    **{folder: pytest.param((folder,), marks=pytest.mark.slow) for folder in SHELF},
}
# An editable installation would find what was taken away.
ONLY_HERE = """
import sys
for finder in list(sys.meta_path):
    if getattr(finder, '__module__', '').startswith('__editable__'):
        sys.meta_path.remove(finder)
"""
SHOW = """
import contextlib, importlib, json, pkgutil, sys
import pyserini_repbert
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import InputError, MissingDependencyError

failed = []
imports = sys.argv[2] == 'all'
for module in pkgutil.walk_packages(pyserini_repbert.__path__, 'pyserini_repbert.', onerror=str):
    if imports and not module.name.endswith('.__main__'):
        try:
            importlib.import_module(module.name)
        except MissingDependencyError:
            # The package of an extra is not installed.
            pass
        except ImportError as error:
            if (error.name or 'pyserini_repbert').startswith('pyserini_repbert'):
                failed.append(module.name + ': ' + str(error))
print(failed)
for command in ('', 'search', 'adapt', 'evaluate', 'index', 'index sync'):
    # An action may be gone.
    with contextlib.suppress(SystemExit, InputError):
        main([*command.split(), '--help'])
with contextlib.suppress(ImportError):
    # The HTTP description and the page; the service may be gone, or its extra not installed.
    from pyserini_repbert.serve.app import create_app, page_text
    from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

    settings = ServeSettings(indexes={'mine': IndexSettings(path='mine')})
    print(json.dumps(create_app(settings).openapi()))
    print('settings of an index:', list(IndexSettings.model_fields))
    print(page_text('index.html') + page_text('lab.html'))
sys.stderr = sys.stdout
print('status', run(main, ['search', '--index', sys.argv[1], '--query', 'slugs']))
"""


def take_away(folders, target):
    """A copy of the package without some of its folders; big files are links."""
    gone = {PACKAGE / folder for folder in folders}

    def left_out(parent, names):
        return [name for name in names if Path(parent, name) in gone]

    copy = target / 'pyserini_repbert'
    shutil.copytree(PACKAGE, copy, ignore=left_out, copy_function=os.symlink)
    return target


def output_without(folders, folder, imported='all'):
    """What the help of commands, the HTTP description, settings, the page and a search of a
    collection show; first, which modules cannot be imported, unless `imported` is 'none'.
    """
    (folder / 'mine').mkdir()
    (folder / 'mine' / 'collection.sqlite').touch()
    tree = take_away(folders, folder / 'tree')
    environment = {**os.environ, 'PYTHONPATH': str(tree), 'OMP_NUM_THREADS': '1'}
    command = [sys.executable, '-c', ONLY_HERE + SHOW, 'mine', imported]
    shown = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return shown.stdout


@cache
def shown_with_all():
    """What all of the package prints."""
    with tempfile.TemporaryDirectory() as folder:
        return output_without((), Path(folder), 'none')


@pytest.mark.parametrize('folders', CASES.values(), ids=CASES)
def test_everything_else_imports(folders, tmp_path):
    shown = output_without(folders, tmp_path)
    assert shown.partition('\n')[0] == '[]'
    for words in words_of(folders):
        assert words not in shown
    if folders == PARTS:
        assert "error: 'mine' is a collection, and this installation opens none" in shown
        assert shown.endswith('status 2\n')


def test_words_that_leave_are_there():
    """Words that nothing shows would prove nothing."""
    shown = shown_with_all()
    for words in words_of([*PARTS, *SHELF]):
        assert words in shown, words


def words_of(folders):
    """What leaves with these folders."""
    return [words for folder in folders for words in WORDS[folder]]


# Words of help, of the HTTP description, of settings and of the page that leave with a part.
WORDS = {
    'collection': ('--filter', 'index sync', '--even-if-worse'),
    'serve': ('  serve ',),
    'extensions': ('--min-confidence', '--watch'),
    'extensions/approximate': (
        *('--ann', '    ann ', '"approximate"', "'ann'", 'extensions/approximate/'),
    ),
    'extensions/confidence': (
        *('--min-confidence', '"min_confidence"', '"probability"', '"unsure"'),
        *('"lost_confidence"', 'extensions/confidence/'),
    ),
    'extensions/following': ('--follow', "'follow'"),
    'extensions/ir_metadata': ('ir-metadata',),
    'extensions/model_server': ('/v1/rerank', '/v1/embeddings', 'ClientError'),
    'extensions/neighbours': ('    neighbours\n',),
    'extensions/off_topic': ('off_topic', 'extensions/off_topic/'),
    'extensions/several': ('several collections',),
    'extensions/trials': ('    try ',),
    'extensions/watching': ('    history ', '--watch', '/history', 'extensions/watching/'),
}


RUN = """
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main

sys.stderr = sys.stdout
for arguments in sys.argv[1:]:
    print('status', run(main, arguments.split()))
"""


def test_without_neighbours_an_index_that_has_them_is_searched(tiny_checkpoint, tmp_path):
    """What needs the graph is refused in one line."""
    pytest.importorskip('pyserini_repbert.extensions.neighbours')
    settings = {'encoder': str(tiny_checkpoint()), 'sparse': 'none'}
    with Collection.open(tmp_path / 'mine', **settings) as collection:
        collection.sync([('a', 'the cat'), ('b', 'the dog'), ('c', 'a fish')])
    graph = f'neighbours --index {tmp_path}/mine --neighbours 2 --quiet'
    assert command.run(index_command, graph.split()) == 0
    tree = take_away(['extensions/neighbours'], tmp_path / 'tree')
    missing = ": install pyserini_repbert with its extension 'neighbours'"
    search = 'search --index mine --query cat --quiet'
    commands = {
        search: 'status 0',
        f'{search} --rerank ladr@2': "'ladr' is neither one of the catalog's rerankers",
        f'{search} --rerank monobert-demo@2:neighbours=2': "no option 'neighbours', and no exten",
        'index check --index mine': f'mine/neighbours is not part of a collection{missing}',
        f'index {graph}': missing,
    }
    check_commands(commands, tree, tmp_path)


def check_commands(commands, tree, folder):
    """Run commands; each says what is expected, and all but the first are refused in one line."""
    shown = subprocess.run(
        [sys.executable, '-c', ONLY_HERE + RUN, *commands],
        cwd=folder,
        env={**os.environ, 'PYTHONPATH': str(tree), 'OMP_NUM_THREADS': '1'},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert shown.count('\nstatus ') == len(commands)
    assert shown.count('error: ') == shown.count('\nstatus 2') == len(commands) - 1
    for said in commands.values():
        assert said in shown


def test_without_approximate_an_index_that_has_one_is_searched(tiny_checkpoint, tmp_path):
    """What needs the approximate index is refused in a line that names the extension."""
    pytest.importorskip('pyserini_repbert.extensions.approximate')
    settings = {'encoder': str(tiny_checkpoint()), 'sparse': 'none'}
    with Collection.open(tmp_path / 'mine', **settings) as collection:
        collection.sync([(f'd{n}', f'cat w{n % 7} w{n % 11} w{n % 13}') for n in range(630)])
    build = f'ann --index {tmp_path}/mine --recall 0.1 --quiet'
    assert command.run(index_command, build.split()) == 0
    (tmp_path / 'serve.yaml').write_text('indexes: {mine: {path: mine, ann: true}}\n')
    tree = take_away(['extensions/approximate'], tmp_path / 'tree')
    missing = ": install pyserini_repbert with its extension 'approximate'"
    search = 'search --index mine --query cat --quiet'
    commands = {
        search: 'status 0',
        f'{search} --ann': f'unrecognized arguments: --ann{missing}',
        'index check --index mine': f'mine/ann is not part of a collection{missing}',
        'index ann --index mine': missing,
        'serve --config serve.yaml': f"'indexes.mine.ann': is unknown{missing}",
    }
    check_commands(commands, tree, tmp_path)


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


@pytest.mark.parametrize('folders', [PARTS, *([folder] for folder in SHELF)], ids=str)
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


# A room whose tests an extension's folder touches, but for those of the extension itself.
ROOMS = {
    'extensions/approximate': 'tests/attack/test_overwriting.py',
    'extensions/confidence': 'tests/collection/judging',
    'extensions/model_server': 'tests/serve/test_stated_limits.py',
    'extensions/neighbours': 'tests/attack/test_overwriting.py',
    'extensions/trials': 'tests/attack/test_links_in_collections.py',
    'extensions/watching': 'tests/collection/judging',
}


@pytest.mark.slow
@pytest.mark.parametrize('folder', ROOMS)
def test_the_rest_is_typed_and_passes_its_tests(folder, tmp_path):
    tree = take_away([folder], tmp_path / 'tree')
    shutil.copytree(TESTS, tree / 'tests', copy_function=os.symlink)
    shutil.rmtree(tree / 'tests' / folder)
    shutil.copyfile(TESTS.parent / 'setup.cfg', tree / 'setup.cfg')
    environment = {**os.environ, 'PYTHONPATH': str(tree), 'OMP_NUM_THREADS': '1'}
    arguments = ['-q', '-x', '-m', 'not slow', ROOMS[folder]]
    tests = f'{ONLY_HERE}\nimport pytest\nsys.exit(pytest.main({arguments}))'
    for check in (['-m', 'mypy'], ['-c', tests]):
        ended = subprocess.run(
            [sys.executable, *check],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
