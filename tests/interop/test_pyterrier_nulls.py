"""PyTerrier frames and documents with nulls, and with one qid for two queries."""

from __future__ import annotations

import pytest
from pyterrier_world import TOPICS

import pyserini_repbert.interop.pyterrier as ours
from pyserini_repbert.errors import InputError
from pyserini_repbert.index.dense import DenseBundle

pytest.importorskip('pyterrier')
pd = pytest.importorskip('pandas')


def test_rows_without_a_query_and_qids_with_two_are_refused(dense):
    from pyserini_repbert.interop.pyterrier.frames import ranked_rows

    retriever = ours.RepBertRetriever(dense, num_results=2)
    for column in ('qid', 'query'):
        with pytest.raises(InputError, match=f"row 1 of the frame has no '{column}'"):
            retriever(TOPICS.astype(object).assign(**{column: [TOPICS[column][0], None, TOPICS[column][2]]}))
    with pytest.raises(InputError, match="qid '1' has two queries"):
        retriever(pd.DataFrame({'qid': ['1', '1'], 'query': ['a', 'b']}))
    hits = retriever(TOPICS)
    hits['query'] = hits['query'].astype(object).where(hits.index != 3)
    with pytest.raises(InputError, match="row 3 of the frame has no 'query'"):
        list(ranked_rows(hits, ['qid', 'query']))


def test_empty_fields_of_documents_are_no_words(tmp_path, tiny_checkpoint):
    documents = [
        {'docno': 'a', 'title': None, 'text': 'slugs'},
        {'docno': 'b', 'title': float('nan'), 'text': 'roses'},
    ]
    checkpoint = tiny_checkpoint('encoder')
    ours.RepBertIndexer(tmp_path / 'index', checkpoint, fields=['title', 'text']).index(documents)
    assert DenseBundle(tmp_path / 'index').texts(['a', 'b']) == ['slugs', 'roses']
    with pytest.raises(InputError, match="field 'docno' is empty"):
        ours.RepBertIndexer(tmp_path / 'other', checkpoint).index([{'docno': None, 'text': 'x'}])
