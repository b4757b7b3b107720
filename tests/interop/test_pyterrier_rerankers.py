"""Rerankers as PyTerrier transformers give what they give themselves."""

import numpy as np
import pytest
from pyterrier_world import frame_of, pairs

import pyserini_repbert.interop.pyterrier as ours
from pyserini_repbert.errors import InputError
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank import DuoBertReranker, EpicReranker, MonoBertReranker
from tests.rerank.many import rerank_many

pt = pytest.importorskip('pyterrier')
pd = pytest.importorskip('pandas')


def together(reranker, frame):
    """Our own reranker's answer to all queries at once: batches of the model may decide over the
    last digit.
    """
    groups = [
        (key, rows.sort_values('rank')) for key, rows in frame.groupby(['qid', 'query'], sort=False)
    ]
    lists = [list(map(Candidate, rows['docno'], rows['score'], rows['text'])) for _, rows in groups]
    found = rerank_many(reranker, [query for (_, query), _ in groups], lists)
    return pairs({qid: hits for ((qid, _), _), hits in zip(groups, found, strict=True)})


def test_monobert_gives_its_own_scores_and_keeps_columns(candidates, cross_encoder_folder):
    folder = cross_encoder_folder('monobert')
    shuffled = candidates.assign(note=candidates['docno']).sample(frac=1, random_state=1)
    before = shuffled.copy()
    found = ours.Rerank(folder, token_budget=64)(shuffled)
    assert frame_of(found) == together(MonoBertReranker(folder, token_budget=64), shuffled)
    assert frame_of(ours.Rerank(folder)(candidates)) == together(
        MonoBertReranker(folder), candidates
    )
    assert (found['note'] == found['docno']).all()
    pd.testing.assert_frame_equal(shuffled, before)


def test_equal_scores_keep_the_order_of_the_stage_before(cross_encoder_folder):
    frame = pd.DataFrame(
        {
            'qid': '1',
            'query': 'cat',
            'docno': ['a', 'b', 'c'],
            'text': 'dog ran',
            'rank': [2, 0, 1],
            'score': 0.0,
        }
    )
    monobert = ours.Rerank(cross_encoder_folder('monobert'))
    assert monobert(frame)['docno'].tolist() == ['b', 'c', 'a']
    assert monobert(frame.drop(columns=['rank', 'score']))['docno'].tolist() == ['a', 'b', 'c']
    with pytest.raises(InputError, match="'c' has no text"):
        monobert(frame.assign(text=['cat', 'cat', None]))
    with pytest.raises(InputError, match="'a' comes twice"):
        monobert(frame.assign(docno='a'))


@pytest.mark.parametrize('method', ['sum', 'binary', 'min', 'max', 'sample'])
def test_duobert_by_every_aggregation(candidates, cross_encoder_folder, method):
    settings = {'samples': 3, 'seed': 7} if method == 'sample' else {}
    folder = cross_encoder_folder('duobert')
    own = DuoBertReranker(folder, method=method, **settings)
    found = ours.Rerank(folder, method=method, **settings)(candidates)
    assert frame_of(found) == together(own, candidates)
    with_matrix = ours.Rerank(folder, method=method, matrix=True, **settings)(candidates)
    pd.testing.assert_frame_equal(with_matrix.drop(columns='duobert_p'), found)
    for (_, query), rows in with_matrix.groupby(['qid', 'query']):
        matrix = np.stack(rows.sort_values('rank')['duobert_p'].tolist())
        assert matrix.shape == (7, 7)
        assert np.isnan(np.diag(matrix)).all()
        assert (~np.isnan(matrix)).sum() == own.inferences(7)
        if method == 'sum':
            assert np.nansum(matrix, axis=1) == pytest.approx(rows['score'].to_numpy())
        texts = rows['text'].tolist()
        if method == 'max':  # p of one pair, from a model call of its own
            ranking = Ranking(['i', 'j'], [0, 0], texts[:2])
            difference = own.pair_differences([query], [ranking])[0][0, 1]
            assert matrix[0, 1] == pytest.approx(1 / (1 + np.exp(-difference)), abs=1e-6)


def test_epic_from_an_index_and_on_the_fly(candidates, tiny_epic, tmp_path):
    folder = tiny_epic()
    documents = tmp_path / 'corpus.jsonl'
    passages = [
        {'docno': passage.docid, 'text': passage.text} for passage in open_corpus(documents)
    ]
    index = ours.EpicIndexer(tmp_path / 'epic-index', folder, prune=5).index(iter(passages))
    found = ours.Rerank(folder, index=index)(candidates.drop(columns='text'))
    assert frame_of(found) == together(EpicReranker(folder, index=index), candidates)
    assert frame_of(ours.Rerank(folder)(candidates)) == together(EpicReranker(folder), candidates)
    with pytest.raises(pt.validate.InputValidationError):
        ours.Rerank(folder)(candidates.drop(columns='text'))
