import pytest

from pyserini_repbert.cedr_data import read_data_files, read_pairs
from pyserini_repbert.errors import InputError
from pyserini_repbert.passages import CorpusTexts, Passage, open_corpus
from pyserini_repbert.ranking import Query
from pyserini_repbert.topics import read_qrels, read_topics

QUERIES = 'query\t301\tInternational Organized Crime\nquery\t302\t\nquery\t303\tHubble\tTelescope\n'
DOCUMENTS = 'doc\tFT934-7698\tcurbing population growth\ndoc\tLA032990-0138\tcurb construction — citywide\n'


def test_both_kinds_of_file(tmp_path):
    (tmp_path / 'queries.tsv').write_text(QUERIES)
    (tmp_path / 'documents.tsv').write_text(DOCUMENTS + '\ndoc\tempty\t\nquery\t301\tInternational Organized Crime\n')
    queries, documents = read_data_files([tmp_path / 'queries.tsv', tmp_path / 'documents.tsv'])
    assert list(queries) == ['301', '302', '303']
    assert queries['303'] == Query('303', 'Hubble\tTelescope')
    assert documents == {
        'FT934-7698': 'curbing population growth',
        'LA032990-0138': 'curb construction — citywide',
        'empty': '',
    }


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('query\t1\ta\ntopic\t2\tb\n', r"f:2: expected 'query<TAB>qid<TAB>text'.*found 'topic"),
        ('doc\td1\n', r"f:1: expected .*found 'doc\\td1'"),
        ('doc\t \ttext\n', "f:1: the identifier '' of a doc is empty"),
        ('doc\td\ta\ndoc\td\tb\n', "f:2: doc 'd' was given before with another text"),
        ('query\tq\ta\nquery\tq\tb\n', "f:2: query 'q' was given before"),
    ],
)
def test_malformed_lines(tmp_path, text, message):
    (tmp_path / 'f').write_text(text)
    with pytest.raises(InputError, match=message):
        read_data_files([tmp_path / 'f'])


def test_topics_of_a_data_file(tmp_path):
    (tmp_path / 'f').write_text(QUERIES + DOCUMENTS)
    assert read_topics(tmp_path / 'f')[0] == Query('301', 'International Organized Crime')
    assert [query.qid for query in read_topics(tmp_path / 'f')] == ['301', '302', '303']
    (tmp_path / 'd').write_text(DOCUMENTS)
    with pytest.raises(InputError, match='holds documents only'):
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
    assert CorpusTexts(corpus, ['FT934-7698']).texts(['FT934-7698', 'x']) == ['curbing population growth', None]
    (tmp_path / 'g.tsv').write_text(DOCUMENTS + 'no type\n')
    with pytest.raises(InputError, match=r'g.tsv:3: expected'):
        list(open_corpus(tmp_path / 'g.tsv'))
    skipping = open_corpus(tmp_path / 'g.tsv', 'cedr', on_error='skip')
    assert len(list(skipping)) == 2 and skipping.skipped == 1


def test_pairs(tmp_path):
    (tmp_path / 'p').write_text('301\tb\n302 x\n\n301\ta\n301\tb\n')
    assert read_pairs(tmp_path / 'p') == {'301': ['b', 'a'], '302': ['x']}
    (tmp_path / 'p').write_text('301\tb\n301 0 b 1\n')
    with pytest.raises(InputError, match="p:2: expected 'qid docid'"):
        read_pairs(tmp_path / 'p')
    (tmp_path / 'p').write_text('\n')
    with pytest.raises(InputError, match='has no lines'):
        read_pairs(tmp_path / 'p')


def test_qrels_with_grades_below_zero(tmp_path):
    (tmp_path / 'qrels').write_text('1 0 clueweb09-en0000-00-00000 -2\n1 0 clueweb09-en0000-00-00001 3\n')
    assert read_qrels(tmp_path / 'qrels')['1']['clueweb09-en0000-00-00000'] == -2
