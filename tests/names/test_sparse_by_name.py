import pytest

from pyserini_repbert import catalog
from pyserini_repbert.commands import command
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.errors import MissingResourceError
from pyserini_repbert.lucene.sparse_settings import SparseSettings


def test_every_technique_has_settings_that_exist():
    for entry in catalog.entries('sparse').values():
        assert SparseSettings(**entry.values['settings']).model in ('bm25', 'ql')
        assert entry.values.get('indexes') or entry.values.get('needs')


@pytest.mark.parametrize(('flags', 'asked'), [([], False), (['--download'], True)])
def test_a_prebuilt_index_is_downloaded_only_when_asked_to(flags, asked, monkeypatch, capsys):
    from pyserini_repbert.commands.search import main as search
    from pyserini_repbert.lucene import searcher

    given = []

    def not_here(name, download):
        given.append((name, download))
        raise MissingResourceError('not here')

    monkeypatch.delenv('PYSERINI_REPBERT_OFFLINE')
    monkeypatch.setattr(searcher, 'prebuilt_index', not_here)
    for index in (
        ['--sparse', 'bm25@msmarco'],
        ['--sparse', 'bm25@msmarco-v1-passage'],
    ):
        assert command.run(search, [*index, '--query', 'cats', *flags]) == 2
        assert given.pop() == ('msmarco-v1-passage', asked)


@pytest.mark.jvm
def test_hybrid_search_of_a_corpus_from_the_command_line(
    tiny_checkpoint, corpus_file, tmp_path, capsys
):
    """One command for each index, one for the hybrid run; its provenance agrees with the runs
    that were fused.
    """
    from pyserini_repbert.commands.encode import main as encode
    from pyserini_repbert.commands.index import main as index
    from pyserini_repbert.commands.search import main as search
    from pyserini_repbert.fusion import interleave

    corpus = str(corpus_file(25))
    checkpoint = str(tiny_checkpoint())
    topics = tmp_path / 'topics.tsv'
    topics.write_text('1\tblue cat\n2\tzebra\n3\t\n')
    dense = str(tmp_path / 'dense')
    lucene = str(tmp_path / 'lucene')
    assert (
        command.run(
            encode, ['--corpus', corpus, '--encoder', checkpoint, '--output', dense, '--store-text']
        )
        == 0
    )
    assert command.run(index, ['lucene', '--corpus', corpus, '--output', lucene]) == 0
    runs = {}
    for name, flags in {
        'dense': ['--index', dense, '--encoder', checkpoint],
        'bm25': ['--sparse', f'bm25@{lucene}'],
        'both': ['--index', dense, '--encoder', checkpoint, '--sparse', f'bm25@{lucene}'],
        'turned': [
            '--index',
            dense,
            '--encoder',
            checkpoint,
            '--sparse',
            f'bm25@{lucene}',
            '--sparse-first',
        ],
    }.items():
        output = str(tmp_path / f'{name}.txt')
        flags += ['--provenance', str(tmp_path / 'origin.tsv')] if name == 'both' else []
        assert command.run(search, [*flags, '--topics', str(topics), '--output', output]) == 0
        runs[name] = {qid: list(ranked.docids) for qid, ranked in read_run(output).items()}
    assert 'topics, 2 without hits' in capsys.readouterr().out
    assert runs['bm25'].keys() == {'1'}
    for qid, docids in runs['dense'].items():
        assert runs['both'][qid] == interleave([docids, runs['bm25'].get(qid, [])])
        assert runs['turned'][qid] == interleave([runs['bm25'].get(qid, []), docids])
    rows = [line.split('\t') for line in (tmp_path / 'origin.tsv').read_text().splitlines()]
    assert rows[0] == ['qid', 'docid', 'rank', 'tiny', 'lucene'] or rows[0][:3] == [
        'qid',
        'docid',
        'rank',
    ]
    qid, docid, _, of_dense, of_sparse = rows[2]
    assert runs['dense'][qid][int(of_dense) - 1] == docid if of_dense else not of_dense
    assert runs['bm25'][qid][int(of_sparse) - 1] == docid if of_sparse else not of_sparse
    assert command.run(search, ['--sparse', f'ql@{lucene}', '--query', 'blue cat']) == 0
    assert 'blue' in capsys.readouterr().out
