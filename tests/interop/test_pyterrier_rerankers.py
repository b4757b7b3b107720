"""Rerankers as PyTerrier transformers give what they give themselves."""

import numpy as np
import pytest
from pyterrier_world import frame_hits, run_hits

import pyserini_repbert.interop.pyterrier as ours
from pyserini_repbert.errors import InputError
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank import DuoBertReranker, EpicReranker, MonoBertReranker
from tests.rerank.many import rerank_many

pt = pytest.importorskip('pyterrier')
pd = pytest.importorskip('pandas')


def _rerank_together(reranker, frame):
    """Our own reranker's hits for all queries at once: batches of the model may decide over the
    last digit.
    """
    qids = []
    queries = []
    lists = []
    for (qid, query), group in frame.groupby(['qid', 'query'], sort=False):
        rows = group.sort_values('rank')
        qids.append(qid)
        queries.append(query)
        lists.append(list(map(Candidate, rows['docno'], rows['score'], rows['text'])))
    reranked = rerank_many(reranker, queries, lists)
    return run_hits(dict(zip(qids, reranked, strict=True)))


def test_monobert_gives_its_own_scores_and_keeps_columns(candidates, cross_encoder_folder):
    folder = cross_encoder_folder('monobert')
    shuffled = candidates.assign(note=candidates['docno']).sample(frac=1, random_state=1)
    before = shuffled.copy()
    found = ours.Rerank(folder, token_budget=64)(shuffled)
    assert frame_hits(found) == _rerank_together(
        MonoBertReranker(folder, token_budget=64), shuffled
    )
    assert frame_hits(ours.Rerank(folder)(candidates)) == _rerank_together(
        MonoBertReranker(folder), candidates
    )
    assert (found['note'] == found['docno']).all()
    pd.testing.assert_frame_equal(shuffled, before)


@pytest.fixture
def alike():
    """A frame of three candidates with the same text, whose ranks are not those of their rows."""
    return pd.DataFrame(
        {
            'qid': '1',
            'query': 'cat',
            'docno': ['a', 'b', 'c'],
            'text': 'dog ran',
            'rank': [2, 0, 1],
            'score': 0.0,
        }
    )


def test_equal_scores_keep_the_order_of_the_stage_before(alike, cross_encoder_folder):
    monobert = ours.Rerank(cross_encoder_folder('monobert'))
    assert monobert(alike)['docno'].tolist() == ['b', 'c', 'a']


def test_equal_scores_without_ranks_keep_the_order_of_the_rows(alike, cross_encoder_folder):
    monobert = ours.Rerank(cross_encoder_folder('monobert'))
    unranked = alike.drop(columns=['rank', 'score'])
    assert monobert(unranked)['docno'].tolist() == ['a', 'b', 'c']


def test_a_candidate_without_text_and_one_that_comes_twice_are_refused(alike, cross_encoder_folder):
    monobert = ours.Rerank(cross_encoder_folder('monobert'))
    with pytest.raises(InputError, match="'c' has no text"):
        monobert(alike.assign(text=['cat', 'cat', None]))
    with pytest.raises(InputError, match="'a' comes twice"):
        monobert(alike.assign(docno='a'))


METHODS = {'sum': {}, 'binary': {}, 'min': {}, 'max': {}, 'sample': {'samples': 3, 'seed': 7}}


@pytest.mark.parametrize('method', METHODS)
def test_duobert_by_every_aggregation(method, candidates, cross_encoder_folder):
    folder = cross_encoder_folder('duobert')
    reranked = ours.Rerank(folder, method=method, **METHODS[method])(candidates)
    duo = DuoBertReranker(folder, method=method, **METHODS[method])
    assert frame_hits(reranked) == _rerank_together(duo, candidates)


@pytest.mark.parametrize('method', METHODS)
def test_the_matrix_changes_nothing_else(method, candidates, cross_encoder_folder):
    folder = cross_encoder_folder('duobert')
    plain = ours.Rerank(folder, method=method, **METHODS[method])(candidates)
    with_matrix = ours.Rerank(folder, method=method, matrix=True, **METHODS[method])(candidates)
    pd.testing.assert_frame_equal(with_matrix.drop(columns='duobert_p'), plain)


def _matrices(frame):
    """The matrix of each query, float64 (n, n), with its query and its rows, by rank."""
    for (_, query), rows in frame.groupby(['qid', 'query']):
        ranked = rows.sort_values('rank')
        yield query, ranked, np.stack(ranked['duobert_p'].tolist())


def test_rows_of_the_matrix_add_up_to_the_scores(candidates, cross_encoder_folder):
    frame = ours.Rerank(cross_encoder_folder('duobert'), matrix=True)(candidates)
    for _, rows, matrix in _matrices(frame):
        assert matrix.shape == (7, 7)
        assert np.isnan(np.diag(matrix)).all()
        assert (~np.isnan(matrix)).sum() == 7 * 6
        assert np.nansum(matrix, axis=1) == pytest.approx(rows['score'].to_numpy())


def test_a_sampled_matrix_has_the_sampled_pairs(candidates, cross_encoder_folder):
    sampling = {'method': 'sample', **METHODS['sample']}
    frame = ours.Rerank(cross_encoder_folder('duobert'), matrix=True, **sampling)(candidates)
    for _, _, matrix in _matrices(frame):
        assert (~np.isnan(matrix)).sum() == 7 * 3


def test_the_matrix_has_the_probabilities_of_a_model_call(candidates, cross_encoder_folder):
    folder = cross_encoder_folder('duobert')
    duo = DuoBertReranker(folder)
    frame = ours.Rerank(folder, matrix=True)(candidates)
    for query, rows, matrix in _matrices(frame):
        best_two = Ranking(['i', 'j'], [0, 0], rows['text'].tolist()[:2])
        (differences,) = duo.pair_differences([query], [best_two])
        assert matrix[0, 1] == pytest.approx(1 / (1 + np.exp(-differences[0, 1])), abs=1e-6)


def test_epic_reads_vectors_from_an_index(candidates, tiny_epic, tmp_path):
    folder = tiny_epic()
    documents = []
    for passage in open_corpus(tmp_path / 'corpus.jsonl'):
        documents.append({'docno': passage.docid, 'text': passage.text})
    index = ours.EpicIndexer(tmp_path / 'epic-index', folder, prune=5).index(documents)
    reranked = ours.Rerank(folder, index=index)(candidates.drop(columns='text'))
    expected = _rerank_together(EpicReranker(folder, index=index), candidates)
    assert frame_hits(reranked) == expected


def test_epic_without_an_index_needs_texts(candidates, tiny_epic):
    folder = tiny_epic()
    expected = _rerank_together(EpicReranker(folder), candidates)
    assert frame_hits(ours.Rerank(folder)(candidates)) == expected
    with pytest.raises(pt.validate.InputValidationError):
        ours.Rerank(folder)(candidates.drop(columns='text'))
