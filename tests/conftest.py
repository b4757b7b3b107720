"""What all tests share: a cache of their own, no downloads, a choice of what the CPU can do, and
tiny checkpoints.

`pytest --native-bf16=yes` and `--native-bf16=no` make the package believe that this machine
computes in bfloat16 natively, or that it does not; without it, it is asked.

`pytest --exhaustive` makes slow tests take every kill point, every bit and all seeds; without it,
they take a share of them.
"""

import functools
import gc
import importlib.util
import itertools
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from folders import TINY, WORDS, question_documents, write_files
from hypothesis import settings

# How long an example takes says more about the machine. A run tries the same examples as the one
# before, so that luck decides nothing; `make test-random` tries others.
settings.register_profile('same examples', deadline=None, derandomize=True)
settings.register_profile('other examples', deadline=None)
settings.load_profile('same examples')


def pytest_make_parametrize_id(val):
    """Workers must agree on the names of tests: a packed file holds the second in which it was
    made.
    """
    return 'bytes' if isinstance(val, bytes) and len(val) > 20 else None


def pytest_configure():
    """Tests send Ctrl-C: a shell lets what it runs in the background ignore that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class UnsyncedConnection(sqlite3.Connection):
    """Its commits leave it to the system when the disk has them."""

    def execute(self, statement, *values):
        if statement.startswith('BEGIN'):
            super().execute('PRAGMA synchronous = OFF')
        return super().execute(statement, *values)


@pytest.fixture(scope='session', autouse=True)
def _no_waiting_for_the_disk():
    """Tests kill processes, but never cut the power: an fsync, and a commit of SQLite, would keep
    them waiting for nothing.
    """
    connect = functools.partial(sqlite3.connect, factory=UnsyncedConnection)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('os.fsync', lambda handle: None)
        patch.setattr('sqlite3.connect', connect)
        yield


@pytest.fixture(scope='session')
def pyserini_tables(tmp_path_factory):
    """A folder with a few entries of each table that Pyserini 2.4 fetches."""
    folder = tmp_path_factory.mktemp('pyserini-tables')
    packed = Path(__file__).with_name('lucene') / 'pyserini_tables.json'
    for name, table in json.loads(packed.read_text(encoding='utf-8')).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(table), encoding='utf-8')
    return folder


@pytest.fixture(autouse=True)
def _own_tables(pyserini_tables, monkeypatch):
    """Pyserini 2.x reads its tables there: they stay in memory for the whole process, whichever
    test is first.
    """
    monkeypatch.setenv('PYSERINI_SEED', str(pyserini_tables))


@pytest.fixture(scope='session')
def shared_folder(tmp_path_factory):
    """A folder that all workers of this run share."""
    own = tmp_path_factory.getbasetemp()
    is_worker = 'PYTEST_XDIST_WORKER' in os.environ
    folder = (own.parent if is_worker else own) / 'shared'
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope='session')
def shared_cache(shared_folder, pytestconfig):
    """The cache folder of the pages and of tests that search the demo: a new one, or
    `--demo-cache`.
    """
    given: Path | None = pytestconfig.getoption('demo_cache')
    folder = given.resolve() if given else shared_folder / 'cache'
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope='session')
def build_demo(shared_folder):
    """build(encoder, python, environment): the demo's vectors and its Lucene index are in the cache
    that the environment names.

    The first worker that asks builds them, where they are not there; the others wait for it.
    """

    def build(encoder, python, environment):
        search = [python, '-m', 'pyserini_repbert.search', '--encoder', encoder]
        search += ['--index', 'demo', '--sparse', 'bm25', '--query', 'sea', '--hits', '1']
        built = shared_folder / f'{encoder}.built'
        with FileLock(shared_folder / 'demo.lock'):
            if not built.exists():
                done = subprocess.run(
                    search, cwd=shared_folder, env=environment, capture_output=True, text=True
                )
                assert done.returncode == 0, done.stderr
                built.touch()

    return build


@pytest.fixture(scope='session')
def demo_cache(shared_cache, build_demo):
    """A cache with the demo's vectors and its Lucene index; they take 100 seconds of a core."""
    own = {'PYSERINI_REPBERT_CACHE': str(shared_cache), 'PYSERINI_REPBERT_OFFLINE': '1'}
    build_demo('repbert-demo', sys.executable, {**os.environ, **own})
    return shared_cache


@pytest.fixture(scope='session')
def _new_caches(tmp_path_factory):
    """Names for a folder a test: to number one, pytest looks through the folders of all tests
    before, for each test.

    For 2,400 tests, that took 10.5 seconds, and takes 4 without these.
    """
    parent = tmp_path_factory.mktemp('caches')
    return (parent / str(number) for number in itertools.count())


@pytest.fixture(scope='session')
def _numbers():
    return itertools.count()


@pytest.fixture
def tmp_path(request, tmp_path_factory, _numbers):
    """An empty folder. One of pytest's, which has to be numbered, takes 2 ms after 3,000 tests."""
    name = re.sub(r'\W', '_', request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f'{name}-{next(_numbers)}'
    folder.mkdir()
    return folder


@pytest.fixture(scope='session')
def _archive_marker():
    """The file in a cache, by its relative path, that says that a process makes Java's archives.

    A command in a new cache would begin one: seven seconds of processor time for each test.
    """
    from pyserini_repbert.errors import PyseriniRepbertError
    from pyserini_repbert.files import cache_folder
    from pyserini_repbert.lucene.class_archive import archive_path
    from pyserini_repbert.lucene.java_home import anserini_jar, find_java

    try:
        archive = archive_path(find_java(), anserini_jar(), ends_soon=True)
    except PyseriniRepbertError:
        # Nothing begins without Java.
        return Path('java', 'none.begun')
    return archive.relative_to(cache_folder()).with_suffix('.begun')


@pytest.fixture(autouse=True)
def _own_cache(_new_caches, _archive_marker, monkeypatch):
    """No test reads or writes the user's cache, and none downloads."""
    cache = next(_new_caches)
    marker = cache / _archive_marker
    marker.parent.mkdir(parents=True)
    marker.touch()
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(cache))
    monkeypatch.setenv('PYSERINI_REPBERT_OFFLINE', '1')
    # A command with --offline sets it; it ends with the test.
    monkeypatch.setenv('HF_HUB_OFFLINE', '')


def _share(tests, worker, workers):
    """The part of a list of tests that a worker begins with."""
    return tests[worker * len(tests) // workers : (worker + 1) * len(tests) // workers]


def pytest_collection_modifyitems(items):
    """Each worker begins with its share of pages and slow tests, and ends with quick ones: so both
    are busy until the end.

    A worker is given one part of the list, and what it has not begun may be taken by another one
    that is ready, from the end.

    Without Pyserini, what starts Java is skipped, and the summary says so.
    """
    pages = [item for item in items if item.get_closest_marker('docs')]
    others = [item for item in items if not item.get_closest_marker('docs')]
    slow = [item for item in others if item.get_closest_marker('slow')]
    quick = [item for item in others if not item.get_closest_marker('slow')]
    workers = int(os.environ.get('PYTEST_XDIST_WORKER_COUNT', '1'))
    items[:] = [
        item
        for worker in range(workers)
        for kind in (pages, slow, quick)
        for item in _share(kind, worker, workers)
    ]
    if importlib.util.find_spec('pyserini') is None:
        skip = pytest.mark.skip(reason='!!!! PYSERINI IS NOT INSTALLED: pip install pyserini')
        for item in items:
            if item.get_closest_marker('jvm'):
                item.add_marker(skip)


def pytest_collection_finish():
    """Nothing that is imported by now becomes garbage, which Python would look for in it again
    and again.
    """
    gc.collect()
    gc.freeze()


def pytest_addoption(parser):
    """`--native-bf16`, `--exhaustive` and `--demo-cache`."""
    parser.addoption(
        '--native-bf16', choices=('yes', 'no'), help='what every device answers; default: the truth'
    )
    parser.addoption(
        '--exhaustive', action='store_true', help='slow tests: every case, not one in a few'
    )
    parser.addoption(
        '--demo-cache',
        type=Path,
        help="a cache folder with the demo's indexes to use again, instead of a new one",
    )


@pytest.fixture
def one_in(request):
    """one_in(n) -> n, or 1 with `--exhaustive`: a test takes one case in so many."""
    is_exhaustive = request.config.getoption('--exhaustive')
    return lambda n: 1 if is_exhaustive else n


@pytest.fixture(params=['quick', pytest.param('slow', marks=pytest.mark.slow)])
def share_of(request, one_in):
    """share_of(cases, quick, slow) -> the cases that a test takes; the test is run twice.

    As a quick test, it takes one in `quick`. As a slow one, it takes one in `slow`, or all with
    `--exhaustive`, but for those that the quick one takes.
    """

    def choose(cases, quick, slow):
        of_quick = cases[::quick]
        if request.param == 'quick':
            return of_quick
        return [case for case in cases[:: one_in(slow)] if case not in of_quick]

    return choose


@pytest.fixture
def native_bfloat16(monkeypatch):
    """force(answer) -> what every device says from now on when it is asked whether it computes
    in bfloat16, in which it is then fast.
    """

    def force(answer):
        monkeypatch.setattr(
            'pyserini_repbert.models.precision.has_native_bfloat16', lambda device: answer
        )
        monkeypatch.setattr('pyserini_repbert.models.precision.bfloat16_speed', lambda: 2.0)

    return force


@pytest.fixture(autouse=True)
def _native_bfloat16(request, native_bfloat16):
    asked = request.config.getoption('--native-bf16')
    if asked is not None:
        native_bfloat16(asked == 'yes')


@pytest.fixture
def figures(monkeypatch):
    """The matplotlib figures that the test saves, in order: what a plot shows can be read from
    them.
    """
    from matplotlib.figure import Figure

    saved: list[Any] = []
    save = Figure.savefig

    def note(figure, *given, **settings):
        saved.append(figure)
        save(figure, *given, **settings)

    monkeypatch.setattr(Figure, 'savefig', note)
    return saved


def repbert_network(values):
    from pyserini_repbert.models.bert_config import BertConfig
    from pyserini_repbert.systems.repbert.network import RepBert

    return RepBert(BertConfig.from_dict(values))


def cedr_network(values):
    from pyserini_repbert.models.bert_config import BertConfig
    from pyserini_repbert.systems.cedr.loading import new_ranker
    from pyserini_repbert.systems.cedr.settings import CedrSettings

    settings = CedrSettings.from_ranking(values['ranking'])
    return new_ranker(BertConfig.from_dict(values), settings)


def cross_encoder_network(values, labels):
    from pyserini_repbert.models.bert_config import BertConfig
    from pyserini_repbert.models.cross_encoder import CrossEncoder

    return CrossEncoder(BertConfig.from_dict(values), labels)


def epic_network(values):
    from pyserini_repbert.models.bert_config import BertConfig
    from pyserini_repbert.systems.epic.network import Epic

    return Epic(BertConfig.from_dict(values))


def save_random(folder, network, values, seed, *arguments):
    """Write the random weights of a network of these values and arguments, and seed PyTorch."""
    import torch

    weights = random_weights(network, json.dumps(values), seed, *arguments)
    (folder / 'model.safetensors').write_bytes(weights)
    torch.manual_seed(seed)


@functools.cache
def random_weights(network, values, seed, *arguments):
    """The file of a network's random weights, which many tests begin with."""
    import torch
    from safetensors.torch import save

    torch.manual_seed(seed)
    return save(network(json.loads(values), *arguments).state_dict())


@pytest.fixture
def tiny_checkpoint(tmp_path):
    """make(name='tiny', seed=0, **config) -> a RepBERT checkpoint folder: random weights, 40
    wordpieces.
    """

    def make(name='tiny', seed=0, **config):
        folder = tmp_path / name
        folder.mkdir()
        values = (
            TINY
            | {'ranking': {'system': 'repbert', 'max_query_length': 8, 'max_doc_length': 16}}
            | config
        )
        write_files(
            folder, {'config.json': json.dumps(values), 'vocab.txt': '\n'.join(WORDS) + '\n'}
        )
        save_random(folder, repbert_network, values, seed)
        return folder

    return make


@pytest.fixture
def mine(tiny_checkpoint, tmp_path):
    """The folder of a collection without Lucene: the question 'wN mat', for N below `N_QUESTIONS`,
    has the documents plainN and wantedN.
    """
    from pyserini_repbert.collection import Collection

    path = tmp_path / 'mine'
    with Collection.open(path, encoder=str(tiny_checkpoint()), sparse='none') as collection:
        collection.sync(question_documents())
    return path


@pytest.fixture
def tiny_cedr(tiny_checkpoint):
    """make(architecture, name=None, seed=0, config={}, **settings) -> a CEDR checkpoint folder on
    tiny words.

    A query has 6 places, so that a document of more than 55 wordpieces is split.
    """

    def make(architecture, name=None, seed=0, config=None, **settings):
        ranking = {
            'system': 'cedr',
            'architecture': architecture,
            'max_query_length': 6,
            **settings,
        }
        values = {**(config or {}), 'ranking': ranking}
        folder = tiny_checkpoint(name or f'cedr-{architecture}', seed, **values)
        save_random(folder, cedr_network, TINY | values, seed)
        return folder

    return make


@pytest.fixture
def cross_encoder_folder(tmp_path, tiny_checkpoint):
    """make(system='monobert', labels=2, name=None, seed=0, **config) -> a checkpoint folder with
    random weights.
    """

    def make(system='monobert', labels=2, name=None, seed=0, **config):
        folder = tiny_checkpoint(name or system)
        values = json.loads((folder / 'config.json').read_text(encoding='utf-8'))
        ranking = {'system': system, 'max_query_length': 8, 'max_length': 48}
        values |= {'ranking': ranking, 'type_vocab_size': 3 if system == 'duobert' else 2} | config
        values = {key: value for key, value in values.items() if value is not None}
        (folder / 'config.json').write_text(json.dumps(values), encoding='utf-8')
        save_random(folder, cross_encoder_network, values, seed, labels)
        return folder

    return make


@pytest.fixture
def corpus_file(tmp_path):
    """make(n, name='corpus.jsonl') -> JSON lines with n different passages d0, d1, … over the
    tiny vocabulary.
    """

    def make(n, name='corpus.jsonl'):
        path = tmp_path / name
        with open(path, 'w', encoding='utf-8') as stream:
            for number in range(n):
                words = [
                    WORDS[5 + (number * 7 + place * (number % 5 + 1)) % 29]
                    for place in range(3 + number % 9)
                ]
                stream.write(json.dumps({'id': f'd{number}', 'contents': ' '.join(words)}) + '\n')
        return path

    return make


@pytest.fixture
def tiny_epic(tmp_path):
    """make(name='epic', seed=0, variant='official', **config) -> an EPIC checkpoint folder with
    random weights.
    """

    def make(name='epic', seed=0, variant='official', **config):
        folder = tmp_path / name
        folder.mkdir()
        values = TINY | {'ranking': {'system': 'epic', 'variant': variant}} | config
        (folder / 'config.json').write_text(json.dumps(values), encoding='utf-8')
        words = [*WORDS, *(f'word{number}' for number in range(values['vocab_size'] - len(WORDS)))]
        (folder / 'vocab.txt').write_text('\n'.join(words) + '\n', encoding='utf-8')
        save_random(folder, epic_network, values, seed)
        return folder

    return make


CHROMIUM = next(
    filter(None, map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome'))),
    '/usr/bin/chromium',
)


@pytest.fixture(scope='module')
def browser():
    """Chromium; without it, or without Playwright, the tests are skipped before a service is
    started.

    Playwright's event loop runs in this thread until the module ends: tests after it have their
    own.
    """
    playwright = pytest.importorskip(
        'playwright.sync_api', reason='the web extra is not installed: make test-web'
    )
    pytest.importorskip('fastapi', reason='the serve extra is not installed')
    if not Path(CHROMIUM).exists():
        pytest.skip('there is no chromium here: apt install chromium')
    with playwright.sync_playwright() as started:
        own = started.chromium.launch(
            executable_path=CHROMIUM, args=['--no-sandbox', '--disable-dev-shm-usage']
        )
        yield own
        own.close()
