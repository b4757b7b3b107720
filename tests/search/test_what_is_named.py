"""What is named is searched: `index` is one ranking, each of `sparse` one more."""

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.search import main
from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.errors import MissingResourceError
from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.pipeline import PipelineSpec, open_pipeline

PASSAGES = [Passage('a', 'the cat sat'), Passage('b', 'the dog ran'), Passage('c', 'a red cat')]


@pytest.mark.parametrize(
    ('values', 'expected'),
    [
        ({'index': 'vectors'}, 1),
        ({'sparse': ('bm25@lucene',)}, 1),
        ({'index': 'vectors', 'sparse': ('bm25',)}, 2),
        ({'index': 'vectors', 'sparse': ('bm25@lucene', 'ql@lucene')}, 3),
        ({}, 0),
    ],
)
def test_rankings_are_counted_by_their_names(values, expected):
    assert PipelineSpec(**values).n_rankings == expected


@pytest.fixture
def vectors(tiny_checkpoint, tmp_path):
    encode_corpus(PASSAGES, RepBertDocumentEncoder(tiny_checkpoint()), tmp_path / 'vectors')
    return str(tmp_path / 'vectors')


def test_a_technique_beside_vectors_of_your_own_needs_an_index(vectors):
    spec = PipelineSpec(index=vectors, sparse=('bm25',))
    with pytest.raises(MissingResourceError, match='name it as bm25@FOLDER'):
        open_pipeline(spec)


@pytest.mark.jvm
def test_a_lucene_index_is_a_ranking_by_itself(tmp_path, capsys):
    lucene = tmp_path / 'lucene'
    build_lucene_index(PASSAGES, lucene)
    assert run(main, ['--index', str(lucene), '--query', 'dog', '--quiet']) == 0
    assert '1. b' in capsys.readouterr().out


@pytest.mark.jvm
def test_vectors_and_lucene_are_fused(vectors, tmp_path):
    lucene = tmp_path / 'lucene'
    build_lucene_index(PASSAGES, lucene)
    opened = open_pipeline(PipelineSpec(index=vectors, sparse=(f'bm25@{lucene}',)))
    names = [leaf.name for leaf in opened.pipeline.leaves()]
    opened.pipeline.close()
    assert len(names) == 2
    assert names[1] == f'bm25@{lucene}'


@pytest.mark.parametrize(
    ('index', 'expected'),
    [
        ('nothing', "'nothing' is neither one of the catalog's indexes nor an existing path"),
        ('empty', "'empty' is not an index folder"),
    ],
)
def test_what_is_no_index_is_said_before_its_options(
    index, expected, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'empty').mkdir()
    assert run(main, ['--index', index, '--query', 'cat', '--rankings', 'multi']) == 2
    assert expected in capsys.readouterr().err
