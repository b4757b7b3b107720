"""A passage knows its headings, and its line in the file; hits show both."""

import contextlib
import sqlite3

import pyarrow as pa
import pytest
from folders import write_files
from pyarrow import parquet

from pyserini_repbert.collection import source_files
from pyserini_repbert.collection.answering_parts import PassagePart, answering_part
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.excerpts import answering_excerpts, read_excerpts
from pyserini_repbert.collection.files.line_reader import LineReader
from pyserini_repbert.commands import command
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.commands.terminal import hits_text
from pyserini_repbert.data.copies import distinct_hits
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.origins import Origin, PageStart
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.interop.hits import excerpt_metadata
from pyserini_repbert.ranking import Candidate, Ranking

PAGE = """\
---
year: 2024
---
# Deploy

A cat sat on a mat in the sun.

## Docker

A dog ran in a park with a cat.

### Ports

The cat ran in the sun on a mat.
"""


@pytest.fixture
def collection(tmp_path, open_collection):
    """A collection of docs/page.md, whose sections are passages."""
    folder = write_files(tmp_path / 'docs', {'a/page.md': PAGE})
    with open_collection(passage_tokens=15, overlap=0) as collection:
        collection.sync(folder)
        yield collection


def change(folder, statement):
    with contextlib.closing(sqlite3.connect(folder / 'collection.sqlite')) as connection:
        connection.execute(statement)
        connection.commit()


def excerpts(collection):
    (found,) = read_excerpts(collection.generation, {0: range(3)}).values()
    return found


def test_passages_begin_with_headings_and_know_them(collection):
    found = [(own.headings, own.anchor, own.line, own.text) for own in excerpts(collection)]
    assert found == [
        ((), '', 6, 'A cat sat on a mat in the sun.'),
        (('Docker',), 'docker', 8, 'Docker\n\nA dog ran in a park with a cat.'),
        (('Docker', 'Ports'), 'ports', 12, 'Ports\n\nThe cat ran in the sun on a mat.'),
    ]
    assert {own.file for own in excerpts(collection)} == {'a/page.md'}
    check_collection(collection.folder)


def test_a_rebuild_cuts_at_headings_too(collection, open_collection):
    with open_collection(passage_tokens=16, overlap=0) as again:
        again.sync(collection.folder.parent / 'docs', rebuild=True)
        assert [own.line for own in excerpts(again)] == [6, 8, 12]
        check_collection(again.folder)


RECORDS = {
    'a.jsonl': '{"id": "1", "text": "The cat ran in the sun."}\n',
    'b.json': '[\n{"id": "2", "text": "A dog ran in a park."}]',
    'c.md': 'A cat ran.\n',
    'd.html': '<p>A dog ran.',
}


def test_the_first_passage_of_a_record_shows_its_line(tmp_path, open_collection):
    """Only a docid that is the path of a file says where the passage is."""
    folder = write_files(tmp_path / 'docs', RECORDS)
    (tmp_path / 'rows').mkdir()
    table = pa.table({'id': ['y', 'x'], 'text': ['A mat.', 'A cat sat on a mat.']})
    parquet.write_table(table, tmp_path / 'rows' / 'e.parquet')
    with open_collection() as collection:
        collection.sync(folder, prefix='notes/')
        collection.sync(tmp_path / 'rows')
        shown = {}
        for hit in collection.search('cat', 9):
            lines = hits_text('cat', [hit]).split('\n')
            shown[hit.docid] = lines[2:-1]
    assert shown == {
        'notes/1': ['      a.jsonl:1'],
        'notes/b.json#2': ['      b.json:2'],
        'notes/c.md': [],
        'notes/d': [],
        'e.parquet#x': ['      e.parquet, row 2'],
        'e.parquet#y': ['      e.parquet, row 1'],
    }


def test_hits_show_headings_and_lines(collection):
    hits = list(collection.search('ran', 1))
    (hit,) = hits
    passage = hit.excerpts[0]
    line = f'      {" › ".join(passage.headings)} (a/page.md:{passage.line})'
    assert passage.headings
    assert line in hits_text('ran', hits).split('\n')
    metadata = excerpt_metadata(hit)
    assert metadata['headings'] == list(passage.headings)
    assert (metadata['file'], metadata['line']) == ('a/page.md', passage.line)


def test_a_heading_that_moves_encodes_nothing(collection):
    page = PAGE.replace('### Ports', '## Ports').replace('# Deploy\n', '# Deploy\n\n')
    folder = write_files(collection.folder.parent / 'docs', {'a/page.md': page})
    changes = collection.sync(folder)
    assert (changes.changed, changes.unchanged, changes.encoded) == (0, 1, 0)
    assert [(own.headings, own.line) for own in excerpts(collection)] == [
        ((), 7),
        (('Docker',), 9),
        (('Ports',), 13),
    ]


def add_as_text(reader, level, title, anchor, row):
    if level > 1:
        reader.page.add_block([title], row + 1)
    else:
        reader.page.title = title


def test_headings_of_an_earlier_release_are_added_without_encoding(
    tmp_path, monkeypatch, open_collection
):
    page = 'Cat\n===\n\nA cat sat.\n\nDog\n---\n\nA dog ran in a park.\n'
    folder = write_files(tmp_path / 'pages', {'a.rst': page})
    with open_collection(passage_tokens=8, overlap=0) as collection:
        with monkeypatch.context() as earlier:
            earlier.setattr(LineReader, 'add_heading', add_as_text)
            earlier.setattr(source_files, 'installed_versions', str)
            collection.sync(folder)
        changes = collection.sync(folder)
        assert (changes.changed, changes.unchanged, changes.encoded) == (0, 1, 0)
        (found,) = read_excerpts(collection.generation, {0: range(2)}).values()
        assert [(own.headings, own.anchor, own.line) for own in found] == [
            ((), '', 4),
            # As it was cut before: not at the heading.
            (('Dog',), 'dog', 9),
        ]
        check_collection(collection.folder)


@pytest.mark.parametrize(
    ('statement', 'said'),
    [
        ("UPDATE origins SET file = 'b.md'", 'the place of document'),
        ('DELETE FROM origins', 'the places of documents in their sources differ'),
        ("UPDATE source_syncs SET unread = 'x'", 'the last sync of source'),
    ],
)
def test_damage_is_found(collection, statement, said):
    folder = collection.folder
    collection.close()
    change(folder, statement)
    with pytest.raises(DamagedFileError, match=said):
        check_collection(folder)


def test_a_source_of_an_earlier_release_is_read_anew_once(
    tmp_path, monkeypatch, checkpoint, capsys
):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path / 'docs', {'a.md': '# T\n\nA *cat*.', 'b.md': 'A dog.'})
    line = ['index', 'sync', '--corpus', 'docs', '--index', 'mine', '--encoder', checkpoint]
    line += ['--sparse', 'none', '--quiet']
    command.run(main, line)
    change(tmp_path / 'mine', "UPDATE source_formats SET format = 'files'")
    write_files(tmp_path / 'docs', {'a.md': '# T\n\nA *dog*.'})
    capsys.readouterr()
    command.run(main, line)
    assert capsys.readouterr().err == (
        'docs was read again, once: this release reads files that are marked up (Markdown, '
        'reStructuredText, HTML, …) as a person reads them, and gives rows of tables a '
        'title, and mails their sender\n'
    )
    write_files(tmp_path / 'docs', {'a.md': '# T\n\nA *mat*.'})
    command.run(main, line)
    assert capsys.readouterr().err == ''


SECTIONS = """\
# Cat

## Sun

A cat sat.

## Dog

A cat.

## Mat

Mat.
"""


@pytest.mark.parametrize(
    ('question', 'heading', 'line'),
    [
        ('dogs', 'Dog', 7),
        # Of several with the words, the one with the rarest; without any, the longest.
        ('cat mat', 'Mat', 11),
        ('fox', 'Sun', 3),
        ('', 'Sun', 3),
    ],
)
def test_a_hit_shows_the_section_that_answers(tmp_path, open_collection, question, heading, line):
    """The longest section of a passage was shown, whatever the question."""
    folder = write_files(tmp_path / 'docs', {'page.md': SECTIONS})
    with open_collection(passage_tokens=40, overlap=0) as collection:
        collection.sync(folder)
        ((passage,),) = read_excerpts(collection.generation, {0: [0]}, question).values()
    assert passage.headings == (heading,)
    assert passage.anchor == heading.lower()
    assert passage.line == line
    start, end = passage.shown_span
    assert passage.text[start:end].startswith(heading)
    # The heading stands above it, and is not said twice.
    assert passage.shown_text == passage.text[start + len(heading) + 2 : end]
    assert passage.text.startswith('Sun')
    assert passage.text.endswith('Mat.')
    hit = Candidate('page.md', 1.0, excerpts=(passage,))
    assert ('A cat.' in hits_text(question, [hit])) == (heading == 'Dog')


def test_a_hit_of_a_program_shows_the_function_that_answers(tmp_path, open_collection):
    """It showed the passage from its first line, as one line of text."""
    lines = ['def one():', '    1', '', '', 'def two():', '    dog']
    folder = write_files(tmp_path / 'docs', {'run.py': '\n'.join(lines)})
    with open_collection(passage_tokens=60, overlap=0) as collection:
        collection.sync(folder)
        (hit,) = collection.search('dog')
    assert hit.excerpts[0].line == 5
    shown = hits_text('dog', [hit]).splitlines()
    assert shown[2:] == ['      run.py:5', '      def two():', '          dog']


def test_a_document_of_a_title_alone_has_no_nearest_sentence(open_collection):
    """Its sentence was empty."""
    with open_collection() as collection:
        collection.add([{'id': 'a', 'title': 'cat', 'text': ''}, {'id': 'b', 'text': 'A cat sat.'}])
        reasons = collection.searcher().dense.reasons('cat', ['a', 'b'])
    assert list(reasons) == ['b']


def test_files_with_the_same_text_are_one_hit_with_two_places(tmp_path, open_collection):
    files = {
        'a/cat.md': '# Cat\n\nA cat sat.\n',
        'b/cat.md': '# Cat\n\nA cat sat.\n',
        'c.md': 'Dog',
    }
    folder = write_files(tmp_path / 'docs', files)
    with open_collection() as collection:
        collection.sync(folder)
        ranking = Ranking.of(collection.search('cat'))
    assert sorted(ranking.docids) == ['a/cat.md', 'b/cat.md', 'c.md']
    distinct = distinct_hits(ranking, 3, lambda hits: hits)
    shown = hits_text('cat', distinct.hits, copies=distinct.copies).splitlines()
    assert sorted(line.split()[1] for line in shown if '. ' in line[:6]) == ['a/cat.md', 'c.md']
    assert '      the same in b/cat.md' in shown


def test_a_person_is_shown_the_passage_whose_words_and_headings_answer(tmp_path, open_collection):
    """The nearest vector alone decided, and rerankers still read that passage."""
    folder = write_files(tmp_path / 'docs', {'page.md': SECTIONS})
    with open_collection(passage_tokens=5, overlap=0) as collection:
        collection.sync(folder)
        generation = collection.generation
        n_passages = len(generation.passages([0])[0])
        assert n_passages >= 3
        scores = {0: {number: 0.5 - number / 10 for number in range(n_passages)}}
        for question, heading in (('dog', 'Dog'), ('mat', 'Mat'), ('fox', 'Sun')):
            ((passage,),) = answering_excerpts(generation, scores, question).values()
            assert passage.headings == (heading,)
        with contextlib.closing(collection.searcher()) as searcher:
            ranking = Ranking(['page.md'], [1.0])
            by_vectors = searcher.dense.excerpts('mat', ['page.md'])['page.md']
            (hit,) = searcher.with_stored_texts('mat', ranking)
            assert hit.excerpts == by_vectors
            (hit,) = searcher.with_shown_texts('mat', ranking)
            assert hit.excerpts[0].anchor == 'mat'
            # A document that is searched for has no words.
            likeness = searcher.by_documents()
            (hit,) = likeness.with_shown_texts('page.md', ranking)
            assert hit.excerpts == likeness.with_stored_texts('page.md', ranking)[0].excerpts


def part(number, text, headings=''):
    return PassagePart(number, row=0, text=text, headings=headings)


@pytest.mark.parametrize(
    ('scores', 'parts', 'expected'),
    [
        # (1 + 0) / 2 against (0.8 + 1) / 2, and against (-1 + 1) / 2.
        ({0: 0.5, 1: 0.4}, [part(0, 'dog'), part(1, 'cat')], 1),
        ({0: 0.5, 1: -0.5}, [part(0, 'dog'), part(1, 'cat')], 0),
        # Of equal ones, the longer, then the nearer.
        ({0: 0.5, 1: 0.0}, [part(0, 'dog'), part(1, 'cats')], 1),
        ({0: 0.5, 1: 0.0}, [part(0, 'dog'), part(1, 'cat')], 0),
        # A heading counts twice.
        ({0: 0.5, 1: 0.5}, [part(0, 'a cat sat here'), part(1, 'it', 'Cat')], 1),
        # Without words, the nearest passage; with nothing above the background, words alone.
        ({0: 0.2, 1: 0.3}, [part(0, 'a long dog'), part(1, 'dog')], 1),
        ({0: -0.1, 1: -0.2}, [part(0, 'a long dog'), part(1, 'cat')], 1),
    ],
)
def test_vectors_and_words_choose_the_part(scores, parts, expected):
    assert answering_part('cats', scores, parts) is parts[expected]


def test_a_hit_names_the_printed_page_that_answers(tmp_path, open_collection):
    """A passage over two pages named the first, whatever the question."""
    text = 'The rent is due.\n\nDogs need consent.'
    origin = Origin('lease.pdf', pages=(PageStart(0, 1), PageStart(18, 2)))
    with open_collection(passage_tokens=40, overlap=0) as collection:
        collection.sync([Document('lease.pdf', text, origin=origin)])
        for question, page, shown in (('dogs', 2, 'Dogs need consent.'), ('rent', 1, text[:16])):
            ((passage,),) = read_excerpts(collection.generation, {0: [0]}, question).values()
            assert passage.anchor == f'page={page}'
            assert passage.shown_text.strip() == shown
            hit = Candidate('lease.pdf', 1.0, excerpts=(passage,))
            assert f'      lease.pdf, page {page}' in hits_text(question, [hit])


def test_a_hit_names_all_printed_pages_where_no_word_tells(tmp_path, open_collection):
    """Of a question in other words, the longest page was named and shown, whatever it said."""
    text = 'The rent for the room is due.\n\nNo pets.\n\nAsk.'
    origin = Origin('lease.pdf', pages=(PageStart(0, 1), PageStart(31, 2), PageStart(41, 4)))
    with open_collection(passage_tokens=60, overlap=0) as collection:
        collection.sync([Document('lease.pdf', text, origin=origin)])
        searcher = collection.searcher()
        (passage,) = searcher.dense.answering_excerpts('dogs', ['lease.pdf'])['lease.pdf']
        assert (passage.anchor, passage.last_page, passage.shown_text) == ('page=1', 4, text)
        hit = Candidate('lease.pdf', 1.0, excerpts=(passage,))
        assert '      lease.pdf, pages 1 to 4' in hits_text('dogs', [hit])
        (passage,) = searcher.dense.answering_excerpts('pets', ['lease.pdf'])['lease.pdf']
        assert (passage.anchor, passage.last_page) == ('page=2', None)
