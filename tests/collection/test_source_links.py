"""Hits link to where their documents come from: a site, a file, or an address of their own."""

import sqlite3

import pytest
from folders import write_files
from ready_services import ready_client

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.source_links import LinkTemplate, web_address
from pyserini_repbert.commands import command
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.interop.hits import excerpt_metadata
from pyserini_repbert.serve.command import _settings, make_parser
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

SITE = 'https://docs.example.org/'
FILES = {'a b/pets#1.md': '# Pets\n\n## At night\n\nThe cat ran.\n', 'run.py': 'def fish(): ...\n'}


def test_a_path_of_this_machine_may_be_long_or_closed(tmp_path):
    closed = str(tmp_path / ('x' * 300))
    assert LinkTemplate.of_local_files(closed) is None
    long = tmp_path.joinpath(*['漢' * 70] * 4)
    long.mkdir(parents=True)
    assert LinkTemplate.of_local_files(str(long)).address('a.md').endswith('/a.md')


@pytest.mark.parametrize(
    ('template', 'file', 'anchor', 'address'),
    [
        (SITE, 'a b/pets#1.md', 'at-night', f'{SITE}a%20b/pets%231.md#at-night'),
        (SITE[:-1], 'ä.md', '', f'{SITE}%C3%A4.md'),
        (SITE, '{anchor}/x', 'y', f'{SITE}%7Banchor%7D/x#y'),
        ('http://h/?f={path}&at={anchor}', 'a&b', '"x"', 'http://h/?f=a%26b&at=%22x%22'),
        ('https://h/book.html#{anchor}', 'book.md', 'one', 'https://h/book.html#one'),
        ('file:///srv/docs', 'a.md', '', 'file:///srv/docs/a.md'),
        (SITE, '', 'one', ''),
        (SITE, '../a.md', '', ''),
        (SITE, '/etc/passwd', '', ''),
    ],
)
def test_an_address_is_made_of_path_and_anchor(template, file, anchor, address):
    assert LinkTemplate.parsed(template).address(file, anchor) == address


@pytest.mark.parametrize(
    'template',
    [
        'javascript:alert(1)//{path}',
        'data:text/html,{path}',
        'docs.example.org',
        'https://{path}',
        'https:///a',
        'https://docs.example.org/\n',
        'https://docs.example.org/a b',
        'https://docs.example.org/{file}',
        'https://docs.example.org/{path',
        'file://host/share',
        'https://h/' + 'a' * 2000,
    ],
)
def test_only_addresses_of_the_web_and_of_files_are_taken(template):
    with pytest.raises(InputError, match='addresses of files begin'):
        LinkTemplate.parsed(template)


@pytest.mark.parametrize(
    ('value', 'address'),
    [
        ('https://example.org/a b?q=ä#x', 'https://example.org/a%20b?q=%C3%A4#x'),
        (' http://example.org/a%20b ', 'http://example.org/a%20b'),
        ('javascript:alert(1)', ''),
        ('file:///etc/passwd', ''),
        ('https://', ''),
        ('https://example.org/\x00', ''),
        ('java\nscript:alert(1)', ''),
        (['https://example.org/'], ''),
        (None, ''),
    ],
)
def test_a_document_names_its_own_address(value, address):
    assert web_address(value) == address


@pytest.fixture
def sync(tmp_path, monkeypatch, tiny_checkpoint, capsys):
    """Runs `index sync --corpus docs` with further flags; gives status and stderr."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path / 'docs', FILES)
    encoder = str(tiny_checkpoint())

    def run(*flags):
        line = ['index', 'sync', '--corpus', 'docs', '--index', 'mine', '--encoder', encoder]
        status = command.run(main, [*line, '--sparse', 'none', '--quiet', *flags])
        return status, capsys.readouterr().err

    return run


def addresses():
    """The addresses of the hits, by docid."""
    with Collection.open('mine') as collection:
        return {hit.docid: hit.url for hit in collection.search('cat')}


def test_hits_have_the_address_that_the_source_has_now(sync, tmp_path, capsys):
    sync()
    docs = (tmp_path / 'docs').as_uri()
    local = {'a%20b/pets#1.md': f'{docs}/a%20b/pets%231.md#at-night', 'run.py': f'{docs}/run.py'}
    assert addresses() == local
    sync('--url-prefix', SITE)
    site = {docid: address.replace(f'{docs}/', SITE) for docid, address in local.items()}
    assert addresses() == site
    sync()
    assert addresses() == site
    assert '(--url-prefix)' in sync('--url-prefix', 'javascript:x')[1]
    command.run(main, ['index', 'status', '--index', 'mine'])
    assert f'addresses: {SITE}' in capsys.readouterr().out
    check_collection(tmp_path / 'mine')
    sync('--url-prefix', '')
    assert addresses() == local


def test_a_hit_of_python_says_where_it_is(sync):
    sync('--url-prefix', f'{SITE}{{path}}')
    with Collection.open('mine') as collection:
        hits = {hit.docid: hit for hit in collection.search('cat')}
    hit = hits['a%20b/pets#1.md']
    assert (hit.title, hit.headings, hit.line) == ('Pets', ('At night',), 3)
    assert hit.url == excerpt_metadata(hit)['url'] == f'{SITE}a%20b/pets%231.md'


def test_the_address_of_a_document_comes_first(sync, tmp_path):
    page = '---\nurl: https://example.org/own\n---\nThe cat.\n'
    write_files(tmp_path / 'docs', {'own.md': page, 'bad.md': page.replace('https', 'javascript')})
    sync('--url-prefix', SITE)
    found = addresses()
    assert found['own.md'] == 'https://example.org/own'
    assert found['bad.md'] == f'{SITE}bad.md'
    with Collection.open('mine') as collection:
        collection.add([{'id': 'b', 'text': 'cat', 'url': 'http://b.example'}, ('c', 'cat')])
    assert {docid: addresses()[docid] for docid in 'bc'} == {'b': 'http://b.example', 'c': ''}


def test_the_terminal_prints_addresses_of_the_web(sync, capsys):
    search = ['search', '--index', 'mine', '--query', 'cat']
    sync()
    command.run(main, search)
    assert 'file:' not in capsys.readouterr().out
    sync('--url-prefix', SITE)
    command.run(main, search)
    assert f'\n      {SITE}a%20b/pets%231.md#at-night\n' in capsys.readouterr().out


def test_an_address_that_was_written_over_is_damage(sync, tmp_path):
    sync('--url-prefix', SITE)
    with sqlite3.connect(tmp_path / 'mine' / 'collection.sqlite') as store:
        store.execute("UPDATE source_links SET link = 'javascript:alert(1)'")
    with pytest.raises(DamagedFileError, match='links differ from the manifest'):
        check_collection(tmp_path / 'mine')
    with pytest.raises(DamagedFileError, match='the addresses of source'):
        addresses()


@pytest.mark.parametrize(
    ('flags', 'shows'),
    [
        ((), True),
        (('--host', 'localhost'), True),
        (('--host', '0.0.0.0'), False),
        (('--host', '0.0.0.0', '--allowed-hosts'), False),
        (('--allowed-hosts', 'search.example.org'), False),
        (('--host', '0.0.0.0', '--mcp', 'stdio'), True),
    ],
)
def test_files_are_for_the_user_of_this_machine(flags, shows):
    options = make_parser().parse_args(['--index', 'mine', *flags])
    assert _settings(options).shows_files is shows


@pytest.mark.parametrize('shows', [False, True])
def test_a_service_gives_addresses(sync, tmp_path, shows):
    sync()
    index = IndexSettings(path=str(tmp_path / 'mine'))
    settings = ServeSettings(indexes={'mine': index}, shows_files=shows)
    expected = (tmp_path / 'docs' / 'run.py').as_uri() if shows else ''
    with ready_client(settings) as client:
        hits = client.get('/v1/mine/search?query=cat').json()['candidates']
        (address,) = [hit['url'] for hit in hits if hit['docid'] == 'run.py']
        assert address == expected
        assert client.get('/v1/mine/outline/run.py').json()['url'] == expected
