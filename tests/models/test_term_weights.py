"""EPIC and `SparseEncoder` as one family: what both gave when each had code of its own.

`term_weights.json` holds settings, weights, rankings, scores, explanations and costs, recorded from
tiny random models before the two shared their code. Checksums and paths are left out.
"""

import json
import math
from dataclasses import asdict
from pathlib import Path

import pytest

from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.errors import InputError
from pyserini_repbert.explain.explaining import explanation
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.indexes.term_weights.opening import open_term_weights_searcher
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.ranking import Candidate, Query, Ranking
from pyserini_repbert.systems.encoders import term_weights_encoder
from pyserini_repbert.trace import Notes

RECORDED = Path(__file__).with_name('term_weights.json')
TEXTS = [
    'the cat sat on the mat .',
    'dog',
    '☃',
    'a big red fish ran on the old blue sea ' * 9,
    'moon , tree ? leafs',
    'old new red root seeds',
]
UNKNOWN = ['the small bird', 'the cat sat on the mat .', 'a big red fish ' * 20]
QUERIES = ['red cat on the mat', 'the old old sea', '', 'moon ☃']
# What each family stores unless it is told otherwise, and with fewer weights.
STORED = {
    'epic': [{}, {'prune': 0}, {'prune': 7}],
    'sparse-encoder': [{}, {'prune': 0, 'weights': 'float16'}, {'prune': 7}],
}
# float16 is exact to 2^-11: another machine may round the other way.
CLOSE = {'rel_tol': 2e-3, 'abs_tol': 2e-3}


@pytest.fixture(params=STORED)
def family(request):
    return request.param


@pytest.fixture
def folder(family, request):
    """A tiny random model of the family; it reads 20 tokens of a passage."""
    if family == 'epic':
        ranking = {'system': 'epic', 'variant': 'official', 'max_doc_length': 20}
        return request.getfixturevalue('tiny_epic')(ranking=ranking, max_position_embeddings=16)
    return request.getfixturevalue('splade')(length=20)


def collect_outputs(family, folder, output):
    """All that the family gives for `TEXTS` and `QUERIES`, as values of JSON."""
    encoder = term_weights_encoder(folder)
    passages = [(f'd{number}', text) for number, text in enumerate(TEXTS)]
    indexes = []
    for number, storage in enumerate(STORED[family]):
        index = output / f'index-{number}'
        encode_corpus(passages, encoder, index, store_text=True, shard_size=4, **storage)
        indexes.append(index)
    values = {
        'indexes': [_index_values(index) for index in indexes],
        'rankings': _rankings(indexes[-1]),
        'reranked': [],
        'explained': [],
    }
    for options in ({'index': str(indexes[-1])}, {'prune': 0}, {'prune': 5}):
        reranker = open_reranker(folder, options=options)
        values['reranked'].append(_reranked(reranker))
        values['explained'] += _explanations(reranker, 'index' in options)
    return values


def _index_values(folder):
    bundle = TermWeightsBundle(folder)
    settings = {}
    for name, value in asdict(bundle.settings).items():
        if name != 'encoder' and not name.endswith('sha256'):
            settings[name] = value
    weights = [bundle.vector(row).as_dict() for row in range(len(bundle))]
    return {
        'kind': bundle.manifest.kind,
        'settings': settings,
        'files': [list(shard.files) for shard in bundle.manifest.shards],
        'weights': [{str(term): weight for term, weight in vector.items()} for vector in weights],
    }


def _rankings(index):
    searcher = open_term_weights_searcher(index)
    run = searcher.rank([Query(str(number), text) for number, text in enumerate(QUERIES)], k=4)
    return [_ranking_values(ranking) for ranking in run.values()]


def _ranking_values(ranking):
    return {'docids': list(ranking.docids), 'scores': list(ranking.scores)}


def _candidates():
    """The passages of the index, and three texts that it lacks; the last is too long to read."""
    passages = [Candidate(f'd{number}', 0.0, text) for number, text in enumerate(TEXTS)]
    return passages + [Candidate(f'u{number}', 0.0, text) for number, text in enumerate(UNKNOWN)]


def _reranked(reranker):
    trace = Notes()
    topics = [Query(str(number), text) for number, text in enumerate(QUERIES)]
    run = {topic.qid: Ranking.of(_candidates()) for topic in topics}
    rankings = reranker.rank(topics, run, trace=trace)
    identity = {}
    for name, value in reranker.identity().items():
        # Digests are of weights that another machine may round.
        if name != 'name' and not name.endswith('sha256'):
            identity[name] = value
    counts = ('queries', 'inferences', 'candidates', 'tokens', 'truncated', 'stored', 'precision')
    return {
        'rankings': [_ranking_values(ranking) for ranking in rankings.values()],
        'identity': identity,
        'cost': {name: getattr(trace.cost, name) for name in counts},
    }


def _explanations(reranker, has_index):
    hits = [Ranking.of(_candidates()[4:7])]
    if has_index:
        hits.append(Ranking(['d0'], [0.0]))
    explained = []
    for query in (QUERIES[0], ''):
        for ranking in hits:
            values = explanation(reranker, query, ranking, top=3)
            del values['model']
            explained.append(values)
        explained.append(reranker.reason(query, _candidates()[0]))
    return explained


def _assert_close(given, expected, where=''):
    """The same values, numbers up to what another machine may round."""
    if isinstance(expected, dict) and set(expected) == {'docids', 'scores'}:
        _assert_same_ranking(given, expected, where)
    elif isinstance(expected, dict):
        assert list(given) == list(expected), where
        for name, value in expected.items():
            _assert_close(given[name], value, f'{where}/{name}')
    elif isinstance(expected, list):
        assert len(given) == len(expected), where
        for number, value in enumerate(expected):
            _assert_close(given[number], value, f'{where}/{number}')
    elif isinstance(expected, float):
        assert math.isclose(given, expected, **CLOSE), (where, given, expected)
    else:
        assert given == expected, where


def _assert_same_ranking(given, expected, where):
    """The same scores; documents whose scores are that close may change places."""
    assert given['scores'] == sorted(given['scores'], reverse=True), where
    scores = dict(zip(given['docids'], given['scores'], strict=True))
    assert len(scores) == len(expected['docids']), where
    for docid, score in zip(expected['docids'], expected['scores'], strict=True):
        assert math.isclose(scores[docid], score, **CLOSE), (where, docid)


def test_both_give_what_they_gave(family, folder, tmp_path):
    expected = json.loads(RECORDED.read_text(encoding='utf-8'))[family]
    given = collect_outputs(family, folder, tmp_path)
    _assert_close(json.loads(json.dumps(given)), expected)


@pytest.mark.parametrize('wrong', [{'prune': -1}, {'weights': 'int8'}])
def test_storage_that_a_family_lacks_is_refused(folder, wrong):
    with pytest.raises(InputError, match='expected 0 or more, and .*float16.* uint8'):
        term_weights_encoder(folder).encoding(**wrong)
