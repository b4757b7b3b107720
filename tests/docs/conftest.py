"""What all pages and both workers share, so that it is made once: a cache with the demo's indexes,
and the files of the page that others begin with; and a summary of what was run.
"""

import json
import shutil
from dataclasses import asdict

import pytest
from doc_blocks import files_from
from doc_runner import LINKED, Counts, Page, environment
from doc_server import install
from filelock import FileLock

_COUNTS = pytest.StashKey[Counts]()


def pytest_addoption(parser):
    """Options of `pytest tests/docs`."""
    parser.addoption(
        '--rewrite-outputs',
        nargs='?',
        const='differing',
        choices=('differing', 'all'),
        help="write outputs that do not agree into README and docs; 'all': those that agree, too, "
        'for their timings',
    )


@pytest.fixture(scope='session')
def doc_programs(tmp_path_factory, shared_cache):
    """A folder with a `python` that starts quickly."""
    folder = tmp_path_factory.mktemp('programs')
    server = install(folder, environment(shared_cache))
    yield folder
    server.terminate()
    server.wait()


@pytest.fixture(scope='session')
def demo_indexes(shared_cache, doc_programs, build_demo):
    """Builds the demo's indexes that pages search, in the cache: two pages cannot build one at
    the same time.
    """
    for encoder in ('repbert-demo', 'minilm'):
        build_demo(encoder, str(doc_programs / 'python'), environment(shared_cache, doc_programs))


@pytest.fixture(scope='session')
def run_page(shared_folder, shared_cache, doc_programs, doc_counts, demo_indexes, pytestconfig):
    """run(page, folder) -> what is wrong with a page, which is run in a folder."""
    rewrite = pytestconfig.getoption('rewrite_outputs', default=None)

    def run(path, folder):
        return [
            str(one)
            for one in Page(path, folder, shared_cache, doc_programs).run(doc_counts, rewrite)
        ]

    return run


@pytest.fixture(scope='session')
def run_once(shared_folder, run_page):
    """run(page) -> the folder with the files that a page leaves, and what is wrong with it.

    The first worker that asks runs the page; the others wait for it.
    """

    def run(path):
        folder = shared_folder / path.stem
        problems = shared_folder / f'{path.stem}.json'
        with FileLock(shared_folder / f'{path.stem}.lock'):
            if not problems.exists():
                folder.mkdir()
                problems.write_text(json.dumps(run_page(path, folder)), encoding='utf-8')
        return folder, json.loads(problems.read_text(encoding='utf-8'))

    return run


@pytest.fixture(scope='session')
def copy_files(run_once):
    """Copies what a page begins with, the files of the page that its `<!-- files: PAGE -->`
    names, to a folder.
    """

    def copy(page, folder):
        if (first := files_from(page)) is not None:
            files, problems = run_once(first)
            assert not problems, '\n\n'.join(problems)
            shutil.copytree(
                files, folder, ignore=shutil.ignore_patterns(*LINKED), dirs_exist_ok=True
            )

    return copy


@pytest.fixture(scope='session')
def doc_counts(pytestconfig):
    """What became of the blocks so far."""
    return pytestconfig.stash.setdefault(_COUNTS, Counts())


def pytest_sessionfinish(session):
    """With pytest-xdist, a worker hands its counts to the process that reports."""
    counts = session.config.stash.get(_COUNTS, None)
    if counts is not None and hasattr(session.config, 'workeroutput'):
        session.config.workeroutput['doc_counts'] = asdict(counts)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Adds the counts of a worker of pytest-xdist."""
    handed = getattr(node, 'workeroutput', {}).get('doc_counts')
    if handed is not None:
        node.config.stash.setdefault(_COUNTS, Counts()).add(Counts(**handed))


def pytest_terminal_summary(terminalreporter, config):
    """How many blocks were run, and which were not, with the reasons that the pages give."""
    counts = config.stash.get(_COUNTS, None)
    if counts is None:
        return
    terminalreporter.section('documentation')
    terminalreporter.write_line(
        f'{counts.run} blocks run, {counts.compared} of them compared with the output that the '
        f'page shows; '
        f'{len(counts.not_run)} not run'
    )
    for line in counts.not_run:
        terminalreporter.write_line(f'  not run  {line}')
    for name, seconds in sorted(counts.seconds.items(), key=lambda item: -item[1])[:5]:
        terminalreporter.write_line(f'  {seconds:6.1f} s  {name}')
