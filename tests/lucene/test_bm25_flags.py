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


@pytest.mark.jvm
def test_k1_and_b_change_the_scores(corpus_file, tmp_path):
    build_lucene_index(open_corpus(corpus_file(20)), tmp_path / 'lucene')
    (tmp_path / 'topics.tsv').write_text('1\tthe cat sat\n')
    common = [
        '--topics',
        str(tmp_path / 'topics.tsv'),
        '--index',
        str(tmp_path / 'lucene'),
        '--sparse',
        'bm25',
        '--quiet',
    ]
    assert (
        run(
            main,
            [
                *common,
                '--output',
                str(tmp_path / 'a'),
                '--k1',
                '2.5',
                '--b',
                '0.9',
                '--runtag',
                'mine',
            ],
        )
        == 0
    )
    expected = LuceneSparseSearcher(tmp_path / 'lucene', SparseSettings(k1=2.5, b=0.9)).search(
        'the cat sat', 20
    )
    found = read_run(tmp_path / 'a')['1']
    assert list(found.docids) == [hit.docid for hit in expected]
    assert found.scores == pytest.approx([hit.score for hit in expected], abs=1e-4)
    plain = LuceneSparseSearcher(tmp_path / 'lucene').search('the cat sat', 20)
    assert abs(plain[0].score - expected[0].score) > 1e-2
    assert (tmp_path / 'a').read_text().split()[5] == 'mine'
    with pytest.raises(InputError, match="'ql' has no k1: they are BM25's"):
        open_sparse('ql', str(tmp_path / 'lucene'), k1=0.9)


def test_they_are_for_sparse_search(tmp_path, capsys):
    assert run(main, ['--query', 'cat', '--index', 'demo', '--k1', '1']) == 2
    assert '--k1 and --b are for --sparse' in capsys.readouterr().err


@pytest.mark.jvm
def test_a_docid_that_an_index_has_twice(tmp_path):
    (tmp_path / 'lucene').mkdir()
    with LuceneWriter(tmp_path / 'lucene') as writer:
        for docid, text in (
            ('a', 'cat'),
            ('b', 'cat dog'),
            ('a', 'cat dog fish'),
            ('c', 'cat dog fish bird tree'),
        ):
            writer.add([json.dumps({'id': docid, 'contents': text})])
    (tmp_path / 'topics.jsonl').write_text('{"qid": "1", "query": "cat", "text": "tree"}\n')
    common = [
        '--topics',
        str(tmp_path / 'topics.jsonl'),
        '--topics-format',
        'raw_jsonl',
        '--sparse',
        'bm25',
        '--quiet',
    ]
    common += ['--index', str(tmp_path / 'lucene'), '--output', str(tmp_path / 'run')]
    assert run(main, [*common, '--remove-duplicates']) == 0
    assert read_run(tmp_path / 'run')['1'].docids == ('a', 'b', 'c')
    other = ['--sparse', f'ql@{tmp_path / "lucene"}', '--fusion', 'rrf']
    assert run(main, [*common, *other, '--remove-duplicates', '--overwrite']) == 0
    assert sorted(read_run(tmp_path / 'run')['1'].docids) == ['a', 'b', 'c']
