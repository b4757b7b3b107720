"""What readers used to misread, drop in silence or answer with a traceback: now one line that
names file and line.
"""

import gzip

import pytest

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.data.qrels import read_qrels
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.data.values import decimal, integer
from pyserini_repbert.encode.parts import EncodingPart
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.folds import read_folds
from pyserini_repbert.index.expansions import weighted_texts
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.pipeline.spec import parse_stage

BOM = b'\xef\xbb\xbf'
ISSUE = '<DOC>\n<DOCNO>1</DOCNO>\na\n</DOC>\n<DOD>\n<DOCNO>2</DOCNO>\nb\n</DOC>\n<DOC>\n<DOCNO>3</DOCNO>\nc\n</DOC>\n'  # noqa: E501


@pytest.fixture
def written(tmp_path):
    """written(content, name='file') -> path"""

    def write(content, name='file'):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def passages(path, **options):
    return list(open_corpus(path, **options))


# Text that was dropped


def test_a_document_whose_tag_is_misspelt_is_not_dropped(written):
    with pytest.raises(InputError, match=r"file:6: text outside <DOC> … </DOC>: '2'"):
        passages(written(ISSUE))
    with pytest.raises(InputError, match=r'file:6: text outside <DOC>'):
        read_topics(written(ISSUE))
    found = open_corpus(written(ISSUE), on_error='skip')
    assert [passage.docid for passage in found] == ['1', '3']
    assert found.skipped == 1


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('<DOC>\n<DOCNO>1</DOCNO>a</DOC> rest\n', r":2: text outside <DOC> … </DOC>: 'rest'"),
        ('<DOC><DOCNO>1</DOCNO>a</DOC>\n<![CDATA[<b>]]>\n', ":2: text outside .*: '<b>'"),
        ('<DOC>\n<DOCNO>1</DOCNO><![CDATA[a\n</DOC>\n', r':1: <!\[CDATA\[ without ]]>'),
        ('<DOC>\n<DOCNO>1</DOCNO>a\n</DOC>\n</DOC>\n', r':4: </DOC> without <DOC>'),
        (
            '<DOC>\n<DOCNO>1</DOCNO>a\n<DOCNO>2</DOCNO>b\n</DOC>\n',
            r":1: a <DOC> with two <DOCNO>, '1' the first",
        ),
    ],
)
def test_text_around_documents(written, content, message):
    for read in (passages, read_topics):
        with pytest.raises(InputError, match=f'file{message}'):
            read(written(content))


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (
            '<top><num>1<title>a</top>\n<tap><num>2<title>b</top>\n',
            r':2: <num> outside <top> … </top>',
        ),
        (
            '<top><num>1<title>a</top>\nlost\n<top><num>2<title>b</top>\n',
            r":2: text outside <top> … </top>: 'lost'",
        ),
        ('<top>\n<num>1\n<title>a\n<num>2\n<title>b\n</top>\n', r':4: a <top> with two <num>'),
        (
            '<top>\nlost\n<num>1\n<title>a\n</top>\n',
            r":2: text outside the fields of a <top>: 'lost'",
        ),
        ('<top>\n<num>1\n<title>a <b>bold</b> word\n</top>\n', r':3: the tag <b> inside a <title>'),
    ],
)
def test_text_around_topics(written, content, message):
    with pytest.raises(InputError, match=f'file{message}'):
        read_topics(written(content))


# Marks, line ends, identifiers


@pytest.mark.parametrize(
    ('content', 'fmt'),
    [
        (b'1\tx\n', 'tsv'),
        (b'{"id": "1", "contents": "x"}\n', 'jsonl'),
        (b'doc\t1\tx\n', 'cedr'),
        (b'<DOC><DOCNO>1</DOCNO>x</DOC>\n', 'trec'),
    ],
)
@pytest.mark.parametrize('name', ['file', 'file.gz'])
def test_a_byte_order_mark_is_no_part_of_a_docid(written, content, fmt, name):
    data = BOM + content
    path = written(gzip.compress(data) if name == 'file.gz' else data, name)
    assert passages(path, fmt=fmt) == passages(path) == [Passage('1', 'x')]


def test_a_byte_order_mark_inside_a_file_is_refused(written):
    """As where files that begin with one are put together."""
    with pytest.raises(InputError, match=r'file:2: docid .* contains the character U\+FEFF'):
        passages(written(b'1\tx\n' + BOM + b'2\ty\n'))
    for read in (read_qrels, read_run):
        with pytest.raises(InputError, match=r'file:2: expected .*the character U\+FEFF'):
            read(
                written(b'1 Q0 d 1' + b' 1.0 t' * (read is read_run) + b'\n' + BOM + b'1 Q0 e 1\n')
            )
    with pytest.raises(InputError, match=r'file:2: .*U\+FEFF'):
        passages(written(b'query\tq\tx\ndoc\t' + BOM + b'd\ty\n'))


@pytest.mark.parametrize(
    ('read', 'content'),
    [
        (passages, b'1\tx\r2\ty\r'),
        (read_topics, b'1\tx\r2\ty\r'),
        (read_run, b'1 5 1\r1 7 2\r'),  # six numbers: a TREC line, as it were
    ],
)
def test_lines_that_end_in_cr_only_are_refused(written, read, content):
    with pytest.raises(InputError, match=r'file:1: a carriage return \(CR\) inside the line'):
        read(written(content))


def test_qrels_are_split_at_ascii_white_space_only(written):
    assert read_qrels(written('1 0 a\u00a0b 1\n')) == {'1': {'a\u00a0b': 1}}
    with pytest.raises(InputError, match='file:1: expected'):
        read_qrels(written('1 0 d\u30001\n'))


@pytest.mark.parametrize('value', ['true', '1.0', '1e3', 'NaN', 'null', '["1"]'])
def test_identifiers_in_json_are_texts_or_whole_numbers(written, value):
    line = f'{{"id": {value}, "contents": "x", "text": "x"}}\n'
    with pytest.raises(InputError, match=r"file:1: .*'id'"):
        passages(written(line))
    with pytest.raises(InputError, match=r"file:1: .*'id'"):
        read_topics(written(line))
    with pytest.raises(InputError, match=r"file:1: .*'id'"):
        list(weighted_texts(written(line), lambda: ['True']))
    with pytest.raises(InputError, match='qid'):
        read_folds([written(f'[[{value}], ["2"], ["3"]]')])


# Numbers


@pytest.mark.parametrize(
    'text', ['1_0', '²', '٣', '', '+', '1.0', ' 1', '9' * 400, '2147483648', '0x1']
)
def test_what_is_no_whole_number(written, text):
    with pytest.raises(ValueError, match='is not an integer'):
        integer(text)
    with pytest.raises(InputError, match='expected i/n'):
        EncodingPart.parse(f'{text}/3')
    with pytest.raises(InputError, match='K at least 1'):
        parse_stage(f'monobert-large@{text}')
    if text.strip() == text != '':
        with pytest.raises(InputError, match=r'file:1: expected'):
            read_qrels(written(f'1 0 d {text}\n'))


def test_whole_numbers():
    assert [integer(text) for text in ('0', '+7', '-12', '007')] == [0, 7, -12, 7]
    with pytest.raises(ValueError, match=r"^'0' is not an integer from 1 to 2147483647$"):
        integer('0', 1)
    assert (EncodingPart.parse('2/3'), parse_stage('m@5').k) == (EncodingPart(2, 3), 5)


@pytest.mark.parametrize('text', ['nan', 'inf', '1e400', '1_0', '٣', '', '.', 'e5', '0x1p3', '1 '])
def test_what_is_no_number(written, text):
    with pytest.raises(ValueError, match='is not a finite number'):
        decimal(text)
    if text.strip() == text != '':
        with pytest.raises(InputError, match=r'file:2: expected'):
            read_run(written(f'1 Q0 d 1 2.5 t\n1 Q0 e 2 {text} t\n'))


@pytest.mark.parametrize('weight', ['1e999', 'NaN', 'true', '"0.5"', '1e300', '20000'])
def test_weights_that_are_no_term_frequencies(written, weight):
    """20,000 would make a passage of two million words."""
    with pytest.raises(InputError, match=r'file:1: expected'):
        list(weighted_texts(written(f'cat {weight}\n'), lambda: ['a']))


# Tracebacks


@pytest.mark.parametrize(
    'line', ['{"id": "a", "contents": "x\\ud800"}', '{"id": "a\\udc00", "contents": "x"}']
)
def test_half_of_a_character_is_refused_or_skipped(written, line):
    path = written(f'{line}\n{{"id": "b", "contents": "y"}}\n')
    with pytest.raises(InputError, match=r'file:1: .*(half of a surrogate pair|U\+D[8C]00)'):
        passages(path)
    assert passages(path, on_error='skip') == [Passage('b', 'y')]
    with pytest.raises(InputError, match=r'file:1: '):
        read_topics(written(line.replace('contents', 'text')))


@pytest.mark.parametrize(
    ('read', 'content', 'line'),
    [
        (
            passages,
            '{"id": "1", "contents": "a"}\n{"id": "2", "contents": "b", "contents": "c"}\n',
            ':2',
        ),
        (read_topics, '{"id": "1", "text": "a"}\n{"id": "2", "id": "3", "text": "b"}\n', ':2'),
        (
            lambda path: list(weighted_texts(path, lambda: ['1'])),
            '{"id": "1", "contents": {"a": 1, "a": 2}}\n',
            '',
        ),
        (lambda path: read_folds([path]), '{"a": [{"train": [], "train": []}]}', ''),
    ],
)
def test_a_key_that_is_there_twice_is_refused(read, content, line, written):
    with pytest.raises(InputError, match=rf"file{line}\b.*'\w+' occurs twice"):
        read(written(content))
