"""One cache for all pages, so that the demo's indexes are built once; and a summary of what was
run.
"""

import shutil
from dataclasses import asdict
from functools import cache
from pathlib import Path

import pytest
from doc_blocks import files_from
from doc_runner import LINKED, Counts, Page, environment
from doc_server import install

_COUNTS = pytest.StashKey[Counts]()


def pytest_addoption(parser):
    """Options of `pytest tests/docs`."""
    parser.addoption(
        '--doc-cache', type=Path, help='a cache folder to use again, instead of a new one'
    )
    parser.addoption(
        '--rewrite-outputs',
        nargs='?',
        const='differing',
        choices=('differing', 'all'),
        help="write outputs that do not agree into README and docs; 'all': those that agree, too, "
        'for their timings',
    )


@pytest.fixture(scope='session')
def doc_cache(tmp_path_factory, pytestconfig):
    """The cache folder of all pages."""
    given: Path | None = pytestconfig.getoption('doc_cache', default=None)
    return given.resolve() if given else tmp_path_factory.mktemp('doc-cache')


@pytest.fixture(scope='session')
def doc_programs(tmp_path_factory, doc_cache):
    """A folder with a `python` that starts quickly."""
    folder = tmp_path_factory.mktemp('programs')
    server = install(folder, environment(doc_cache))
    yield folder
    server.terminate()
    server.wait()


@pytest.fixture(scope='session')
def copy_files(tmp_path_factory, doc_cache, doc_programs):
    """Copies what a page begins with, the files of the page that its `<!-- files: PAGE -->`
    names, to a folder.
    """

    @cache
    def files_of(path):
        folder = tmp_path_factory.mktemp('files')
        failures = Page(path, folder, doc_cache, doc_programs).run(Counts())
        assert not failures, '\n\n'.join(map(str, failures))
        return folder

    def copy(page, folder):
        if (first := files_from(page)) is not None:
            shutil.copytree(
                files_of(first), folder, ignore=shutil.ignore_patterns(*LINKED), dirs_exist_ok=True
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
