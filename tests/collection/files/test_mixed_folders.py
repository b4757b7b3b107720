"""A folder of files of all kinds: each is read by its own kind, or named."""

import codecs
import gzip
import json

import pyarrow
import pytest
from folders import write_files
from hypothesis import HealthCheck, given, settings, strategies as st
from pyarrow import parquet

from pyserini_repbert.collection.files import folder_corpus
from pyserini_repbert.collection.files.office_documents import can_read_office
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.file_selection import FileSelection
from pyserini_repbert.data.passages import BadFiles
from pyserini_repbert.errors import InputError
from pyserini_repbert.names.corpora import open_corpus
from tests.collection.files.mixed_files import MAIL, MAILBOX, MIXED, NOTEBOOK, UNREAD


def documents(path, **options):
    return list(open_corpus(path, keep_empty=True, **options).documents())


@pytest.mark.parametrize('name', MIXED)
def test_a_file_of_each_kind(tmp_path, name):
    """Beside another kind, so that the folder is mixed."""
    content, docid, title, text = MIXED[name]
    write_files(tmp_path, {'0.md': 'x', '1.html': 'x', name: content})
    found = {document.docid: document for document in documents(tmp_path)}
    assert found[docid].title == title
    assert text in found[docid].text


def test_all_kinds_in_one_folder(tmp_path):
    write_files(tmp_path, {name: values[0] for name, values in MIXED.items()})
    corpus = open_corpus(tmp_path)
    expected = {docid for _, docid, _, _ in MIXED.values()} | {'s.mbox#2'}
    assert {document.docid for document in corpus.documents()} == expected
    assert {passage.docid for passage in corpus} == expected
    assert str(corpus.unread) == ''


@pytest.mark.parametrize('name', UNREAD)
def test_a_file_that_is_not_read_is_counted(tmp_path, name):
    """A stray file refused the folder, or was left out without a word."""
    content, counted = UNREAD[name]
    write_files(tmp_path, {'0.md': 'x', '1.html': 'x', name: content})
    corpus = open_corpus(tmp_path, keep_empty=True)
    assert [document.docid for document in corpus.documents()] == ['0.md', '1']
    assert str(corpus.unread) == f'not read: {counted}'


@pytest.mark.skipif(can_read_office(), reason='the extra files is installed')
def test_a_file_that_needs_the_extra_says_what_to_install(tmp_path):
    """It was "expected 'docid<TAB>text'", and an empty collection with on_error=skip."""
    write_files(tmp_path, {'a.md': 'x', 'b.pdf': '%PDF-1.4', 'c.PDF': '%PDF-1.4'})
    unread = open_corpus(tmp_path).unread
    assert str(unread) == "not read: 2 .pdf (pip install '.[files]')"
    for on_error in ('refuse', 'skip'):
        with pytest.raises(InputError, match=r"b\.pdf cannot be read: pip install '.*\[files\]'"):
            open_corpus(tmp_path / 'b.pdf', on_error=on_error)


@pytest.mark.parametrize(
    ('name', 'content', 'reason'),
    [
        ('a.zip', b'PK\x03\x04\0', 'no reader reads .zip files'),
        ('image', b'\x89PNG\0', 'no reader reads such files'),
        ('a.ipynb', b'{}', "it has no list of 'cells'"),
        ('a.eml', b'\n', 'not a mail: it has no header'),
        ('a.json', b'{\n"a": 1\n}', 'it holds no records of documents'),
        ('a.json', b'{\n// x\n"a": [1, "//",], /* y */\n}', 'it holds no records of documents'),
        ('a.csv', b'a,b\n', 'it has no text'),
        ('a.py', b'\xff\xfe\xff', 'not valid UTF-16'),
        ('a.py', b'a\0b', 'bytes that are zero'),
    ],
)
def test_a_file_named_by_itself_that_cannot_be_read(tmp_path, name, content, reason):
    path = tmp_path / name
    path.write_bytes(content)
    for on_error in ('refuse', 'skip'):
        with pytest.raises(InputError, match=rf'cannot be read: .*{reason}'):
            list(open_corpus(path, on_error=on_error).documents())


@pytest.mark.parametrize('name', ['m.csv', 'k.json', 'o.tsv'])
def test_one_table_has_its_own_docids(tmp_path, name):
    content, docid, _, _ = MIXED[name]
    write_files(tmp_path, {name: content})
    (document,) = documents(tmp_path / name)
    assert document.docid == docid.partition('#')[2]


def test_columns_become_titles_texts_and_fields(tmp_path):
    write_files(
        tmp_path,
        {'a.csv': 'ID,Title,Body,price,ripe,code\nx 1,T,B,3.5,true,02134\nx 1,,,4,,\n\n'},
    )
    assert documents(tmp_path / 'a.csv') == [
        Document('x%201', 'B', 'T', {'price': 3.5, 'ripe': True, 'code': '02134'}),
        Document('a.csv#2', 'price: 4', '', {'price': 4}),
    ]
    (first, _) = documents(tmp_path / 'a.csv', fields=['code', 'Body'])
    assert first.text == '02134\n\nB'
    with pytest.raises(InputError, match="it has no column 'none', but ID, Title"):
        documents(tmp_path / 'a.csv', fields=['none'])


def test_columns_of_one_name_are_told_apart(tmp_path):
    """The last one counted, and the others were lost."""
    write_files(tmp_path, {'a.csv': 'id,tag,text,tag,\n1,x,T,y,z\n'})
    (document,) = documents(tmp_path / 'a.csv')
    assert document == Document('1', 'T', '', {'tag': 'x', 'tag_4': 'y', 'column 5': 'z'})


@pytest.mark.parametrize('identifier', ['1.5', 'true', '["a"]'])
def test_an_id_that_is_none_stays_a_field(tmp_path, identifier):
    """It was lost."""
    write_files(tmp_path, {'a.json': f'[{{"id": {identifier}, "text": "T"}}]'})
    (document,) = documents(tmp_path / 'a.json')
    assert document == Document('a.json#1', 'T', '', {'id': json.loads(identifier)})


@pytest.mark.parametrize(
    ('name', 'content', 'line'),
    [
        # The other rows became part of the first one's text.
        ('a.csv', 'id,text\n1,"one\n2,two\n3,three\n', 2),
        ('a.tsv', 'id\ttext\ttag\n1\tone\tx\n2\t"two\ty\n3\t"three"\tz\n', 3),
    ],
)
def test_a_stray_quotation_mark_takes_no_rows(tmp_path, name, content, line):
    write_files(tmp_path, {name: content})
    with pytest.raises(InputError, match=f'cannot be read: line {line}: a quotation mark joins'):
        documents(tmp_path / name)


def test_quotation_marks_within_a_line_do_no_harm(tmp_path):
    write_files(tmp_path, {'a.csv': 'id,text\n1,5" and "6"\n2,"x" y\n3,"a ""b""\nc"\n'})
    texts = [document.text for document in documents(tmp_path / 'a.csv')]
    assert texts == ['5" and "6"', 'x y', 'a "b"\nc']


def test_a_table_in_utf_16(tmp_path):
    """It was "no text: it has bytes that are zero", which a text in UTF-16 is not."""
    (tmp_path / 'a.csv').write_bytes('id,text\r\n1,Große Gärten\r\n'.encode('utf-16'))
    (document,) = documents(tmp_path / 'a.csv')
    assert (document.docid, document.text) == ('1', 'Große Gärten')


def test_a_large_file_that_is_read_twice_skips_the_same_lines_twice(tmp_path, monkeypatch):
    """A docid that a file has twice came twice."""
    monkeypatch.setattr(folder_corpus, '_MOST_HELD', 3)
    lines = ['{"id": "a", "text": "one"}', '{"id": "a", "text": "two"}', '{"id": "b"}']
    lines.append('{"id": "c", "text": "three"}')
    write_files(tmp_path, {'0.md': 'x', 'a.jsonl': '\n'.join(lines)})
    corpus = open_corpus(tmp_path, on_error='skip').by_file(BadFiles.KEEP)
    assert [document.docid for document in corpus.documents()] == ['0.md', 'a', 'c']
    assert corpus.skipped == 2


def test_rows_of_parquet(tmp_path):
    table = pyarrow.table({'id': ['a', 'b'], 'text': ['One.', 'Two.'], 'year': [1, None]})
    parquet.write_table(table, tmp_path / 'a.parquet')
    write_files(tmp_path, {'b.md': 'x'})
    assert documents(tmp_path)[:2] == [
        Document('a.parquet#a', 'One.', '', {'year': 1}),
        Document('a.parquet#b', 'Two.'),
    ]
    assert [document.docid for document in documents(tmp_path / 'a.parquet')] == ['a', 'b']


def test_a_cell_of_a_notebook_that_holds_a_fence(tmp_path):
    """The rest of its code was read as Markdown: as a heading."""
    cells = [{'cell_type': 'code', 'source': 'x = """\n```\n# T\n"""'}]
    write_files(tmp_path, {'a.ipynb': json.dumps({'cells': cells})})
    (document,) = documents(tmp_path)
    assert document.text == 'x = """\n```\n# T\n"""'
    assert document.origin.headings == ()


def test_fields_of_mail(tmp_path):
    write_files(tmp_path, {'r.eml': MIXED['r.eml'][0]})
    (document,) = documents(tmp_path)
    assert document.fields == {
        'from': 'Ada <ada@example.org>',
        'to': 'bob@example.org',
        'date': '2024-01-01T10:00:00+00:00',
        'message_id': '1@example.org',
    }


@pytest.mark.parametrize(
    ('name', 'content', 'title', 'text'),
    [
        ('a.rst', 'One\n===\n\nText.', 'One', 'Text.'),
        ('a.rst', '.. _label:\n\n:orphan:\n\nOne\n~~~\nText.', 'One', 'Text.'),
        ('a.rst', 'Text.\n\nOne\n===\n', 'One', 'Text.\n\nOne'),
        ('a.rst', 'Longer than\n===\n\nText.', 'a', 'Longer than'),
        ('a.rst', '=====\n One\n=====\n\nText.', 'One', 'Text.'),
        ('a.adoc', 'Text.\n\n= Late', 'a', 'Text.'),
        ('a.adoc', '# One\n\nText.', 'One', 'Text.'),
        ('a.org', 'Text.\n* Late', 'a', 'Text.'),
        ('a.org', '* One\n#+TITLE: Two\nText.', 'Two', 'Text.'),
    ],
)
def test_titles_by_the_rules_of_a_format(tmp_path, name, content, title, text):
    write_files(tmp_path, {name: content})
    (document,) = documents(tmp_path)
    assert document.title == title
    assert document.text.startswith(text) or text in document.text


def test_text_files_are_lines_only_where_all_of_them_are(tmp_path):
    """The first one decided for all."""
    write_files(tmp_path, {'a.txt': 'd1\tone\n', 'b.txt': 'd2\ttwo\n', 'c.md': 'x'})
    assert [document.docid for document in documents(tmp_path)] == ['d1', 'd2', 'c.md']
    write_files(tmp_path, {'d.txt': 'Prose of words.\n'})
    docids = [document.docid for document in documents(tmp_path)]
    assert docids == ['a.txt', 'b.txt', 'c.md', 'd.txt']


def test_packed_files_beside_text_are_no_disk_of_trec(tmp_path):
    """They were refused as documents of TREC disks that cannot be unpacked."""
    write_files(tmp_path, {'notes.txt': 'Words of mine.', 'old.bz2': b'BZh9', 'b.Z': 'x'})
    assert [document.docid for document in documents(tmp_path)] == ['notes.txt']


def test_patterns_choose_files(tmp_path):
    contents = dict.fromkeys(('a.md', 'b.rst', 'drafts/c.md', 'build/d.md', 'e/f.md'), 'x')
    write_files(tmp_path, {**contents, '.gitignore': 'build/\n', 'e/.gitignore': '/f.md\n'})

    def docids(**selection):
        found = documents(tmp_path, selection=FileSelection(**selection))
        return [document.docid for document in found]

    assert docids() == ['a.md', 'b.rst', 'build/d.md', 'drafts/c.md', 'e/f.md']
    assert docids(gitignore=True) == ['a.md', 'b.rst', 'drafts/c.md']
    assert docids(include=('*.md',), exclude=('drafts/**', 'e')) == ['a.md', 'build/d.md']
    corpus = open_corpus(tmp_path, selection=FileSelection(include=('/*.md',)))
    assert str(corpus.unread) == 'not read: 2 hidden files, caches and backups, 4 excluded files'
    with pytest.raises(InputError, match='more than 3 stars'):
        docids(exclude=('*a*a*a*a',))


NAMES = st.sampled_from([*MIXED, *UNREAD, 'README.md', 'x.docx', 'y', 'z.unknown', '.dotfile'])
FOLDERS = st.sampled_from(['', 'a/', 'a b/', '.hidden/', '__pycache__/', 'deep/er/'])
CONTENTS = st.one_of(
    st.sampled_from([values[0] for values in (*MIXED.values(), *UNREAD.values())]),
    st.binary(max_size=40),
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.dictionaries(st.tuples(FOLDERS, NAMES).map(''.join), CONTENTS, min_size=1, max_size=8))
def test_every_file_is_read_or_named(tmp_path_factory, tree):
    folder = write_files(tmp_path_factory.mktemp('tree'), tree)
    try:
        corpus = open_corpus(folder, keep_empty=True)
    except InputError as error:
        assert '; not read: ' in str(error) or 'is packed with' in str(error)
        return
    read = [location for location, _ in corpus._read_documents()]
    unread = [file.path for file in corpus.unread]
    for name in tree:
        path = folder / name
        is_named = any(path.is_relative_to(named) for named in unread)
        is_read = any(location.startswith(str(path)) for location in read)
        # A file without lines is read, and gives nothing.
        is_empty = not path.read_bytes().removeprefix(codecs.BOM_UTF8).strip()
        assert is_named or is_read or is_empty, name


def test_packed_pages_mail_and_notebooks_are_read(tmp_path):
    """They were named as files that no reader reads."""
    files = {
        'a.html.gz': '<h1>Beans</h1><p>They climb.</p>',
        'b.eml.gz': MAIL,
        'c.mbox.gz': MAILBOX,
        'd.ipynb.gz': NOTEBOOK,
        'e.md.gz': 'x',
    }
    for name, content in files.items():
        raw = content if isinstance(content, bytes) else content.encode()
        write_files(tmp_path, {name: gzip.compress(raw)})
    corpus = open_corpus(tmp_path)
    found = list(corpus.documents())
    assert not str(corpus.unread)
    assert (found[0].docid, found[0].title, found[0].text) == ('a', 'Beans', 'They climb.')
    assert {document.docid.partition('#')[0] for document in found} == {'a', *list(files)[1:]}
    for options in ({}, {'fmt': 'html'}):
        (page,) = open_corpus(tmp_path / 'a.html.gz', **options).documents()
        assert (page.docid, page.text) == ('a', 'They climb.')
    (page,) = open_corpus(tmp_path, fmt='html').documents()
    assert (page.docid, page.text) == ('a', 'They climb.')


def test_tables_with_tabs_in_utf_16(tmp_path):
    table = 'id\ttitle\ttext\n5\tFork\tEs hebt Rüben.\n'
    write_files(tmp_path, {'a.tsv': table.encode('utf-16'), 'b.md': 'x'})
    for corpus in (tmp_path, tmp_path / 'a.tsv'):
        document = next(open_corpus(corpus).documents())
        assert (document.title, document.text) == ('Fork', 'Es hebt Rüben.')
