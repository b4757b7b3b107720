"""A service of its own process over a small garden, and Debian's Chromium; `make test-web`
installs what that takes.
"""

import json
import urllib.parse
import urllib.request
from typing import Any

import pytest
from garden_texts import DOCUMENTS, PASSAGES, QRELS, TOPICS
from web_service import command, make_collection, run_service

CONFIG = """
indexes:
  garden: {path: garden, base_index: words, topics: topics.tsv, qrels: qrels.txt}
  words: {path: words}
rerankers: [monobert-demo, duobert-demo, epic-demo, cedr-knrm-demo]
"""


@pytest.fixture(scope='session')
def garden(tmp_path_factory):
    """A folder with a dense and a Lucene index of the garden, its topics and judgments, and a
    settings file.
    """
    folder = tmp_path_factory.mktemp('garden')
    lines = [json.dumps({'id': docid, 'contents': text}) for docid, text in PASSAGES.items()]
    (folder / 'garden.jsonl').write_text('\n'.join(lines) + '\n', encoding='utf-8')
    topics = ''.join(f'{qid}\t{text}\n' for qid, text in TOPICS.items())
    (folder / 'topics.tsv').write_text(topics, encoding='utf-8')
    (folder / 'qrels.txt').write_text(QRELS, encoding='utf-8')
    (folder / 'serve.yaml').write_text(CONFIG, encoding='utf-8')
    made = ('--corpus', 'garden.jsonl', '--output')
    command(
        'encode',
        *made,
        'garden',
        '--encoder',
        'repbert-demo',
        '--store-text',
        folder=folder,
    )
    command('index', 'lucene', *made, 'words', folder=folder)
    return folder


@pytest.fixture(scope='session')
def served(garden):
    """The address of a service over the garden."""
    with run_service(garden, '--config', 'serve.yaml') as address:
        yield address


@pytest.fixture(scope='session')
def served_collection(tmp_path_factory):
    """The address of a service over a collection of long documents, called 'mine'."""
    folder = tmp_path_factory.mktemp('collection')
    make_collection(folder, DOCUMENTS)
    with run_service(folder, '--index', 'mine', '--rerankers', 'monobert-demo') as address:
        yield address


@pytest.fixture(scope='session')
def served_judging(tmp_path_factory):
    """The address of a service over a collection 'mine' that is judged."""
    folder = tmp_path_factory.mktemp('judging')
    make_collection(folder, DOCUMENTS)
    with run_service(folder, '--index', 'mine') as address:
        yield address


@pytest.fixture(scope='session')
def api(served):
    """get(path, name=value or list, …) -> the service's JSON answer, past the page."""

    def get(path, **parameters):
        with urllib.request.urlopen(
            f'{served}v1/{path}?{urllib.parse.urlencode(parameters, doseq=True)}'
        ) as answer:
            return json.load(answer)

    return get


class Opened:
    """A page of the browser, with what went wrong on it and what it asked for."""

    def __init__(self, context, served):
        self.page = context.new_page()
        self.served = served
        self.page.set_default_timeout(30_000)
        self.problems: list[str] = []
        self.asked: list[str] = []
        self.page.on('pageerror', lambda error: self.problems.append(str(error)))
        self.page.on(
            'dialog', lambda box: (self.problems.append(f'dialog {box.message}'), box.dismiss())
        )
        self.page.on('console', self._told)
        self.page.on('request', lambda request: self.asked.append(request.url))

    def _told(self, message):
        if message.type == 'error' and 'Failed to load resource' not in message.text:
            self.problems.append(message.text)

    def open(self, address='', wait='.hit'):
        """Go to an address of the page, and wait until something is there."""
        self.page.goto(self.served + address)
        if wait:
            self.page.wait_for_selector(wait)
        return self.page

    def docids(self):
        """Of the hits that are shown."""
        return list(self.page.locator('.hit > header h2').all_text_contents())


@pytest.fixture
def opened(browser, served):
    """make(width=1280, scheme='light', address=None, **context) -> Opened, at the garden's service
    or at an address; none may have a problem, or leave the service.
    """
    made: list[tuple[Any, Opened]] = []

    def make(width=1280, scheme='light', address=None, **settings):
        context = browser.new_context(
            viewport={'width': width, 'height': 900}, color_scheme=scheme, **settings
        )
        own = Opened(context, address or served)
        made.append((context, own))
        return own

    yield make
    for context, own in made:
        hacked = own.page.evaluate('window.hacked')
        context.close()
        assert own.problems == [] and hacked is None
        assert {url for url in own.asked if not url.startswith((own.served, 'data:'))} == set()
