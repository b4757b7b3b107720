"""Exact search of a bundle of weights of terms: EPIC's here; the oracle scores every passage."""

import numpy as np
import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.search import main as search
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.indexes.term_weights.opening import open_term_weights_searcher
from pyserini_repbert.indexes.term_weights.searcher import TermWeightsSearcher
from pyserini_repbert.models.term_vectors import NO_TERMS, TermVector
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.systems.epic.encoder import EpicEncoder

N = 60


@pytest.fixture
def make_bundle(tiny_epic, corpus_file, tmp_path):
    """make(**storage) -> an EPIC bundle of 60 passages in shards of 25."""

    def make(**storage):
        corpus = open_corpus(corpus_file(N))
        encoder = EpicEncoder(tiny_epic())
        encode_corpus(corpus, encoder, tmp_path / 'index', shard_size=25, **storage)
        return TermWeightsBundle(tmp_path / 'index')

    return make


@pytest.mark.parametrize('weights', ['float16', 'uint8'])
@pytest.mark.parametrize('k', [1, 7, 1000])
def test_hits_are_those_of_scoring_every_passage(make_bundle, weights, k):
    bundle = make_bundle(prune=15, weights=weights)
    searcher = open_term_weights_searcher(bundle.folder)
    query = EpicEncoder(bundle.settings.encoder).encode_query('the red cat')
    scores = bundle.score(np.arange(N), query)
    docids = bundle.docids(np.arange(N))
    rows = [row for row in range(N) if scores[row] != 0]
    expected = sorted(rows, key=lambda row: (-round(float(scores[row]), 5), docids[row]))[:k]
    hits = searcher.search('the red cat', k)
    assert len(hits) == len(expected)
    np.testing.assert_allclose([hit.score for hit in hits], scores[expected], atol=1e-5)
    assert hits[0].docid == docids[expected[0]]


def test_equal_scores_are_ordered_by_docid(make_bundle):
    """Without a query in common, there are no hits."""
    bundle = make_bundle(prune=15)
    searcher = open_term_weights_searcher(bundle.folder)
    assert len(searcher.of_vector(NO_TERMS, 5)) == 0
    query = TermVector(bundle.vector(3).terms[:2], np.zeros(2, np.float32))
    assert len(searcher.of_vector(query, 5)) == 0
    # Passages of one text have one score.
    query = EpicEncoder(bundle.settings.encoder).encode_query('cat')
    ranking = searcher.of_vector(query, None)
    pairs = list(zip([-score for score in ranking.scores], ranking.docids, strict=True))
    assert pairs == sorted(pairs)


def test_the_command_searches_the_bundle(make_bundle, tmp_path, capsys):
    bundle = make_bundle(prune=15, store_text=True)
    folder = str(bundle.folder)
    topics = tmp_path / 'topics.tsv'
    topics.write_text('1\tthe red cat\n2\tmoon\n')
    output = tmp_path / 'run.txt'
    flags = ['--index', folder, '--topics', str(topics), '--output', str(output), '--quiet']
    assert run(search, flags) == 0
    expected = open_term_weights_searcher(folder).search('moon', 1000)
    assert list(read_run(output)['2'].docids) == [hit.docid for hit in expected]
    assert run(search, ['--index', folder, '--query', 'moon', '--hits', '1']) == 0
    assert expected[0].text in capsys.readouterr().out
    for given in (['--max-length', '4'], ['--adapted', folder], ['--prf', 'average']):
        assert run(search, ['--index', folder, '--query', 'moon', *given]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_what_cannot_be_searched_is_refused(make_bundle, tiny_epic):
    bundle = make_bundle(prune=0)
    with pytest.raises(InputError, match='epic-prune'):
        open_term_weights_searcher(bundle.folder)
    with pytest.raises(MismatchError, match='other weights'):
        open_term_weights_searcher(bundle.folder, tiny_epic('other', seed=1))


def test_a_term_beyond_the_vocabulary_is_refused(make_bundle):
    bundle = make_bundle(prune=15)
    searcher = TermWeightsSearcher(bundle, EpicEncoder(bundle.settings.encoder))
    with pytest.raises(MismatchError, match='has 0 to 39'):
        searcher.of_vector(TermVector.summed([3, 40], [1.0, 1.0]), 5)
