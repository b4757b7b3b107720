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


def test_topics_of_a_data_file(tmp_path):
    (tmp_path / 'f').write_text(QUERIES + DOCUMENTS)
    assert read_topics(tmp_path / 'f')[0] == Query('301', 'International Organized Crime')
    assert [query.qid for query in read_topics(tmp_path / 'f')] == ['301', '302', '303']
    assert read_topics(tmp_path / 'f')[2].text == 'Hubble\tTelescope'
    (tmp_path / 'd').write_text(DOCUMENTS)
    with pytest.raises(InputError, match='has no topics'):
        read_topics(tmp_path / 'd')
    (tmp_path / 'bad').write_text('query\t1\ta\n2\tb\n')
    with pytest.raises(InputError, match='bad:2: expected'):
        read_topics(tmp_path / 'bad')
    (tmp_path / 'plain').write_text('query\tthe text of a topic called query\n')
    assert read_topics(tmp_path / 'plain') == [Query('query', 'the text of a topic called query')]


def test_corpus_of_a_data_file(tmp_path):
    (tmp_path / 'f.tsv').write_text(QUERIES + DOCUMENTS)
    corpus = open_corpus(tmp_path / 'f.tsv')
    assert list(corpus) == [
        Passage('FT934-7698', 'curbing population growth'),
        Passage('LA032990-0138', 'curb construction — citywide'),
    ]
    assert CorpusTexts(corpus, ['FT934-7698']).texts(['FT934-7698', 'x']) == [
        'curbing population growth',
        None,
    ]
    (tmp_path / 'g.tsv').write_text(DOCUMENTS + 'no type\n')
    with pytest.raises(InputError, match=r'g.tsv:3: expected'):
        list(open_corpus(tmp_path / 'g.tsv'))
    skipping = open_corpus(tmp_path / 'g.tsv', 'cedr', on_error='skip')
    assert len(list(skipping)) == 2 and skipping.skipped == 1
