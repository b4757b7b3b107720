import gzip

import pytest

from pyserini_repbert.data.topics import read_qrels, read_topics
from pyserini_repbert.errors import InputError
from pyserini_repbert.names.topics import load_topics
from pyserini_repbert.ranking import Query


def topics(tmp_path, content):
    path = tmp_path / 'topics'
    path.write_text(content, encoding='utf-8')
    return read_topics(path)


def test_tsv_keeps_the_order(tmp_path):
    queries = topics(tmp_path, '10\twhat is é?\n\n2\t tab\tinside \n3\t\n')
    assert queries == [Query('10', 'what is é?'), Query('2', 'tab\tinside'), Query('3', '')]


def test_gz(tmp_path):
    (tmp_path / 't.tsv.gz').write_bytes(gzip.compress(b'\xef\xbb\xbf1\ta\r\n2\tb\r\n'))
    assert read_topics(tmp_path / 't.tsv.gz') == [Query('1', 'a'), Query('2', 'b')]


def test_json_lines(tmp_path):
    content = (
        '{"id": 7, "text": "seven "}\n{"qid": "q8", "title": "eight"}\n{"_id": "9", "query": ""}\n'
    )
    assert topics(tmp_path, content) == [Query('7', 'seven'), Query('q8', 'eight'), Query('9', '')]


@pytest.mark.parametrize(
    'line',
    [
        '{"id": 1}',
        '{"text": "x"}',
        '{"id": 1, "text": null}',
        '{"id": null, "text": "x"}',
        '7',
        '[1]',
        '{',
    ],
)
def test_json_line_without_id_or_text(tmp_path, line):
    with pytest.raises(InputError, match=r"topics:2: expected a JSON object with 'id' and 'text'"):
        topics(tmp_path, '{"id": 1, "text": "x"}\n' + line)


def test_trec_with_and_without_closing_tags(tmp_path):
    classic = (
        '<top>\n<num> Number: 301 \n<title> Topic: International\nOrganized Crime\n<desc> '
        'Description:\nno\n</top>\n'
        '<top>\n<num> Number: 302\n<title> Polio 2 < 3\n<desc> no\n'
    )
    assert topics(tmp_path, classic) == [
        Query('301', 'International Organized Crime'),
        Query('302', 'Polio 2 < 3'),
    ]
    closed = (
        '<xml>\n<top><num>1</num><title>a  '
        'b</title></top>\n<TOP>\n<NUM>2</NUM>\n<title></title>\n</TOP></xml>\n'
    )
    assert topics(tmp_path, closed) == [Query('1', 'a b'), Query('2', '')]


def test_documents_as_topics(tmp_path):
    content = (
        '<DOC>\n<DOCNO> 1 </DOCNO>\n\n Time\nSharing, '
        '<b>IBM</b>?\n</DOC>\n\n<DOC>\n<DOCNO>2</DOCNO>\nx\n</DOC>\n'
    )
    assert topics(tmp_path, content) == [Query('1', 'Time Sharing, IBM?'), Query('2', 'x')]


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('', 'has no topics'),
        ('<xml></xml>', 'has no topics'),
        ('1\ta\nno tab\n', r"topics:2: expected 'qid<TAB>text', found 'no tab'"),
        ('1\ta\n2\tb\n1\tc\n', r"topics:3: topic '1' was given before, in line 1"),
        ('1 2\ta\n', r"topics:1: qid '1 2' contains white space"),
        ('<top>\n<num>1\n</top>', r'topics:1: a <top> without <num> or <title>'),
        ('<DOC>\n<DOCNO>1</DOCNO>\nx\n', r'topics:1: a <DOC> without </DOC>'),
        ('<DOC>\nx\n</DOC>', r'topics:1: a <DOC> without <DOCNO>'),
    ],
)
def test_malformed_topics(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        topics(tmp_path, content)


@pytest.mark.parametrize(
    ('topics_format', 'text'),
    [('default', 'y'), ('kilt', 'who met  Ada  first'), ('raw_jsonl', 'x')],
)
def test_formats_by_pyserinis_names(tmp_path, topics_format, text):
    path = tmp_path / 'topics.jsonl'
    question = 'who met [START_ENT] Ada [END_ENT] first'
    path.write_text(f'{{"id": "1", "input": "{question}", "query": "x", "text": "y"}}\n')
    assert load_topics(str(path), topics_format) == [Query('1', text)]


def test_a_format_whose_field_is_missing(tmp_path):
    path = tmp_path / 'topics.jsonl'
    path.write_text('{"query_id": 7, "text": "y"}\n')
    message = r"topics.jsonl:1: expected a JSON object with 'id' and 'input', .*no 'input'"
    with pytest.raises(InputError, match=message):
        read_topics(path, 'kilt')


def test_a_format_is_of_a_file():
    message = "there is no topics file 'nowhere', and format 'kilt' is one of files"
    with pytest.raises(InputError, match=message):
        load_topics('nowhere', 'kilt')


def qrels(tmp_path, content):
    path = tmp_path / 'qrels'
    path.write_text(content, encoding='utf-8')
    return read_qrels(path)


def test_qrels(tmp_path):
    content = 'b 0 d1 2\nb\tQ0  d2\t-1\n\na 0 é 0\nb 0 d1 2\n'
    assert qrels(tmp_path, content) == {'b': {'d1': 2, 'd2': -1}, 'a': {'é': 0}}


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('', 'has no judgments'),
        ('1 0 d 1\n1 d 1\n', r"qrels:2: expected 'qid 0 docid grade', found '1 d 1'"),
        ('1 0 d yes\n', r'qrels:1: expected'),
    ],
)
def test_malformed_qrels(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        qrels(tmp_path, content)


def test_the_last_of_several_grades_counts_with_a_warning(tmp_path, caplog):
    judgments = qrels(tmp_path, '1 0 d 1\n1 0 e 2\n1 0 d 1\n1 0 d 0\n1 0 e 3\n')
    assert judgments == {'1': {'d': 0, 'e': 3}}
    (record,) = caplog.records
    assert ':4: ' in record.getMessage() and '(2 such lines)' in record.getMessage()


WEB_YEAR = """<webtrack2012>
  <topic number="{number}" type="faceted">
    <query>{query}</query>
    <description/>
    <subtopic number="1" type="inf">
      A subtopic
    </subtopic>
  </topic>
</webtrack2012>
"""


def test_topics_of_two_years_of_the_web_tracks(tmp_path):
    content = WEB_YEAR.format(number=151, query='403b')
    content += WEB_YEAR.format(number=201, query='a &amp; b')
    assert topics(tmp_path, content) == [Query('151', '403b'), Query('201', 'a & b')]


def test_a_web_topic_without_a_query_is_refused(tmp_path):
    content = '<webtrack2012>\n<topic number="1"><description>x</description></topic>\n'
    with pytest.raises(InputError, match=r"topics:2: topic '1' has no <query>"):
        topics(tmp_path, content)


def test_a_web_topic_with_two_queries_is_refused(tmp_path):
    """The second topic's tag is misspelt."""
    content = (
        '<topic number="1"><query>x</query></topic>\n<topik number="2"><query>y</query></topik>\n'
    )
    message = r"topics:1: topic '1' has no <query> … </query>, or several"
    with pytest.raises(InputError, match=message):
        topics(tmp_path, content)


def test_topics_of_trec_car(tmp_path):
    page = 'enwiki:Aftertaste'
    section = 'enwiki:Aftertaste/Aftertaste%20processing'
    assert topics(tmp_path, f'{page}\n{section}\n') == [
        Query(page, 'Aftertaste'),
        Query(section, 'Aftertaste/Aftertaste processing'),
    ]


def test_another_line_among_headings_of_trec_car_is_refused(tmp_path):
    message = r"topics:2: expected a heading that begins with 'enwiki:'"
    with pytest.raises(InputError, match=message):
        topics(tmp_path, 'enwiki:Aftertaste\nother\n')
