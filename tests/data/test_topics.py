import gzip
import time

import pytest

from pyserini_repbert import archives
from pyserini_repbert.data import topic_lines
from pyserini_repbert.data.qrels import read_qrels
from pyserini_repbert.data.topics import read_topics
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


@pytest.mark.parametrize('read', [read_topics, load_topics])
@pytest.mark.parametrize('name', ['topics', 'demo'])
def test_an_unknown_format_is_refused(tmp_path, monkeypatch, read, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'topics').write_text('{"id": "1", "text": "a"}\n')
    message = "topics format 'nonsense' is unknown: expected one of default, kilt, raw_jsonl"
    with pytest.raises(InputError, match=message):
        read(name, 'nonsense')


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
    content = '<t>\n<topic number="1"><description>x</description></topic>\n</t>'
    with pytest.raises(InputError, match=r"topics:2: topic '1' has no <title> or <query>"):
        topics(tmp_path, content)


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        # The second topic's tag is misspelt.
        ('<topic number="1"><query>x</query></topic>\n<topik number="2"><query>y</query></topik>',
         r"topics:2: text outside <topic> … </topic>: 'y'"),
        ('<topic number="1"><query>x</query>\n<query>y</query></topic>',
         r'topics:2: a <topic> with two <query>: is </topic> missing'),
        ('<topic>\n<query>x</query></topic>', r'topics:1: a <topic> without a number'),
        ('<t>\n\n<topic number="1"><query>x</topic></t>', 'topics:3: not XML: mismatched tag'),
        ('<topics>\n<topic number="1"><query>x</query>', 'topics:2: not XML: mismatched tag'),
        ('1:a\n2 b\n', "topics:2: expected 'qid:text', found '2 b'"),
    ],
)  # fmt: skip
def test_malformed_topics_of_other_forms(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        topics(tmp_path, content)


# A topic of each form that TREC's tracks gave, cut to what decides about its reading.
TRACKS = {
    'ad hoc 1 and 2': (
        '<top>\n<head> Tipster Topic Description\n<num> Number:  051\n'
        '<dom> Domain:  International Economics\n<title> Topic:  Airbus Subsidies\n'
        '<desc> Description:\nx\n<smry> Summary:\nx\n<narr> Narrative:\nx\n'
        '<con> Concept(s):\n1. x\n<fac> Factor(s):\n<nat> Nationality: U.S.\n</fac>\n'
        '<def> Definition(s):\nx\n</top>\n',
        Query('51', 'Airbus Subsidies'),
    ),
    'ad hoc 4, without titles': (
        '<top>\n\n<num> Number:  201\n\n<desc> Description:\nDo members\nmeet?\n\n</top>\n',
        Query('201', 'Do members meet?'),
    ),
    'Robust': (
        '<top>\n\n<num> Number: 301 \n<title> International Organized Crime \n\n<desc> '
        'Description: \nIdentify x\n\n<narr> Narrative: \nx\n</top>\n',
        Query('301', 'International Organized Crime'),
    ),
    'Common Core': (
        '<top>\n<num> Number: 321</num>\n<title>Women in Parliaments</title>\n<desc>\nx\n</desc>\n'
        '<narr>\nx\n</narr>\n</top>\n',
        Query('321', 'Women in Parliaments'),
    ),
    'Novelty': (
        '<top>\n<num> Number: N1\n<title> partial birth abortion ban\n<toptype> opinion\n'
        '<desc> Descriptive:\nx\n<docs>\nNYT1\n</top>\n',
        Query('N1', 'partial birth abortion ban'),
    ),
    'Microblog 2011': (
        '<top>\n<num> Number: MB001 </num>\n<title> BBC World Service </title>\n'
        '<querytime> Tue Feb 08 2011 </querytime>\n<querytweettime> 1 </querytweettime>\n</top>\n',
        # NIST's judgments number it 1.
        Query('1', 'BBC World Service'),
    ),
    'Microblog 2012': (
        '<top>\n<num> Number: MB051 </num>\n<query> British Government cuts </query>\n'
        '<querytime> Tue Feb 08 2011 </querytime>\n</top>\n',
        Query('51', 'British Government cuts'),
    ),
    'Temporal Summarization': (
        '<top>\n<num> Number: 1\n<type> accident\n<querytime> 1\n<title> train crash\n</top>\n',
        Query('1', 'train crash'),
    ),
    'FIRE': (
        "<topics>\n<top lang='en'>\n<num>76</num>\n<title>Clashes</title>\n</top>\n</topics>\n",
        Query('76', 'Clashes'),
    ),
    'CLEF': (
        '<top>\n<num> C041 </num>\n<EN-title> Pesticides in Baby Food </EN-title>\n'
        '<EN-desc> x </EN-desc>\n</top>\n',
        Query('C041', 'Pesticides in Baby Food'),
    ),
    'entities': (
        '<top>\n<num> Number: 301\n<title> caf&eacute; R&amp;D, A&T &#233; 1 < 2\n<desc> x\n</top>',
        Query('301', 'café R&D, A&T é 1 < 2'),
    ),
    'CDATA': (
        '<top>\n<num>1</num>\n<title><![CDATA[R&D <of> x]]></title>\n</top>\n',
        Query('1', 'R&D <of> x'),
    ),
    'Question Answering': (
        '<top>\n<num> Number: 1394\n<desc> Description:\nIn what country?\n</top>\n',
        Query('1394', 'In what country?'),
    ),
    'Web': (
        '<?xml version="1.0" encoding="UTF-8"?>\n<webtrack2013>\n<topic number="201" '
        'type="single">\n<query>raspberry pi</query>\n<description>x</description>\n'
        '<subtopic number="1" type="inf">y</subtopic></topic></webtrack2013>\n',
        Query('201', 'raspberry pi'),
    ),
    'Web, queries only': ('151:403b\n152:ap : news\n', Query('151', '403b')),
    'Million Query': ('20001:1:obama family tree\n', Query('20001', 'obama family tree')),
    'COVID': (
        '<topics task="COVIDSearch 2020" batch="5">\n  <topic number="1">\n    '
        '<query>coronavirus origin</query>\n    <question>what is it</question>\n    '
        '<narrative>x</narrative>\n  </topic>\n</topics>\n',
        Query('1', 'coronavirus origin'),
    ),
    'CDATA in XML': (
        '<topics><topic number="1"><query><![CDATA[R&D <b> & &amp;]]></query></topic></topics>',
        Query('1', 'R&D <b> & &amp;'),
    ),
    'entities in XML': (
        '<topics><topic number="1"><query>caf&eacute; R&D &amp; 1 < 2</query></topic></topics>',
        Query('1', 'café R&D & 1 < 2'),
    ),
    'Decision': (
        '<topics>\n<topic>\n<number>1</number>\n<query>cranberries</query>\n<cochranedoi>10.1'
        '</cochranedoi>\n<description>x</description>\n<narrative>x</narrative>\n</topic></topics>',
        Query('1', 'cranberries'),
    ),
    'Health Misinformation 2020': (
        '<topics>\n<topic>\n<number>1</number>\n<title>vitamin D</title>\n<description>Can x?'
        '</description>\n<answer>no</answer>\n<evidence>u</evidence>\n</topic>\n</topics>',
        Query('1', 'vitamin D'),
    ),
    'Health Misinformation 2022': (
        '<topics>\n<topic>\n<number>151</number>\n<question>Do they work?</question>\n<query>'
        'masks work</query>\n<disclaimer>x</disclaimer>\n</topic>\n</topics>',
        Query('151', 'masks work'),
    ),
    'Clinical Decision Support': (
        '<topics>\n<topic number="1" type="diagnosis">\n<description>long</description>\n'
        '<summary>58-year-old woman</summary>\n</topic>\n</topics>',
        Query('1', '58-year-old woman'),
    ),
    'Precision Medicine': (
        '<topics task="2018 TREC Precision Medicine">\n<topic number="1">\n<disease>melanoma'
        '</disease>\n<gene>BRAF (V600E)</gene>\n<demographic>64-year-old male</demographic>\n'
        '</topic>\n</topics>',
        Query('1', 'melanoma BRAF (V600E) 64-year-old male'),
    ),
    'Clinical Trials 2021': (
        '<topics task="2021 TREC Clinical Trials">\n<topic number="1">\nPatient is a 45-year-old\n'
        'man.\n</topic>\n</topics>',
        Query('1', 'Patient is a 45-year-old man.'),
    ),
    'Clinical Trials 2023': (
        '<topics task="2023 TREC Clinical Trials">\n<topic number="1" template="glaucoma">\n<field '
        'name="definitive diagnosis">glaucoma</field>\n<field name="intraocular pressure"/>\n'
        '<field name="acuity">0.3</field></topic></topics>',
        Query('1', 'glaucoma 0.3'),
    ),
    'Genomics 2004': (
        '<!DOCTYPE TOPICS [\n<!ELEMENT TOPICS (TOPIC+)>\n]>\n<TOPICS>\n<TOPIC>\n<ID>1</ID>\n'
        '<TITLE>Ferroportin-1 in humans</TITLE>\n<NEED>x</NEED>\n</TOPIC>\n</TOPICS>\n',
        Query('1', 'Ferroportin-1 in humans'),
    ),
    'Temporal Summarization 2013': (
        '<?xml version="1.0" encoding="UTF-8"?>\n<root>\n<event>\n<id>1</id>\n'
        '<title>2012 Buenos Aires Rail Disaster</title>\n<description>'
        'http://en.wikipedia.org/wiki/2012_Buenos_Aires_Rail_Disaster</description>\n'
        '<start>1329910380</start>\n<end>1330774380</end>\n<query>buenos aires train crash'
        '</query>\n<type>accident</type>\n</event>\n</root>\n',
        Query('1', 'buenos aires train crash'),
    ),
    'Session 2012': (
        '<?xml version="1.0"?>\n<sessiontrack2012>\n<session num="1" starttime="10:03:13.79">\n'
        '<topic num="14">\n<desc>You plan a vacation.</desc>\n</topic>\n<interaction num="1" '
        'starttime="10:05:07.64">\n<query>pocono mountains</query>\n<results>\n<result rank="1">'
        '\n<url>http://x.org/?a=1&b=2</url>\n<title>Pocono & more</title>\n</result>\n</results>'
        '\n</interaction>\n<interaction num="2" starttime="10:06:00.00">\n<query>pocono hotel'
        '</query>\n</interaction>\n<currentquery starttime="10:07:29.10">\n<query>pocono '
        'mountains camelback hotel</query>\n</currentquery>\n</session>\n</sessiontrack2012>\n',
        Query('1', 'pocono mountains camelback hotel'),
    ),
    'Dynamic Domain': (
        '<?xml version="1.0" encoding="utf-8"?>\n<trecdd>\n<domain name="Ebola" id="3">\n'
        '<topic name="US Military Crisis Response" id="DD15-1" num_of_subtopics="2">\n'
        '<description>How did they respond?</description>\n<subtopic name="troops" id="DD15-1.1">\n'
        '<passage id="1"><docno>ebola-1</docno><rating>2</rating><text>x</text></passage>\n'
        '</subtopic>\n<subtopic name="labs" id="DD15-1.2"/>\n</topic>\n</domain>\n</trecdd>\n',
        Query('DD15-1', 'US Military Crisis Response'),
    ),
    'Entity': (
        '<query>\n<num>1</num>\n<entity_name>Blackberry</entity_name>\n<entity_URL>'
        'clueweb09-en0004-50-39593</entity_URL>\n<target_entity>organization</target_entity>\n'
        '<narrative>Carriers that Blackberry makes phones for.</narrative>\n</query>\n',
        Query('1', 'Carriers that Blackberry makes phones for.'),
    ),
    'Question Answering 2004': (
        '<?xml version="1.0"?>\n<trecqa year="2004" task="main">\n<target id = "1" text = "Crips">'
        '\n<qa>\n<q id = "1.1" type="FACTOID">\n  When was the first Crip gang started?\n</q>\n'
        '</qa>\n</target>\n</trecqa>\n',
        Query('1.1', 'Crips: When was the first Crip gang started?'),
    ),
    'NTCIR WWW': (
        '<queries>\n<query>\n<qid>0001</qid>\n<content>Halloween picture</content>\n</query>\n'
        '</queries>\n',
        Query('0001', 'Halloween picture'),
    ),
}


@pytest.mark.parametrize('track', TRACKS)
def test_topics_of_the_tracks(tmp_path, track):
    content, topic = TRACKS[track]
    assert topics(tmp_path, content)[0] == topic


def test_each_question_has_the_target_of_its_series(tmp_path):
    content = (
        '<target id="1" text="Crips"><qa><q id="1.1" type="LIST">Which cities?</q></qa>\n'
        '<qa><q id="1.2" type="OTHER">Other</q></qa></target>\n'
        '<target id="2" text="Fred Durst"><qa><q id="2.1" type="OTHER"/></qa></target>\n'
    )
    assert topics(tmp_path, content) == [
        Query('1.1', 'Crips: Which cities?'),
        Query('1.2', 'Crips'),
        Query('2.1', 'Fred Durst'),
    ]


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (
            '<t>\n<session num="3"><interaction><query>a</query></interaction></session></t>',
            "topics:2: topic '3' has no <currentquery>",
        ),
        (
            '<t>\n<event><id>2</id><type>storm</type></event></t>',
            "topics:2: topic '2' has no <query> or <title>",
        ),
        (
            '<query>\n<num>1</num><entity_name>Blackberry</entity_name></query>',
            "topics:1: topic '1' has no <title> or <query>",
        ),
        ('<target id="1" text="Crips">\n<qa><q>When?</q></qa></target>', ':2: a <q> without a num'),
        (
            '<target id="1" text="Crips">\n<q id="1.1">a</q>b</target>',
            ':2: text outside <q> … </q>',
        ),
    ],
)
def test_topics_of_tracks_without_a_question(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        topics(tmp_path, content)


XML = (
    '<?xml version="1.0" encoding="{}"?>\n<t>\n<topic number="1"><query>{}</query></topic>\n</t>\n'
)
ENCODINGS = [
    ('ISO-8859-1', 'latin-1', 'café'),
    ('iso-8859-15', 'iso-8859-15', '5 € café'),
    ('windows-1251', 'cp1251', 'кот'),
    ('Shift_JIS', 'shift-jis', '猫'),
    ('ISO-2022-JP', 'iso-2022-jp', '猫'),
    ('US-ASCII', 'ascii', 'cat'),
    ('UTF-16', 'utf-16', 'café ਊ'),  # U+0A0A: line ends within
    ('utf-8', 'utf-16', 'café'),
    ('UTF-8', 'utf-8-sig', 'café'),
    # It was saved as UTF-8 after it was written.
    ('ISO-8859-1', 'utf-8', 'café'),
]


@pytest.mark.parametrize('end', ['\n', '\r\n'])
@pytest.mark.parametrize(('declared', 'codec', 'text'), ENCODINGS)
def test_xml_says_its_encoding(tmp_path, declared, codec, text, end):
    content = XML.format(declared, text).replace('\n', end)
    raw = content.encode(codec)
    (tmp_path / 'plain.xml').write_bytes(raw)
    (tmp_path / 'packed.xml.gz').write_bytes(gzip.compress(raw))
    for name in ('plain.xml', 'packed.xml.gz'):
        assert read_topics(tmp_path / name) == [Query('1', text)]


def test_utf16_needs_no_declaration(tmp_path):
    content = '<topic number="1">\n<query>é</query></topic>\n'
    for mark, codec in (('\ufeff', 'utf-16-le'), ('\ufeff', 'utf-16-be')):
        (tmp_path / 'file').write_bytes(f'{mark}{content}'.encode(codec))
        assert read_topics(tmp_path / 'file') == [Query('1', 'é')]


@pytest.mark.parametrize(
    ('raw', 'message'),
    [
        (XML.format('klingon', 'é').encode('latin-1'), ":1: the encoding 'klingon' is unknown: "),
        (XML.format('rot13', 'é').encode('latin-1'), ":1: the encoding 'rot13' is unknown: "),
        (XML.format('UTF-8', 'é').encode('latin-1'), ':3: not valid UTF-8'),
        (XML.format('UTF-16', 'é').encode('latin-1'), ':3: not valid UTF-8'),
        (
            XML.format('EUC-JP', 'Z').encode().replace(b'Z', b'\xff'),
            ':3: not valid euc-jp, as the ',
        ),
        (XML.format('UTF-16', 'x').encode('utf-16')[:-1], ':4: not valid utf-16, as the '),
        (XML.format('ISO-8859-1', 'é</b>').encode('latin-1'), ':3: not XML: mismatched tag'),
        ('1\tcafé\n'.encode('utf-16'), ':1: not valid UTF-8'),
        ('1\té é é '.encode() + b'\xc3\n', ':1: not valid UTF-8: damaged UTF-8'),
    ],
)
def test_encodings_that_cannot_be_read(tmp_path, raw, message):
    (tmp_path / 'file').write_bytes(raw)
    with pytest.raises(InputError, match=f'file{message}') as refused:
        read_topics(tmp_path / 'file')
    assert '\n' not in str(refused.value)


def test_entities_do_not_multiply_in_other_encodings(tmp_path):
    entities = '<!ENTITY a "ha"><!ENTITY b "&a;&a;">'
    topic = '<t><topic number="1"><query>&b; é</query></topic></t>'
    content = f'<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE t [{entities}]>{topic}'
    (tmp_path / 'file').write_bytes(content.encode('utf-16'))
    assert read_topics(tmp_path / 'file') == [Query('1', '&b; é')]


def test_a_title_is_missing_where_others_have_one(tmp_path):
    content = '<top>\n<num>1\n<title>a\n<desc>x\n</top>\n<top>\n<num>2\n<titel>b\n<desc>x\n</top>\n'
    with pytest.raises(InputError, match=r'topics:6: a <top> without <num> or <title>'):
        topics(tmp_path, content)


def test_comments_hide_topics(tmp_path):
    content = (
        '<!-- <top> -->\n<top>\n<num>1\n<title>a <!-- <b>\n --> b\n</top>\n<!--\n<top>\n-->lost'
    )
    with pytest.raises(InputError, match=r"topics:9: text outside <top> … </top>: 'lost'"):
        topics(tmp_path, content)
    assert topics(tmp_path, content.removesuffix('lost')) == [Query('1', 'a b')]


def test_entities_of_a_file_of_topics_do_not_multiply(tmp_path):
    entities = '<!ENTITY a "ha">' + ''.join(
        f'<!ENTITY a{number} "&a{number - 1};&a{number - 1};">' for number in range(1, 60)
    )
    content = f'<!DOCTYPE t [{entities}]><t><topic number="1"><query>&a59;</query></topic></t>'
    assert topics(tmp_path, content) == [Query('1', '&a59;')]


@pytest.mark.parametrize('name', ['top', 'topic'])
@pytest.mark.parametrize('part', ['<!--', '<![CDATA[', '<b ', '<', '&#', '<!DOCTYPE [', '<?xml'])
def test_topics_take_time_linear_in_their_length(tmp_path, name, part):
    begun = time.process_time()
    with pytest.raises(InputError):
        topics(tmp_path, f'<{name}>{part * 100_000}')
    assert time.process_time() - begun < 5


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


def test_headings_of_trec_car_without_a_wiki(tmp_path):
    headings = "Aftertaste/Taste%20and%20flavor\nAztec%20cuisine/Drink/''%C4%80t%C5%8Dlli''\n"
    assert topics(tmp_path, headings) == [
        Query('Aftertaste/Taste%20and%20flavor', 'Aftertaste/Taste and flavor'),
        Query("Aztec%20cuisine/Drink/''%C4%80t%C5%8Dlli''", "Aztec cuisine/Drink/''Ātōlli''"),
    ]
    with pytest.raises(InputError, match='topics:2: expected headings of TREC CAR, as in the fir'):
        topics(tmp_path, 'Aftertaste/Taste%20and%20flavor\n1\tquestion\n')


@pytest.mark.parametrize(
    'content',
    [
        'who is he\t[\'a\', "b\'s"]\n"what is a ""b"""\t"[\'c\', \'""d""\']"\n',
        '{"question": "who is he", "answer": ["a"]}\n'
        '{"question": "what is a \\"b\\"", "answer": []}',
    ],
)
def test_questions_with_answers_are_numbered(tmp_path, content):
    assert topics(tmp_path, content) == [Query('0', 'who is he'), Query('1', 'what is a "b"')]


def test_a_question_without_answers_is_refused(tmp_path):
    with pytest.raises(InputError, match="topics:2: expected 'question<TAB>answers', found 'why'"):
        topics(tmp_path, "who is he\t['a']\nwhy\n")
    with pytest.raises(InputError, match="topics:2: expected a JSON object with 'question' and 'a"):
        topics(tmp_path, '{"question": "who", "answer": ["a"]}\n{"question": 1, "answer": []}')


def test_a_list_of_epidemic_qa(tmp_path):
    content = (
        '[\n  {"question_id": "CQ001", "question": "where from?", "query": "origin"},\n'
        '  {"question_id": "CQ020", "question": "how?", "query": "spread "}\n]\n'
    )
    assert topics(tmp_path, content) == [Query('1', 'origin'), Query('20', 'spread')]
    with pytest.raises(InputError, match='topics:1: expected a list of .*; record 1 lacks them'):
        topics(tmp_path, '[{"question_id": "CQ", "query": "origin"}]')


def test_questions_that_may_be_images(tmp_path):
    image = '{"qid": "8:2", "query_txt": null, "query_img_path": "2.jpg"}\n'
    content = f'{{"qid": "8:1", "query_txt": "three bottles"}}\n{image}'
    assert topics(tmp_path, content) == [Query('8:1', 'three bottles'), Query('8:2', '')]
    with pytest.raises(InputError, match='topics has no text in any topic'):
        topics(tmp_path, image)


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('{"qid": 1, "vector": [0.1]}', 'topics:1: vectors of queries, without text: give the'),
        ('<top>\n<num> Number: 321 </num>\n<docid>9171</docid>\n<url>u<url>\n</top>',
         r'topics:1: a topic is the docid of an article .* \(Background Linking\): give lines'),
    ],
)  # fmt: skip
def test_topics_that_are_no_questions(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        topics(tmp_path, content)


def test_lines_in_another_encoding_stand_beside_utf8(tmp_path, caplog):
    lines = ['1:die ärzte'.encode(), '2:la niña'.encode('cp1252'), '3:flüge'.encode()]
    (tmp_path / 'mq.txt').write_bytes(b'\n'.join(lines))
    expected = [Query('1', 'die ärzte'), Query('2', 'la niña'), Query('3', 'flüge')]
    assert read_topics(tmp_path / 'mq.txt') == expected
    assert [record.getMessage() for record in caplog.records] == [
        f'{tmp_path}/mq.txt:2 is not in UTF-8: such lines are read as cp1252'
    ]


def test_packed_topics_have_a_limit_in_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, 'FREE_BYTES', 0)
    text = ' '.join(['how'] * 100_000)
    (tmp_path / 't.tsv.gz').write_bytes(gzip.compress(f'1\t{text}\n'.encode()))
    assert read_topics(tmp_path / 't.tsv.gz') == [Query('1', text)]
    monkeypatch.setattr(topic_lines, 'MAX_TOPICS_BYTES', 300_000)
    with pytest.raises(InputError, match='t.tsv.gz unpacks to more than 300,000 bytes: split it'):
        read_topics(tmp_path / 't.tsv.gz')
