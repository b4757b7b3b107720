"""BM25's constants as flags of search, spelled as Pyserini does."""

import json

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.search import main
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.errors import InputError
from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.lucene import LuceneSparseSearcher
from pyserini_repbert.lucene.indexer import LuceneWriter
from pyserini_repbert.lucene.sparse_settings import SparseSettings
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.sparse import open_sparse

QUERY = 'the cat sat'


@pytest.fixture
def lucene(corpus_file, tmp_path):
    build_lucene_index(open_corpus(corpus_file(20)), tmp_path / 'lucene')
    return tmp_path / 'lucene'


@pytest.fixture
def searched(lucene, tmp_path):
    """The run that `search` writes with k1 2.5 and b 0.9."""
    topics = tmp_path / 'topics.tsv'
    topics.write_text(f'1\t{QUERY}\n')
    flags = ['--topics', str(topics), '--sparse', f'bm25@{lucene}', '--quiet']
    flags += ['--output', str(tmp_path / 'run'), '--k1', '2.5', '--b', '0.9', '--runtag', 'mine']
    assert run(main, flags) == 0
    return tmp_path / 'run'


@pytest.mark.jvm
def test_k1_and_b_change_the_scores(lucene, searched):
    expected = LuceneSparseSearcher(lucene, SparseSettings(k1=2.5, b=0.9)).search(QUERY, 20)
    ranking = read_run(searched)['1']
    assert list(ranking.docids) == [hit.docid for hit in expected]
    assert ranking.scores == pytest.approx([hit.score for hit in expected], abs=1e-4)
    usual = LuceneSparseSearcher(lucene).search(QUERY, 20)
    assert abs(usual[0].score - expected[0].score) > 1e-2


@pytest.mark.jvm
def test_the_tag_is_the_users(searched):
    assert searched.read_text().split()[5] == 'mine'


@pytest.mark.jvm
def test_query_likelihood_has_no_k1(lucene):
    with pytest.raises(InputError, match="has no k1: they are BM25's"):
        open_sparse(f'ql@{lucene}', k1=0.9)


def test_they_are_for_sparse_search(tmp_path, capsys):
    assert run(main, ['--query', 'cat', '--index', 'demo', '--k1', '1']) == 2
    assert '--k1 and --b are for --sparse' in capsys.readouterr().err


@pytest.fixture
def repeated(tmp_path):
    """A Lucene index that has docid a twice."""
    folder = tmp_path / 'repeated'
    folder.mkdir()
    texts = [
        ('a', 'cat'),
        ('b', 'cat dog'),
        ('a', 'cat dog fish'),
        ('c', 'cat dog fish bird tree'),
    ]
    with LuceneWriter(folder) as writer:
        for docid, text in texts:
            writer.add([json.dumps({'id': docid, 'contents': text})])
    return folder


@pytest.fixture
def without_duplicates(repeated, tmp_path):
    """without_duplicates(flags): the docids that `search --remove-duplicates` finds."""
    topics = tmp_path / 'topics.jsonl'
    topics.write_text('{"qid": "1", "query": "cat", "text": "tree"}\n')
    flags = ['--topics', str(topics), '--topics-format', 'raw_jsonl', '--quiet']
    flags += ['--sparse', f'bm25@{repeated}', '--output', str(tmp_path / 'run')]

    def docids(*more):
        assert run(main, [*flags, '--remove-duplicates', *more]) == 0
        return read_run(tmp_path / 'run')['1'].docids

    return docids


@pytest.mark.jvm
def test_of_a_docid_that_an_index_has_twice_the_best_hit_stays(without_duplicates):
    assert without_duplicates() == ('a', 'b', 'c')


@pytest.mark.jvm
def test_duplicates_are_removed_before_rankings_are_fused(without_duplicates, repeated):
    docids = without_duplicates('--sparse', f'ql@{repeated}', '--fusion', 'rrf')
    assert sorted(docids) == ['a', 'b', 'c']
