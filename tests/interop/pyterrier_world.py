"""Topics, and hits as they are compared, in tests of the PyTerrier wrappers."""

import pytest

pt = pytest.importorskip('pyterrier')
pd = pytest.importorskip('pandas')


QUERIES = {'q1': 'cat sat mat', 'q2': 'red fish sea', 'ä3': 'old tree'}
TOPICS = pd.DataFrame(list(QUERIES.items()), columns=['qid', 'query'])
HITS = ['qid', 'query', 'docno', 'score', 'rank']


def frame_hits(frame):
    """{qid: [(docno, score), …]} of a result frame, in the order of rank."""
    ordered = frame.sort_values(['qid', 'rank'], kind='stable')
    hits = {}
    for qid, rows in ordered.groupby('qid'):
        hits[qid] = list(zip(rows['docno'], rows['score'], strict=True))
    return hits


def run_hits(run):
    """{qid: [(docid, score), …]} of a run; a query without hits is left out."""
    hits = {}
    for qid, ranking in run.items():
        if len(ranking):
            hits[qid] = [(hit.docid, hit.score) for hit in ranking]
    return hits
