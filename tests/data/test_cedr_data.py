"""CEDR's data files: queries and documents in one."""

import pytest

from pyserini_repbert.data.passages import CorpusTexts, Passage
from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.errors import InputError
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Query

QUERIES = 'query\t301\tInternational Organized Crime\nquery\t302\t\nquery\t303\tHubble\tTelescope\n'
DOCUMENTS = (
    'doc\tFT934-7698\tcurbing population growth\ndoc\tLA032990-0138\tcurb construction — citywide\n'
)


@pytest.fixture
def written(tmp_path):
    """written(content): the path of a data file."""

    def write(content):
        path = tmp_path / 'data.tsv'
        path.write_text(content, encoding='utf-8')
        return path

    return write


def test_topics_are_the_queries(written):
    assert read_topics(written(QUERIES + DOCUMENTS)) == [
        Query('301', 'International Organized Crime'),
        Query('302', ''),
        Query('303', 'Hubble\tTelescope'),
    ]


def test_documents_alone_are_no_topics(written):
    with pytest.raises(InputError, match='has no topics'):
        read_topics(written(DOCUMENTS))


def test_topics_refuse_a_line_of_another_form(written):
    with pytest.raises(InputError, match='data.tsv:2: expected'):
        read_topics(written('query\t1\ta\n2\tb\n'))


def test_a_topic_may_be_called_query(written):
    content = 'query\tthe text of a topic called query\n'
    assert read_topics(written(content)) == [Query('query', 'the text of a topic called query')]


def test_a_corpus_is_the_documents(written):
    assert list(open_corpus(written(QUERIES + DOCUMENTS))) == [
        Passage('FT934-7698', 'curbing population growth'),
        Passage('LA032990-0138', 'curb construction — citywide'),
    ]


def test_texts_by_docid(written):
    texts = CorpusTexts(open_corpus(written(QUERIES + DOCUMENTS)), ['FT934-7698'])
    assert texts.texts(['FT934-7698', 'x']) == ['curbing population growth', None]


def test_a_corpus_refuses_a_line_of_another_form(written):
    with pytest.raises(InputError, match=r'data\.tsv:3: expected'):
        list(open_corpus(written(DOCUMENTS + 'no type\n')))


def test_a_line_of_another_form_can_be_skipped(written):
    corpus = open_corpus(written(DOCUMENTS + 'no type\n'), 'cedr', on_error='skip')
    assert [passage.docid for passage in corpus] == ['FT934-7698', 'LA032990-0138']
    assert corpus.skipped == 1
