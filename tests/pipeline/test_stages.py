import itertools
import json

import numpy as np
import pytest

from pyserini_repbert.commands.terminal import costs_text
from pyserini_repbert.data.passages import CorpusTexts
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.pipeline import (
    Pipeline,
    StageCost,
    StageSpec,
    open_reranker,
    open_texts,
    parse_stage,
)
from pyserini_repbert.ranking import NO_HITS, Candidate, Query, Ranking
from pyserini_repbert.rerank import DuoBertReranker, MonoBertReranker, Reranker
from pyserini_repbert.trace import Notes


class Reverse(Reranker):
    """Scores that turn a list around."""

    needs_text = False

    def score_lists(self, queries, lists, on_progress=None):
        return [np.arange(len(items), dtype=float) for items in lists]


class First:
    """A searcher that finds d0, d1, …, and nothing for an empty query."""

    def batch_search(self, queries, qids, k=10, threads=1):
        hits = [Candidate(f'd{place}', 9.0 - place) for place in range(k)]
        return {qid: hits if query else [] for qid, query in zip(qids, queries, strict=True)}


def docids(items):
    return [item.docid for item in items]


def costs_of(notes):
    return [part.cost for part in notes.walk() if part.cost]


def test_each_stage_reranks_its_best_and_leaves_the_rest_below():
    pipeline = Pipeline([First(), (Reverse(), 4), (Reverse(), 2)])
    hits = pipeline.search('x', 6)
    assert docids(hits) == ['d2', 'd3', 'd1', 'd0', 'd4', 'd5']
    assert all(a.score > b.score for a, b in itertools.pairwise(hits))
    dropping = Pipeline([First(), (Reverse(), 4), (Reverse(), 2)], drop_rest=True)
    assert docids(dropping.search('x')) == ['d2', 'd3']
    assert docids(pipeline.search('x', k=3)) == ['d2', 'd3', 'd1']
    with pytest.raises(InputError, match='the query is empty: give a question'):
        pipeline.search(' ')
    notes = Notes()
    run = pipeline.rank([Query('a', 'x'), Query('b', ''), Query('c', 'y')], k=6, trace=notes)
    assert {qid: len(ranking) for qid, ranking in run.items()} == {'a': 6, 'b': 0, 'c': 6}
    assert [(cost.queries, cost.inferences) for cost in costs_of(notes)] == [(2, 8), (2, 4)]


def test_a_run_is_given_to_rerankers(world):
    mono = MonoBertReranker(world.mono)
    duo = DuoBertReranker(world.duo)
    texts = CorpusTexts(open_corpus(world.corpus), (f'd{number}' for number in range(20)))
    pipeline = Pipeline([(mono, 10), (duo, 3)], texts)
    notes = Notes()
    run = pipeline.rank(world.queries, world.run, None, notes)
    with_text = [
        Candidate(docid, 0.0, texts.texts([docid])[0]) for docid in world.run['q1'].docids[:10]
    ]
    first = mono.rerank('red cat', with_text)
    expected = (
        docids(duo.rerank('red cat', first[:3]))
        + docids(first[3:])
        + list(world.run['q1'].docids[10:])
    )
    assert docids(run['q1']) == expected
    assert len(run['q3']) == 4
    assert [cost.inferences for cost in costs_of(notes)] == [10 + 10 + 4, 3 * 6]
    assert costs_of(notes)[0].tokens > 0
    with pytest.raises(InputError, match='give it the run of a first stage'):
        pipeline.search('red cat')


def test_a_passage_that_is_not_there_is_named(world):
    texts = CorpusTexts(open_corpus(world.corpus), ['d0'])
    moon = [Query('q2', 'moon')]
    with pytest.raises(
        InputError, match="5 candidates have no text, 'd3' among them: give the corpus"
    ):
        Pipeline([(MonoBertReranker(world.mono), 5)], texts).rank(moon, world.run)
    with pytest.raises(InputError, match='has no text: name the corpus'):
        Pipeline([(MonoBertReranker(world.mono), 5)]).rank(moon, world.run)


def test_depths_must_not_grow():
    with pytest.raises(InputError, match='50 candidates, .*Reverse@20'):
        Pipeline([First(), (Reverse(), 20), (Reverse(), 50)])
    with pytest.raises(InputError, match='one first stage or none'):
        Pipeline([(Reverse(), 5), First()])
    with pytest.raises(InputError, match='at least 1 candidate'):
        Pipeline([First(), (Reverse(), 0)])


def test_the_rest_gets_lower_scores():
    head = Ranking(['a', 'b'], [-7.5, -9.0])
    rest = Ranking(['c', 'd'], [30.0, 20.0])
    assert head.append_below(rest) == Ranking(['a', 'b', 'c', 'd'], [-7.5, -9.0, -10.0, -11.0])
    assert NO_HITS.append_below(rest) == rest
    assert head.append_below(NO_HITS) == head
    texts = head.with_texts({'a': 'one'}).append_below(rest).texts
    assert texts == ('one', None, None, None)


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('monobert-large@1000', StageSpec('monobert-large', 1000)),
        ('a@b/c@5', StageSpec('a@b/c', 5)),
        ('duo@50:binary', StageSpec('duo', 50, (('method', 'binary'),))),
        (
            'duo@50:sample=10,seed=3',
            StageSpec('duo', 50, (('method', 'sample'), ('samples', 10), ('seed', 3))),
        ),
        (
            'm@9:layout=pygaggle,max-length=256',
            StageSpec('m', 9, (('layout', 'pygaggle'), ('max_length', 256))),
        ),
    ],
)
def test_stages_are_parsed(text, expected):
    assert parse_stage(text) == expected
    assert expected.label == f'{expected.name.rpartition("/")[2]}@{expected.k}'


@pytest.mark.parametrize(
    'text',
    [
        'mono',
        'mono@',
        '@5',
        'mono@0',
        'mono@x',
        'mono@5:',
        'm@5:a=b',
        'm@5:seed=x',
        'm@5:min,max',
        'm@²',
    ],
)
def test_other_texts_are_no_stages(text):
    with pytest.raises(InputError, match=r"stage '.*'"):
        parse_stage(text)


def test_rerankers_are_opened_by_their_checkpoints(world, tiny_checkpoint):
    assert isinstance(open_reranker(world.mono), MonoBertReranker)
    duo = open_reranker(
        world.duo, options={'method': 'min'}, precision='float32', token_budget=None
    )
    assert isinstance(duo, DuoBertReranker)
    assert duo.method == 'min'
    with pytest.raises(MismatchError, match="'repbert', expected a reranker: cedr, duobert"):
        open_reranker(tiny_checkpoint('encoder'))
    with pytest.raises(InputError, match="has no option 'method'"):
        open_reranker(world.mono, options={'method': 'min'})


def test_costs_add_up():
    one = StageCost('m@9', 2, 18, 1.0, 500, 18, 3)
    two = StageCost('m@9', 1, 9, 0.5, 100, 9, 0)
    total = one + two
    assert total == StageCost('m@9', 3, 27, 1.5, 600, 27, 3)
    assert total.inferences_per_query == 9
    assert total.truncated_share == pytest.approx(1 / 9)
    whole = StageCost('e@9', 2, 0, 1.0, 0, 18, 0, 18, 'float32')
    some = whole + StageCost('e@9', 1, 3, 0.5, 30, 9, 1, 5, 'float32')
    assert (
        some == StageCost('e@9', 3, 3, 1.5, 30, 27, 1, 23, 'float32')
        and some.truncated_share == 1 / 4
    )
    assert json.loads(json.dumps(some.as_json()))['stored'] == 23
    silent = StageCost('x@5', 1, 5, 1.0, None, 5, None)
    assert (silent + silent).tokens is None
    assert (
        costs_text([total, silent]).splitlines()[-1]
        == 'all stages: 14.0 inferences, 1.500 s a query'
    )


@pytest.mark.parametrize('stored', [True, False])
def test_texts_of_a_dense_bundle(stored, world, tiny_checkpoint, tmp_path):
    from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus

    bundle = tmp_path / 'bundle'
    encode_corpus(
        open_corpus(world.corpus),
        RepBertDocumentEncoder(tiny_checkpoint()),
        bundle,
        store_text=stored,
    )
    if stored:
        found = open_texts(None, str(bundle), []).texts(['d3', 'nobody'])
        assert found == [*CorpusTexts(open_corpus(world.corpus), ['d3']).texts(['d3']), None]
    else:
        with pytest.raises(InputError, match='stores no passages'):
            open_texts(None, str(bundle), [])


@pytest.mark.jvm
def test_texts_of_a_lucene_index(tmp_path):
    from pyserini_repbert.lucene.indexer import LuceneWriter

    folder = tmp_path / 'lucene'
    folder.mkdir()
    with LuceneWriter(folder) as writer:
        writer.add(['{"id": "a", "contents": "red cat"}', '{"id": "b", "contents": "old dog"}'])
    for corpus, index in ((None, str(folder)), (str(folder), None)):
        assert open_texts(corpus, index, ['a', 'b', 'c']).texts(['b', 'c', 'a']) == [
            'old dog',
            None,
            'red cat',
        ]
