"""Files of topics by their path, against what Anserini's readers give for the same files."""

import pytest

from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.lucene.compat import import_pyserini, topics_of_file
from pyserini_repbert.lucene.jvm import quiet_java
from pyserini_repbert.lucene.pyserini_names import question_of

pytestmark = pytest.mark.jvm

# By Anserini's reader, the beginning of a published file.
FILES = {
    'Cacm': '<DOC>\n<DOCNO> 1 </DOCNO>\n Time\nSharing\n</DOC>\n',
    'Car': 'Aftertaste/Taste%20and%20flavor\nAztec%20cuisine/%C4%80t%C5%8Dlli\n',
    'Covid': (
        '<topics task="COVIDSearch 2020" batch="1">\n<topic number="1">\n<query>origin</query>\n'
        '<question>where from</question>\n<narrative>x</narrative>\n</topic>\n</topics>\n'
    ),
    'DprJsonl': '{"question": "who is he", "answer": ["a"]}\n{"question": "why", "answer": []}\n',
    'DprNq': 'who is he\t[\'a\']\n"what ""is"" it"\t"[\'b\', \'""c""\']"\n',
    'EpidemicQA': (
        '[{"question_id": "CQ001", "question": "where?", "query": "origin", "background": "x"},\n'
        '{"question_id": "CQ020", "question": "how?", "query": "spread", "background": "x"}]\n'
    ),
    'JsonString': '{"qid": "8:1", "query_txt": "bottles"}\n{"qid": "8:2", "query_txt": null}\n',
    'Microblog': (
        '<top>\n<num> Number: MB051 </num>\n<query> British cuts </query>\n'
        '<querytweettime> 1 </querytweettime>\n</top>\n'
    ),
    'PrioritizedWeb': '20001:1:obama family tree\n20002:4:flüge\n',
    'Trec': (
        '<top>\n<num> Number: AR26\n<title> Kurdistan Independence\n\n<desc> Description:\nx\n\n'
        '<narr> Narrative:\nx\n</top>\n<top>\n<num> Number: 051\n<title> Topic:  Airbus\n\n'
        '<desc> Description:\nx\n\n<narr> Narrative:\nx\n</top>\n'
    ),
    'TsvInt': '2\twhat is é?\n10\tanother  question\n',
    'TsvString': 'q2\twhat is é?\nq10\tanother  question\n',
    'Web': '1:403b\n2:flüge\n',
    'Webxml': (
        '<webtrack2012>\n<topic number="151" type="faceted">\n<query>403b</query>\n'
        '<description>x</description>\n</topic>\n</webtrack2012>\n'
    ),
}


@pytest.mark.parametrize('reader', FILES)
def test_files_are_read_as_by_anserini(tmp_path, reader):
    path = tmp_path / 'topics'
    path.write_text(FILES[reader], encoding='utf-8')
    search = import_pyserini('pyserini.search._base')
    quiet_java()
    name = f'io.anserini.search.topicreader.{reader}TopicReader'
    theirs = topics_of_file(search, name, path)
    expected = {str(qid): question_of(fields) for qid, fields in theirs.items()}
    assert {topic.qid: ' '.join(topic.text.split()) for topic in read_topics(path)} == expected
    assert len(expected) == len(theirs) > 0
