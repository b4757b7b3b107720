"""Topics, and hits as they are compared, in tests of the PyTerrier wrappers."""

import pytest

pt = pytest.importorskip('pyterrier')
pd = pytest.importorskip('pandas')


QUERIES = {'q1': 'cat sat mat', 'q2': 'red fish sea', 'ä3': 'old tree'}


TOPICS = pd.DataFrame(list(QUERIES.items()), columns=['qid', 'query'])


HITS = ['qid', 'query', 'docno', 'score', 'rank']


def frame_of(hits):
    """{qid: [(docno, score)]} in the order of rank."""
    ordered = hits.sort_values(['qid', 'rank'], kind='stable')
    return {
        qid: list(zip(own['docno'], own['score'], strict=True))
        for qid, own in ordered.groupby('qid')
    }


def pairs(run):
    return {qid: [(hit.docid, hit.score) for hit in hits] for qid, hits in run.items()}
