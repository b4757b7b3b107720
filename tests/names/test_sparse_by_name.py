import csv
import itertools

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
    from pyserini_repbert.lucene import pyserini_names

    given = []

    def not_here(name, download):
        given.append((name, download))
        raise MissingResourceError('not here')

    monkeypatch.delenv('PYSERINI_REPBERT_OFFLINE')
    monkeypatch.setattr(pyserini_names, 'prebuilt_index', not_here)
    for index in (
        ['--sparse', 'bm25@msmarco'],
        ['--sparse', 'bm25@msmarco-v1-passage'],
    ):
        assert command.run(search, [*index, '--query', 'cats', *flags]) == 2
        assert given.pop() == ('msmarco-v1-passage', asked)


@pytest.fixture
def dense(tiny_checkpoint, corpus_file, tmp_path):
    from pyserini_repbert.commands.encode import main as encode

    folder = str(tmp_path / 'dense')
    flags = ['--corpus', str(corpus_file(25)), '--encoder', str(tiny_checkpoint())]
    assert command.run(encode, [*flags, '--output', folder, '--store-text']) == 0
    return folder


@pytest.fixture
def lucene(corpus_file, tmp_path):
    from pyserini_repbert.commands.index import main as index

    folder = str(tmp_path / 'lucene')
    flags = ['--corpus', str(corpus_file(25)), '--output', folder]
    assert command.run(index, ['lucene', *flags]) == 0
    return folder


@pytest.fixture
def searched(tmp_path):
    """searched(flags): the docids of each topic, of the run that `search` writes."""
    from pyserini_repbert.commands.search import main as search

    topics = tmp_path / 'topics.tsv'
    topics.write_text('1\tblue cat\n2\tzebra\n3\t\n')
    output = str(tmp_path / 'run.txt')

    def run(*flags):
        given = [*flags, '--topics', str(topics), '--output', output, '--overwrite']
        assert command.run(search, given) == 0
        return {qid: list(ranking.docids) for qid, ranking in read_run(output).items()}

    return run


def alternated(first, second):
    """The docids of two lists in turn, each once."""
    merged = []
    for pair in itertools.zip_longest(first, second):
        for docid in pair:
            if docid is not None and docid not in merged:
                merged.append(docid)
    return merged


@pytest.mark.jvm
def test_a_topic_that_lucene_does_not_find_has_no_hits(lucene, searched, capsys):
    assert list(searched('--sparse', f'bm25@{lucene}')) == ['1']
    assert '3 topics, 2 without hits' in capsys.readouterr().out


@pytest.mark.jvm
@pytest.mark.parametrize('sparse_first', [False, True])
def test_a_hybrid_run_is_the_two_runs_interleaved(dense, lucene, searched, sparse_first):
    dense_run = searched('--index', dense)
    sparse_run = searched('--sparse', f'bm25@{lucene}')
    flags = ['--sparse-first'] if sparse_first else []
    hybrid = searched('--index', dense, '--sparse', f'bm25@{lucene}', *flags)
    assert hybrid.keys() == dense_run.keys()
    for qid, docids in hybrid.items():
        runs = [dense_run[qid], sparse_run.get(qid, [])]
        if sparse_first:
            runs.reverse()
        assert docids == alternated(*runs)


@pytest.mark.jvm
def test_provenance_has_the_ranks_of_the_two_runs(dense, lucene, searched, tmp_path):
    dense_run = searched('--index', dense)
    sparse_run = searched('--sparse', f'bm25@{lucene}')
    path = tmp_path / 'origin.tsv'
    searched('--index', dense, '--sparse', f'bm25@{lucene}', '--provenance', str(path))
    with open(path, encoding='utf-8', newline='') as stream:
        header, *rows = csv.reader(stream, delimiter='\t')
    assert header[:3] == ['qid', 'docid', 'rank']
    for qid, docid, _, dense_rank, sparse_rank in rows:
        assert dense_rank == rank_text(dense_run.get(qid, []), docid)
        assert sparse_rank == rank_text(sparse_run.get(qid, []), docid)


def rank_text(docids, docid):
    """The rank of a docid, from 1; '' where it is absent."""
    return str(docids.index(docid) + 1) if docid in docids else ''


@pytest.mark.jvm
def test_a_question_to_an_index_by_the_name_of_a_technique(lucene, capsys):
    from pyserini_repbert.commands.search import main as search

    assert command.run(search, ['--sparse', f'ql@{lucene}', '--query', 'blue cat']) == 0
    assert 'blue' in capsys.readouterr().out
