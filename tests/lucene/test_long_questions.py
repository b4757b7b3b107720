"""Questions of more words than Lucene's own limit of 1,024 clauses are ranked like others."""

import pytest
from ready_services import ready_client

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.search import main
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.lucene.searcher import MAX_WORDS, LuceneSparseSearcher
from pyserini_repbert.lucene.sparse_settings import Rm3, Rocchio, SparseSettings
from pyserini_repbert.ranking import Query

pytestmark = pytest.mark.jvm

# Document 3 has the words 300 to 399.
PASSAGES = [
    (f'd{number:02}', ' '.join(f'w{word}' for word in range(100 * number, 100 * number + 100)))
    for number in range(30)
]
LONG = ' '.join(f'w{word}' for word in range(300, 2300))
TOO_LONG = ' '.join(f'x{word}' for word in range(MAX_WORDS + 1))
SETTINGS = {
    'bm25': SparseSettings(),
    'ql': SparseSettings(model='ql'),
    'rm3': SparseSettings(rm3=Rm3(fb_docs=1)),
    'rocchio': SparseSettings(rocchio=Rocchio(top_fb_docs=1)),
    'sdm': SparseSettings(sdm=True),
}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('long') / 'index'
    build_lucene_index(PASSAGES, folder)
    return folder


@pytest.mark.parametrize('settings', SETTINGS.values(), ids=list(SETTINGS))
def test_2000_words_are_ranked(folder, settings):
    searcher = LuceneSparseSearcher(folder, settings)
    topics = [Query('long', LONG), Query('short', 'w5 w7')]
    both = searcher.rank(topics, None, 25)
    assert sorted(both['long'].docids) == [docid for docid, _ in PASSAGES[3:23]]
    assert both['short'].docids[0] == 'd00'
    assert searcher.rank(topics[:1], None, 25)['long'] == both['long']
    among = searcher.among(['d05', 'd20', 'd29'])
    assert sorted(among.rank(topics[:1], None, 25)['long'].docids) == ['d05', 'd20']
    searcher.close()


def test_a_run_of_topics_names_the_one_that_is_too_long(folder, tmp_path, capsys):
    topics = tmp_path / 'topics.tsv'
    topics.write_text(f'q1\tw5\nq2\t{TOO_LONG}\nq3\t{LONG}\n', 'utf-8')
    output = tmp_path / 'run.txt'
    flags = ['--sparse', f'bm25@{folder}', '--topics', str(topics), '--output', str(output)]
    assert run(main, flags) == 0
    assert set(read_run(output)) == {'q1', 'q3'}
    assert capsys.readouterr().err.splitlines()[0] == (
        "warning: topic 'q2': Lucene finds nothing for 'x0 x1 x2 x3 x4 x5 x6 x7 x8 x9 x10 x11 x12 "
        "x13 x14 x15 x16 x1…': it has 10,001 different words, at most 10,000 are searched: "
        'shorten it'
    )


def test_a_model_may_weigh_more_terms_than_1024(tmp_path):
    import json

    from pyserini_repbert.lucene.impacts import ImpactSearcher
    from pyserini_repbert.lucene.indexer import LuceneWriter

    class Encoder:
        def encode(self, query):
            return {f'w{word}': 1 for word in range(2000)}

    folder = tmp_path / 'impacts'
    folder.mkdir()
    with LuceneWriter(folder, impact=True) as writer:
        writer.add([json.dumps({'id': 'd', 'contents': '', 'vector': {'w1999': 3, 'w7': 2}})])
    searcher = ImpactSearcher(folder, Encoder())
    assert searcher.search('x')[0].score == 5.0
    searcher.close()


def test_a_collection_and_its_filter(tiny_checkpoint, tmp_path):
    with Collection.open(tmp_path / 'mine', encoder=str(tiny_checkpoint())) as collection:
        documents = []
        for number, (docid, text) in enumerate(PASSAGES):
            documents.append({'id': docid, 'text': text, 'half': number % 2, 'tenth': number % 10})
        collection.sync(documents)
        searcher = collection.searcher(rankings=['bm25'])
        for text, expected in {'half:1': 10, 'tenth:4': 2}.items():
            within = searcher.within(DocumentFilter(text))
            assert len(within.rank([Query('1', LONG)], None, 25)['1']) == expected
        searcher.close()


def test_1100_han_characters_over_http(tmp_path):
    pytest.importorskip('fastapi', reason='the serve extra is not installed')

    from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

    text = ''.join(chr(0x4E00 + number) for number in range(1100))
    build_lucene_index([('d', text[:20]), ('e', 'x')], tmp_path / 'han')
    settings = IndexSettings(path=str(tmp_path / 'han'))
    with ready_client(ServeSettings(indexes={'mine': settings}, rerankers=[])) as client:
        answer = client.post('/v1/mine/search', json={'query': text})
        if answer.status_code == 405:
            answer = client.get('/v1/mine/search', params={'query': text})
    assert answer.status_code == 200, answer.text
    assert [hit['docid'] for hit in answer.json()['candidates']] == ['d']
