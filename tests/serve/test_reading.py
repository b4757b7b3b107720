"""A long document in parts: each follows the other, and the outline says where to jump."""

from urllib.parse import quote

import pytest
from folders import write_files
from ready_services import ready_client

from pyserini_repbert.collection import Collection
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.origins import Heading, Origin, PageStart
from pyserini_repbert.serve.reading import PartRequest, find_part, outline_of
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings
from tests.collection.files.mixed_files import MAIL

SECTION = '## {name}\n\nThe {name} ran on the red mat.\n\n'
NAMES = ('cat', 'dog', 'fish', 'bird')
PAGE = '# Pets\n\n' + ''.join(SECTION.format(name=name) for name in NAMES)


def asked(start=None, end=None, at=None, characters=100):
    return PartRequest(start, end, at, characters)


@pytest.mark.parametrize('characters', [1, 7, 100, 1000])
@pytest.mark.parametrize('text', ['word ' * 200, 'line\n' * 200, 'x' * 990 + ' 🐈', ''])
def test_parts_follow_each_other_in_both_directions(text, characters):
    forwards = []
    start = 0
    while start < len(text):
        part = find_part(text, asked(start=start, characters=characters))
        assert part.start == start < part.end
        forwards.append(text[part.start : part.end])
        start = part.end
    assert ''.join(forwards) == text
    backwards = []
    end = len(text)
    while end:
        part = find_part(text, asked(end=end, characters=characters))
        assert part.start < part.end == end
        backwards.append(text[part.start : part.end])
        end = part.start
    assert ''.join(reversed(backwards)) == text


@pytest.mark.parametrize('at', [0, 1, 499, 500, 998, 999])
@pytest.mark.parametrize('characters', [1, 8, 100, 5000])
def test_a_part_holds_the_character_that_is_named(at, characters):
    text = 'some line\n' * 100
    part = find_part(text, asked(at=at, characters=characters))
    assert part.start <= at < part.end


def test_parts_are_cut_at_lines():
    text = 'a line of text\n' * 100
    part = find_part(text, asked(at=700))
    assert text[part.start - 1] == text[part.end - 1] == '\n'


def test_beyond_the_end_there_is_nothing():
    assert find_part('short', asked(start=99)).start == 5
    assert find_part('short', asked(at=99)).end == 5


def test_an_outline_of_many_headings_leaves_out_the_lower_levels():
    headings = []
    for number in range(3000):
        level = 1 if number % 3 == 0 else 2
        headings.append(Heading(number, level, f'heading {number}', ''))
    assert [heading.level for heading in outline_of(headings)] == [1] * 1000
    assert len(outline_of(headings[:1500])) == 1500


@pytest.fixture
def client(tiny_checkpoint, tmp_path):
    """A client of a service of a page, a program and a record."""
    files = {
        'pets.md': PAGE,
        'run.py': 'def run():\n    return cat\n',
        'code.md': 'Run:\n\n```\nx = 1\n```\n',
        'Backup docs/100% wool.txt': 'The sheep ran.',
        'tape.eml': MAIL,
        'prices.csv': 'name,price\nhoe,12\nfork,9\n',
    }
    docs = write_files(tmp_path / 'docs', files)
    with Collection.open(
        tmp_path / 'mine',
        encoder=str(tiny_checkpoint('encoder')),
        sparse='none',
        passage_tokens=12,
        overlap=0,
    ) as collection:
        collection.sync(docs)
        collection.add([{'id': 'bare', 'text': '', 'lang': 'de'}])
    index = IndexSettings(path=str(tmp_path / 'mine'))
    with ready_client(ServeSettings(indexes={'mine': index})) as client:
        yield client


def test_a_document_is_read_part_by_part(client):
    whole = client.get('/v1/mine/doc/pets.md').json()['doc']['text']
    first = client.get('/v1/mine/text/pets.md?characters=40').json()
    assert (first['start'], first['length']) == (0, len(whole))
    rest = client.get(f'/v1/mine/text/pets.md?start={first["end"]}&query=dogs').json()
    assert first['text'] + rest['text'] == whole
    words = [whole[start:end] for start, end in rest['words']]
    assert words and set(words) == {'dog'}
    before = client.get(f'/v1/mine/text/pets.md?end={first["end"]}').json()
    assert before['text'] == first['text']
    assert client.get('/v1/mine/text/bare').json()['text'] == ''
    assert first['code'] == []
    part = client.get('/v1/mine/text/code.md').json()
    assert [part['text'][start:end] for start, end in part['code']] == ['x = 1']


def test_the_outline_has_headings_and_the_best_passages(client):
    whole = client.get('/v1/mine/doc/pets.md').json()['doc']['text']
    outline = client.get('/v1/mine/outline/pets.md?query=fish&passages=3').json()
    assert (outline['title'], outline['file'], outline['is_code']) == ('Pets', 'pets.md', False)
    titles = []
    for heading in outline['headings']:
        title = heading['title']
        titles.append(title)
        assert whole[heading['start'] :].startswith(title)
    assert titles == list(NAMES)
    (hit,) = client.get('/v1/mine/search?query=fish&hits=1').json()['candidates']
    starts = [passage['start'] for passage in outline['passages']]
    assert len(starts) == 3 and starts == sorted(starts)
    by_rank = {passage['rank']: passage for passage in outline['passages']}
    if hit['docid'] == 'pets.md':
        assert by_rank[1]['start'] == hit['passage']['shown'][0]
    assert client.get('/v1/mine/outline/pets.md').json()['passages'] == []
    assert client.get('/v1/mine/outline/run.py').json()['is_code'] is True


def test_the_outline_of_a_row_says_where_it_is_in_its_file(client):
    """A table's row did not."""
    row = client.get('/v1/mine/outline/prices.csv%232').json()
    assert (row['file'], row['line'], row['row']) == ('prices.csv', 3, None)
    page = client.get('/v1/mine/outline/bare').json()
    assert (page['file'], page['line'], page['row']) == ('', None, None)


def test_the_outline_of_a_mail_says_who_wrote_it_and_when(client):
    """The reader of the page could not show it."""
    fields = client.get('/v1/mine/outline/tape.eml?fields=from,to,date').json()['fields']
    assert fields == {
        'from': 'Ada <ada@example.org>',
        'to': 'bob@example.org',
        'date': '2024-01-01T10:00:00+00:00',
    }
    assert fields.items() <= client.get('/v1/mine/outline/tape.eml').json()['fields'].items()
    assert fields.items() <= client.get('/v1/mine/doc/tape.eml').json()['doc'].items()
    assert client.get('/v1/mine/outline/tape.eml?fields=').json()['fields'] == {}


def test_a_hit_over_several_printed_pages_has_the_last_one(tiny_checkpoint, tmp_path):
    """Clients heard of the first alone."""
    text = 'The rent for the room is due.\n\nNo pets.\n\nAsk.'
    origin = Origin('lease.pdf', pages=(PageStart(0, 2), PageStart(31, 3), PageStart(41, 4)))
    folder = tmp_path / 'mine'
    with Collection.open(
        folder,
        encoder=str(tiny_checkpoint('encoder')),
        sparse='none',
        passage_tokens=60,
        overlap=0,
    ) as collection:
        collection.sync([Document('lease.pdf', text, origin=origin)])
    index = IndexSettings(path=str(folder))
    with ready_client(ServeSettings(indexes={'mine': index})) as client:
        pages = []
        for question in ('dogs', 'pets'):
            (hit,) = client.get(f'/v1/mine/search?query={question}').json()['candidates']
            pages.append((hit['passage']['anchor'], hit['passage']['last_page']))
    assert pages == [('page=2', 4), ('page=3', None)]


@pytest.mark.parametrize('named', ['Backup docs/100% wool.txt', 'Backup%20docs/100%25%20wool.txt'])
def test_a_document_is_named_as_it_is_stored_or_as_it_is_read(client, named):
    """What people see, 'Backup docs/100% wool.txt', was not found."""
    stored = 'Backup%20docs/100%25%20wool.txt'
    for route in ('doc', 'text', 'outline'):
        answer = client.get(f'/v1/mine/{route}/{quote(named)}')
        assert (answer.status_code, answer.json().get('docid')) == (200, stored)
    alike = client.get('/v1/mine/search', params={'like': named}).json()
    assert alike['query']['like'] == stored
    question = {'query': 'sheep', 'docid': named}
    (reasons,) = client.get('/v1/mine/explain', params=question).json()['reasons']
    assert reasons['docid'] == stored


def test_what_cannot_be_read_is_refused(client):
    refused = client.get('/v1/mine/text/pets.md?start=1&end=2')
    assert refused.status_code == 400
    assert refused.json()['error'] == "'start' and 'end' were given: give one of them"
    assert client.get('/v1/mine/text/pets.md?characters=99999').status_code == 400
    assert client.get('/v1/mine/text/pets.md?start=-1').status_code == 400
    assert client.get('/v1/mine/text/none').status_code == 404
    assert client.get('/v1/mine/outline/none').status_code == 404


SECTIONS = """\
# Pets

## Cat

A cat sat on the mat.

## Dog

It ran. It sat.

## Fish

Fish swim.
"""


def test_a_hit_its_reason_its_document_and_what_is_judged_show_one_section(
    tiny_checkpoint, tmp_path, serving_path
):
    """A hit showed the section, a reason the nearest sentence of the passage, a judge all of it."""
    docs = write_files(tmp_path / 'docs', {'pets.md': SECTIONS, 'copy/pets.md': SECTIONS})
    with Collection.open(
        tmp_path / 'mine', encoder=str(tiny_checkpoint('encoder')), sparse='none'
    ) as collection:
        collection.sync(docs)
    client = serving_path(tmp_path / 'mine')
    whole = client.get('/v1/mine/doc/pets.md').json()['doc']['text']
    (hit, _) = client.get('/v1/mine/search?query=dogs&display=true').json()['candidates']
    start, end = hit['passage']['shown']
    assert whole[start:end].split() == ['Dog', 'It', 'ran.', 'It', 'sat.']
    assert hit['passage']['start'] <= start < end <= hit['passage']['end']
    # Its heading stands above.
    assert hit['passage']['headings'] == ['Dog']
    assert ''.join(part['text'] for part in hit['display']).split()[0] == 'It'
    outline = client.get('/v1/mine/outline/pets.md?query=dogs').json()
    assert {'start': start, 'end': end, 'rank': 1} in outline['passages']
    asked = {'query': 'dogs', 'docid': 'pets.md'}
    (reason,) = client.get('/v1/mine/explain', params=asked).json()['reasons']
    assert reason['sentence'] in ('It ran.', 'It sat.')
    assert whole[reason['start'] : reason['end']] == reason['sentence']
    assert start < reason['start']
    pool = client.post('/v1/mine/pools', json={'question': 'dogs'}).json()['documents']
    assert [document['headings'] for document in pool] == [['Dog'], ['Dog']]
    assert [document['text'].split() for document in pool] == [['It', 'ran.', 'It', 'sat.']] * 2
    # Both have one text.
    assert [document['same_as'] for document in pool] == [None, pool[0]['docid']]
