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
from sentence_folders import write_multi_vector

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
COMMANDS = ['', 'search', 'rerank', 'adapt', 'evaluate', 'index']
for command in (*COMMANDS, 'index sync', 'index judgments'):
    # An action may be gone.
    with contextlib.suppress(SystemExit, InputError):
        main([*command.split(), '--help'])
with contextlib.suppress(ImportError):
    # The HTTP description and the page; the service may be gone, or its extra not installed.
    from pyserini_repbert.serve.app import create_app, page_text
    from pyserini_repbert.serve.settings import FileSettings, IndexSettings, ServeSettings

    settings = ServeSettings(indexes={'mine': IndexSettings(path='mine')})
    print(json.dumps(create_app(settings).openapi()))
    print('settings of an index:', list(IndexSettings.model_fields))
    print('settings of a service:', list(FileSettings.model_fields))
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
        assert "error: 'mine' is a collection, which this installation does not open" in shown
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
    'extensions/language_models': (
        *('--rewrite', '--llm-model', '--judge-prompt', ', costs', "'llm'"),
    ),
    'extensions/learned_sparse': ('bm25|none|MODEL',),
    'extensions/model_server': ('/v1/rerank', '/v1/embeddings', 'ClientError'),
    'extensions/neighbours': ('    neighbours\n',),
    'extensions/off_topic': ('off_topic', 'extensions/off_topic/'),
    'extensions/several': ('several collections',),
    'extensions/token_vectors': ('--multi-vector',),
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
    search = 'search --index mine --query cat --quiet'
    commands = {
        search: 'status 0',
        f'{search} --rerank ladr@2': "'ladr' is not one of the catalog's rerankers",
        f'{search} --rerank monobert-demo@2:neighbours=2': "no option 'neighbours', and no exten",
        'index check --index mine': "out of mine; install the extension 'neighbours' for it",
        graph.replace('neighbours --', 'index neighbours --'): 'not a command here',
    }
    shown = run_without(['extensions/neighbours'], list(commands), tmp_path)
    assert shown.count('\nstatus ') == len(commands)
    assert shown.count('error: ') == shown.count('\nstatus 2') == len(commands) - 1
    for said in commands.values():
        assert said in shown


def run_without(folders, commands, tmp_path):
    """What commands print, without some folders of the package."""
    tree = take_away(folders, tmp_path / 'tree')
    ended = subprocess.run(
        [sys.executable, '-c', ONLY_HERE + RUN, *commands],
        cwd=tmp_path,
        env={**os.environ, 'PYTHONPATH': str(tree), 'OMP_NUM_THREADS': '1'},
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout


# Commands that need a folder: a command, a flag, a stage, an index, a settings file.
NEEDING = {
    'collection': (
        'index sync --corpus docs --index new',
        'search --index mine --query cat --filter a:b',
        'search --index mine --query cat',
        'adapt --index mine --topics t.tsv --qrels q.txt --go-back',
    ),
    'serve': ('serve --index mine',),
    'extensions/approximate': (
        'index ann --index mine',
        'index check --index with_ann',
        'search --index mine --query cat --ann',
        'serve --config ann.yaml',
        'serve --index mine --ann',
    ),
    'extensions/confidence': (
        'search --index mine --query cat --min-confidence .5',
        'evaluate calibration run.txt',
    ),
    'extensions/following': (
        'index sync --corpus docs --index mine --follow',
        'serve --config follow.yaml',
    ),
    'extensions/ir_metadata': ('evaluate ir-metadata run.txt',),
    'extensions/language_models': (
        'search --index mine --query cat --rerank llm@2',
        'search --index mine --query cat --rewrite hyde',
        'rerank --run run.txt --topics t.tsv --output new.txt --llm-model m',
        'index judgments --index mine --judge llm',
        'evaluate costs run.txt',
        'serve --config llm.yaml',
        'serve --index mine --llm-model m',
    ),
    'extensions/learned_sparse': ('index sync --corpus docs.jsonl --index new --sparse weighing',),
    'extensions/model_server': ('serve --config embedding_inputs.yaml',),
    'extensions/neighbours': (
        'index neighbours --index mine',
        'index check --index with_neighbours',
        'search --index mine --query cat --rerank ladr@2',
        'search --index mine --query cat --rerank monobert-demo@2:neighbours=2',
        'serve --index mine --rerankers ladr',
    ),
    'extensions/off_topic': ('index check --index with_off_topic.safetensors',),
    'extensions/several': ('search --index mine --index with_trial --query cat',),
    'extensions/token_vectors': (
        'index sync --corpus docs.jsonl --index new --multi-vector late',
        'search --index mine --query cat --rerank colbert-demo@2',
    ),
    'extensions/trials': ('index try --index mine', 'index check --index with_trial'),
    'extensions/watching': (
        'index history --index mine',
        'index sync --corpus docs --index mine --watch',
    ),
}
FILES = {
    'ann.yaml': 'indexes:\n  mine:\n    path: mine\n    ann: true\n',
    'docs.jsonl': '{"id": "d", "contents": "red"}\n',
    'follow.yaml': 'indexes:\n  mine:\n    path: mine\n    follow: docs\n',
    'llm.yaml': 'indexes:\n  mine: mine\nllm:\n  model: m\n',
    'embedding_inputs.yaml': 'indexes:\n  mine: mine\nlimits:\n  embedding_inputs: 3\n',
}
REFUSING = {
    'the parts': pytest.param(('collection', 'serve'), PARTS),
    'no extension': pytest.param(tuple(SHELF), tuple(SHELF)),
    **{
        folder: pytest.param((folder,), (folder,), marks=pytest.mark.slow)
        for folder in ('serve', *SHELF)
    },
}


@pytest.mark.parametrize(('needed', 'gone'), REFUSING.values(), ids=REFUSING)
def test_what_needs_a_folder_is_refused_in_a_line_that_names_it(
    needed, gone, tiny_checkpoint, tmp_path
):
    settings = {'encoder': str(tiny_checkpoint()), 'sparse': 'none'}
    with Collection.open(tmp_path / 'mine', **settings) as collection:
        collection.sync([('a', 'the cat'), ('b', 'the dog'), ('c', 'a fish')])
    for kept in ('ann', 'neighbours', 'off_topic.safetensors', 'trial'):
        shutil.copytree(tmp_path / 'mine', tmp_path / f'with_{kept}')
        (tmp_path / f'with_{kept}' / kept).mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding='utf-8')
    folders = [folder for folder in needed for _ in NEEDING[folder]]
    commands = [f'{words} --quiet' for folder in needed for words in NEEDING[folder]]
    shown = run_without(gone, commands, tmp_path)
    errors = [line for line in shown.splitlines() if line.startswith('error: ')]
    assert len(errors) == shown.count('status 2\n') == len(commands), shown
    for folder, words, error in zip(folders, commands, errors, strict=True):
        name = folder.rpartition('/')[2]
        needs = f"install the extension '{name}' for it, or put back its folder pyserini_repbert/"
        assert f'{needs}{folder}' in error, words


# The model of a collection whose extension may be gone: the option that names it.
FURTHER = {'learned_sparse': 'sparse', 'token_vectors': 'multi_vector'}


@pytest.mark.parametrize('extension', FURTHER)
def test_without_the_extension_of_a_further_model_it_is_named(
    extension, tiny_checkpoint, tiny_epic, tmp_path
):
    """A collection that has such a model is refused in one line, whatever is asked of it."""
    pytest.importorskip(f'pyserini_repbert.extensions.{extension}')
    option = FURTHER[extension]
    documents = [('a', 'the cat'), ('b', 'the dog'), ('c', 'a fish')]
    encoder = str(tiny_checkpoint())
    if extension == 'token_vectors':
        pytest.importorskip('sentence_transformers')
        model = write_multi_vector(tmp_path / 'late')
    else:
        model = tiny_epic('weighing')
    models = {'sparse': 'none', option: str(model)}
    for name in ('mine', 'without'):
        with Collection.open(tmp_path / name, encoder, **models) as collection:
            collection.sync(documents)
    with Collection.open(tmp_path / 'without', encoder, **models | {option: 'none'}) as collection:
        # Shards still have what the model made.
        assert collection.sync(documents, rebuild=True).encoded == 0
    (tmp_path / 'corpus.jsonl').write_text('{"id": "d", "contents": "red"}\n', encoding='utf-8')
    flag = f'--{option.replace("_", "-")}'
    commands = [
        'search --index mine --query cat --quiet',
        'search --index without --query cat --quiet',
        'index check --index mine',
        'index status --index mine',
        'index copy --index mine --output copy',
        'index add --index mine --corpus corpus.jsonl --quiet',
        f'index sync --index new --corpus corpus.jsonl --encoder tiny --quiet {flag} {model}',
    ]
    shown = run_without([f'extensions/{extension}'], commands, tmp_path)
    refused = [line for line in shown.splitlines() if line.startswith('error: ')]
    assert len(refused) == len(commands) == shown.count('\nstatus 2'), shown
    for line in refused:
        assert f"install the extension '{extension}'" in line
    assert not (tmp_path / 'new').exists()
    assert not (tmp_path / 'copy').exists()


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
    'extensions/language_models': 'tests/pipeline',
    'extensions/learned_sparse': 'tests/collection/test_search_collection.py',
    'extensions/model_server': 'tests/serve/test_stated_limits.py',
    'extensions/neighbours': 'tests/attack/test_overwriting.py',
    'extensions/token_vectors': 'tests/collection/test_search_collection.py',
    'extensions/trials': 'tests/attack/test_links_in_collections.py',
    'extensions/watching': 'tests/collection/judging',
}


@pytest.fixture(scope='module')
def known_types(tmp_path_factory):
    """What mypy has found out already: of another tree, most holds for the next one."""
    return tmp_path_factory.mktemp('types')


@pytest.mark.slow
@pytest.mark.parametrize('folder', ROOMS)
def test_the_rest_is_typed_and_passes_its_tests(folder, known_types, tmp_path):
    tree = take_away([folder], tmp_path / 'tree')
    shutil.copytree(TESTS, tree / 'tests', copy_function=os.symlink)
    shutil.rmtree(tree / 'tests' / folder)
    shutil.copyfile(TESTS.parent / 'setup.cfg', tree / 'setup.cfg')
    environment = {**os.environ, 'PYTHONPATH': str(tree), 'OMP_NUM_THREADS': '1'}
    arguments = ['-q', '-x', '-m', 'not slow', ROOMS[folder]]
    tests = f'{ONLY_HERE}\nimport pytest\nsys.exit(pytest.main({arguments}))'
    for check in (['-m', 'mypy', '--cache-dir', str(known_types)], ['-c', tests]):
        ended = subprocess.run(
            [sys.executable, *check],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
