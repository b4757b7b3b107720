"""`index lucene` from the command line to an index."""

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.index import main


@pytest.mark.jvm
def test_a_corpus_becomes_an_index(tmp_path, capsys):
    (tmp_path / 'c.tsv').write_text('1\tcats sleep\n2\tdogs bark\n')
    (tmp_path / 'p.txt').write_text('pets\npets / guards\n')
    out = str(tmp_path / 'index')
    arguments = ['--corpus', str(tmp_path / 'c.tsv'), '--output', out]
    expanding = ['--variant', 'doc2query', '--predictions', str(tmp_path / 'p.txt'), '--topk', '2']
    assert run(main, ['lucene', *arguments, *expanding]) == 0
    assert capsys.readouterr().out == f'{out}: 2 passages (doc2query)\n'
    from pyserini_repbert.lucene.searcher import LuceneSparseSearcher

    assert [hit.docid for hit in LuceneSparseSearcher(out).search('guard')] == ['2']
    # an index is a corpus too: the passages as they were
    again = str(tmp_path / 'again')
    assert run(main, ['lucene', '--corpus', out, '--output', again]) == 0
    assert LuceneSparseSearcher(again).search('guard') == []
    assert LuceneSparseSearcher(again).texts(['2']) == ['dogs bark']
