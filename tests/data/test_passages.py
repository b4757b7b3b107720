import gzip
import io
import json
import tarfile
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from pyserini_repbert.data import trec_text
from pyserini_repbert.data.passages import CorpusTexts, Passage, corpus_of
from pyserini_repbert.errors import InputError
from pyserini_repbert.names.corpora import open_corpus


def corpus(tmp_path, content, name='corpus.jsonl', **options):
    path = tmp_path / name
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith('.gz') else data)
    return open_corpus(path, **options)


def lines(*records):
    return ''.join(json.dumps(record, ensure_ascii=False) + '\n' for record in records)


@pytest.mark.parametrize('name', ['c.jsonl', 'c.jsonl.gz', 'unknown'])
def test_jsonl(tmp_path, name):
    records = (
        {'id': 1, 'contents': 'é one'},
        {'_id': 'b', 'title': 'T', 'text': 'two'},
        {'docid': 'c', 'text': 'x'},
    )
    passages = corpus(tmp_path, lines(*records) + '\n', name)
    expected = [Passage('1', 'é one'), Passage('b', 'T two'), Passage('c', 'x')]
    assert list(passages) == expected
    assert list(passages) == expected


def test_jsonl_fields(tmp_path):
    content = lines({'id': 'a', 'contents': 'no', 'url': 'u', 'body': 'b'}, {'id': 'b', 'url': 'u'})
    passages = corpus(tmp_path, content, fields=['body', 'url'], on_error='skip')
    assert list(passages) == [Passage('a', 'b u')]
    assert passages.skipped == 1


def test_tsv(tmp_path):
    assert list(corpus(tmp_path, '0\tfirst\ttab\r\n1\tsecond\n', 'collection.tsv')) == [
        Passage('0', 'first\ttab'),
        Passage('1', 'second'),
    ]


def test_trec(tmp_path):
    content = (
        '<DOC>\n<DOCNO> a </DOCNO>\n<TEXT>one '
        '<b>two</b>\nthree</TEXT>\n</DOC>\n<doc><docno>b</docno>x</doc>\n'
    )
    assert list(corpus(tmp_path, content, 'c.trec')) == [
        Passage('a', 'one two three'),
        Passage('b', 'x'),
    ]


def test_cdata_of_trec(tmp_path):
    content = (
        '<DOC>\n<DOCNO><![CDATA[a&b]]></DOCNO>\n<TEXT><![CDATA[a <b>\n<DOCNO>c</DOCNO>]]>d</TEXT>\n'
        '</DOC>\n'
    )
    assert list(corpus(tmp_path, content, 'c.trec')) == [Passage('a&b', 'a <b> <DOCNO>c</DOCNO>d')]


TAGS_IN_CDATA = '<TEXT><![CDATA[a\n<DOC>\n<DOCNO>x</DOCNO>\n</DOC>\nb]]></TEXT>'


def test_tags_in_cdata_neither_begin_nor_end_a_document(tmp_path):
    content = f'<DOC>\n<DOCNO>1</DOCNO>\n{TAGS_IN_CDATA}\n</DOC>\n<DOC><DOCNO>2</DOCNO>c]]></DOC>\n'
    expected = [Passage('1', 'a <DOC> <DOCNO>x</DOCNO> </DOC> b'), Passage('2', 'c]]>')]
    assert list(corpus(tmp_path, content, 'c.trec')) == expected


@pytest.mark.parametrize('most', [trec_text._MOST_CDATA, 20])
def test_cdata_without_an_end_does_not_reach_the_next_document(monkeypatch, most):
    monkeypatch.setattr(trec_text, '_MOST_CDATA', most)
    content = (
        '<DOC><DOCNO>1</DOCNO><![CDATA[a</DOC>\n<DOC><DOCNO>2</DOCNO>b</DOC>\n'
        '<DOC><DOCNO>3</DOCNO><![CDATA[c]]></DOC>\n<DOC><DOCNO>4</DOCNO><![CDATA[d</DOC>\n'
    )
    documents = list(trec_text.read_documents(enumerate(content.encode().splitlines(True), 1)))
    problem = '<![CDATA[ without ]]>'
    assert documents == [
        trec_text.TrecDocument(1, problem=problem),
        trec_text.TrecDocument(2, '2', 'b'),
        trec_text.TrecDocument(3, '3', 'c'),
        trec_text.TrecDocument(4, problem=problem),
    ]


def test_html_folder_and_archive(tmp_path):
    folder = tmp_path / 'html'
    folder.mkdir()
    with tarfile.open(tmp_path / 'c.tar.gz', 'w:gz') as archive:
        for name, text in (
            ('CACM-1', '<html><pre>\nA &amp; B, 1 <= m < n, m<2<br/>x<!-- a > b -->y</pre></html>'),
            ('CACM-2', '<html>C</html>'),
        ):
            (folder / f'{name}.html').write_text(text)
            archive.add(folder / f'{name}.html', f'collection/{name}.html')
    expected = [Passage('CACM-1', 'A & B, 1 <= m < n, m<2 xy'), Passage('CACM-2', 'C')]
    assert list(open_corpus(folder)) == expected
    assert list(open_corpus(tmp_path / 'c.tar.gz')) == expected


def test_pages_of_the_same_name_in_other_folders_are_others(tmp_path):
    for folder in ('guide', 'my news'):
        (tmp_path / 'site' / folder).mkdir(parents=True)
        (tmp_path / 'site' / folder / 'index.html').write_text(f'<p>{folder}</p>')
    expected = [Passage('guide/index', 'guide'), Passage('my%20news/index', 'my news')]
    assert list(open_corpus(tmp_path / 'site')) == expected
    documents = open_corpus(tmp_path / 'site').documents()
    assert [document.docid for document in documents] == ['guide/index', 'my%20news/index']


@pytest.mark.parametrize('keep', [0.0, 0.6])
def test_damaged_archive(tmp_path, keep):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode='w:gz') as archive:
        for i in range(1, 41):
            data = bytes((i * j * j) % 251 for j in range(700))
            member = tarfile.TarInfo(f'{i}.html')
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    data = stream.getvalue()
    damaged = data[: int(len(data) * keep)] or b'no archive'
    with pytest.raises(InputError, match='not a complete archive'):
        list(corpus(tmp_path, damaged, 'c.tgz'))


def test_folder_of_files(tmp_path):
    (tmp_path / 'b.jsonl').write_text(lines({'id': 2, 'contents': 'y'}))
    (tmp_path / 'a.json').write_text(lines({'id': 1, 'contents': 'x'}))
    (tmp_path / 'README.md').write_text('no')
    assert [passage.docid for passage in open_corpus(tmp_path)] == ['1', '2']


BAD = [
    ('{"id": 1', 'not JSON'),
    ('{"contents": "x"}', "no 'id'"),
    ('{"id": "a"}', "no 'contents'"),
    ('{"id": "", "contents": "x"}', 'docid is empty'),
    ('{"id": "a", "contents": " "}', 'has no text'),
    ('{"id": "first", "contents": "again"}', r"'first' was used before, at .*corpus\.jsonl:1"),
]


@pytest.mark.parametrize(('line', 'message'), BAD)
def test_bad_line_is_refused_or_skipped(tmp_path, caplog, line, message):
    content = (
        lines({'id': 'first', 'contents': 'x'})
        + '\n'
        + line
        + '\n'
        + lines({'id': 'last', 'contents': 'x'})
    )
    with pytest.raises(InputError, match=rf'corpus\.jsonl:3: .*{message}'):
        list(corpus(tmp_path, content))
    passages = corpus(tmp_path, content, on_error='skip')
    assert [passage.docid for passage in passages] == ['first', 'last']
    assert passages.skipped == 1
    assert 'corpus.jsonl:3: skipped' in caplog.text


def test_empty_text_can_be_kept(tmp_path):
    passages = corpus(tmp_path, lines({'id': 'a', 'contents': ''}), keep_empty=True)
    assert list(passages) == [Passage('a', '')]


@pytest.mark.parametrize(
    ('name', 'options', 'message'),
    [
        ('none', {}, 'does not exist'),
        ('', {}, 'holds no corpus files'),
        ('c.tsv', {'fmt': 'pdf'}, "'pdf' is unknown"),
    ],
)
def test_sources_that_cannot_be_opened(tmp_path, name, options, message):
    if name.endswith('.tsv'):
        (tmp_path / name).write_text('1\tx\n')
    with pytest.raises(InputError, match=message):
        open_corpus(tmp_path / name, **options)


def test_texts_by_docid(tmp_path):
    texts = CorpusTexts(corpus(tmp_path, '1\tx\n2\ty\n3\tz\n', 'c.tsv'), ['3', '1', '9'])
    assert texts.texts(['3', '9', '1', '2']) == ['z', None, 'x', None]


class Frame:
    """The part of a pandas DataFrame that is read."""

    columns = ('docno', 'text', 'year')

    def __iter__(self):
        return iter(self.columns)

    def to_dict(self):
        raise AssertionError('a frame is read by row')

    def itertuples(self, index, name):
        assert (index, name) == (False, None)
        return iter([('a', 'one', 2020), ('b', 'two', 2021)])


@pytest.mark.parametrize(
    'given',
    [
        [Passage('a', 'one'), Passage('b', 'two')],
        [('a', 'one'), ('b', 'two')],
        [['a', 'one'], ['b', 'two']],
        [{'id': 'a', 'contents': 'one'}, {'docid': 'b', 'text': 'two', 'year': 1}],
        [{'id': 'a', 'text': None, 'contents': 'one'}, {'id': 'b', 'text': 'two'}],
        Frame(),
    ],
)
def test_passages_from_python(given):
    passages = corpus_of(given)
    expected = [Passage('a', 'one'), Passage('b', 'two')]
    assert list(passages) == list(passages) == expected


def test_a_number_of_an_array_is_a_docid():
    assert list(corpus_of([{'id': np.int64(7), 'text': 'x'}])) == [Passage('7', 'x')]


def test_a_title_leads_and_a_generator_is_read_once():
    given = ({'id': n, 'title': 'T', 'text': 'x'} for n in (1, 2))
    assert list(corpus_of(given)) == [Passage('1', 'T x'), Passage('2', 'T x')]
    again = corpus_of((('a', 'x') for _ in range(1)), reread=True)
    assert list(again) == list(again) == [Passage('a', 'x')]


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ([('a', 'x'), 7], r'passage 2: 7 is not a passage: expected a pair of texts'),
        ([{'id': date(2020, 1, 2), 'text': 'x'}], 'passage 1: \'id\' is "2020-01-02", not a text'),
        ([{'text': 'x'}], "passage 1: no 'id'"),
        ([{'id': 'a', 'text': None}], "passage 1: passage 'a' has no 'text' that is a text"),
        ([('a b', 'x')], "passage 1: docid 'a b' "),
        ((pair for pair in [('a', 'x'), ('a', 'y')]), "passage 2: docid 'a' was used before"),
    ],
)
def test_what_is_no_passage_is_named(given, message):
    with pytest.raises(InputError, match=message):
        list(corpus_of(given))


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ('corpus.jsonl', "'corpus.jsonl' was given: open a file with"),
        (Path('corpus.jsonl'), 'corpus.jsonl.* was given: open a file with'),
        (None, 'None was given'),
    ],
)
def test_a_path_is_no_collection_of_passages(given, message):
    with pytest.raises(InputError, match=message):
        corpus_of(given)
