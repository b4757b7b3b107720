"""What is learnt from judgments: the query map, the weights of fusion, and the folder that
searches with both.
"""

import json
import math
import random

import numpy as np
import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.data.topics import normal_form
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.evaluate.studies.fusion import untuned_settings
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.pipeline.adapted import read_adapted, with_adapted, write_adapted
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Query, Ranker, Ranking
from pyserini_repbert.rerank import Reranker
from pyserini_repbert.search import RepBertSearcher
from pyserini_repbert.train.adapting import adapt
from pyserini_repbert.train.alignment import Alignment
from pyserini_repbert.train.judged_topics import JudgedTopics
from pyserini_repbert.train.query_map import Topic


class Fixed(Ranker):
    """The same ranking for every topic, or that of its qid."""

    name = 'fixed'

    def __init__(self, rankings):
        self.rankings = rankings

    def _rank(self, topics, run, k, trace):
        return {topic.qid: self.rankings[topic.qid] for topic in topics}


@pytest.fixture
def searcher(tiny_checkpoint, corpus_file, tmp_path):
    """300 passages; what encodes a query is another model, which the index need not know."""
    encode_corpus(
        open_corpus(corpus_file(300)), RepBertDocumentEncoder(tiny_checkpoint()), tmp_path / 'index'
    )
    return RepBertSearcher(tmp_path / 'index').with_settings(name='tiny')


def turned(searcher, n_topics):
    """Topics whose vectors are those of their relevant passage, with the second half of the
    dimensions turned round.
    """
    vectors = searcher.index.vectors(np.arange(n_topics))
    vectors[:, vectors.shape[1] // 2 :] *= -1
    texts = {f'topic {number}': vector for number, vector in enumerate(vectors)}
    searcher.encode = lambda queries: np.stack([texts[query] for query in queries])
    topics = [Query(str(number), text) for number, text in enumerate(texts)]
    return topics, {topic.qid: {f'd{number}': 1} for number, topic in enumerate(topics)}


def test_columns_by_hand():
    """b .5 + .5 * 0, a 1 + 0, c 0 + .5 * 1; gains 3 / log2(2) and 1 / log2(3)."""
    rankings = [Ranking(['a', 'b', 'x'], [5.0, 4.0, 3.0]), Ranking(['c', 'b'], [2.0, 1.0])]
    columns = Alignment.of(rankings, {'b': 1, 'c': 3})
    assert columns.scores.tolist() == [[1.0, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    ideal = 3 + 1 / math.log2(3)
    first, second = columns.values([1.0, 0.0], [0.4, 0.6])  # a b c x; c a b x
    assert first == pytest.approx((1 / math.log2(3) + 3 / 2) / ideal)
    assert second == pytest.approx((3 + 1 / 2) / ideal)


def test_a_map_is_learnt_that_helps_topics_held_out(searcher):
    topics, qrels = turned(searcher, 60)
    learnt = adapt(searcher, [], topics, qrels)
    assert np.array_equal(learnt.query_map, learnt.query_map.T)
    assert learnt.weights == (1.0,) and learnt.n_topics == 60
    before = learnt.untuned[searcher.name].mean()
    assert learnt.held_out.mean() == learnt.steps['with the query map'].mean() > 4 * before


def test_a_topic_does_not_teach_its_own_estimate(searcher):
    """The sparse ranking is right for one topic alone: held out, it gets the weights of the
    others.
    """
    topics, qrels = turned(searcher, 20)
    wrong = Ranking([f'd{number}' for number in range(200, 210)], range(10, 0, -1))
    rankings = {topic.qid: wrong for topic in topics} | {'7': Ranking(['d7', 'd200'], [2.0, 1.0])}
    learnt = adapt(searcher, [Fixed(rankings)], topics, qrels)
    assert learnt.weights[0] > 0.8
    assert learnt.untuned['fixed'][7] == 1.0 and learnt.untuned['fixed'].sum() == 1.0
    assert list(learnt.untuned)[:3] == ['tiny', 'fixed', 'interleave tiny+fixed']


class Backwards(Reranker):
    """Scores candidates by their place, the last one best."""

    name = 'backwards'
    needs_text = False

    def score_lists(self, queries, lists, on_progress=None):
        return [np.arange(len(hits), dtype=float) for hits in lists]


def test_a_share_of_the_score_is_left_to_the_run_before():
    """a 1 0, b .5 .5, c 0 1 with a quarter of the second; d is not read."""
    run = {'1': Ranking(['a', 'b', 'c', 'd'], [9.0, 8.0, 7.0, 1.0])}
    ranker = Backwards().with_settings(reads=3, weight=0.25)
    assert ranker.rank([Query('1', 'x')], run)['1'] == Ranking(
        ['a', 'b', 'c', 'd'], [0.75, 0.5, 0.25, -0.75]
    )
    assert ranker.identity() != Backwards().with_settings(reads=3).identity()


def test_the_share_of_a_reranker_is_learnt(searcher):
    topics, qrels = turned(searcher, 20)
    right = {topic.qid: Ranking([f'd{topic.qid}', 'd200'], [2.0, 1.0]) for topic in topics}
    learnt = adapt(
        searcher, [Fixed(right)], topics, qrels, reranker=Backwards().with_settings(reads=10)
    )
    assert learnt.rerank_weight < 0.5 and learnt.weights[1] > 0.5
    assert list(learnt.steps) == ['with the query map', 'and fused', 'and reranked']
    assert learnt.untuned['fixed, backwards@10'].mean() < learnt.held_out.mean() == 1.0


@pytest.fixture
def adapted(searcher, tiny_checkpoint, tmp_path):
    """A folder whose map doubles every query vector."""
    folder = tmp_path / 'mine'
    weights = searcher.query_encoder.weights_sha256
    values = {
        'index': str(tmp_path / 'index'),
        'encoder': str(tmp_path / 'tiny'),
        'encoder_weights': weights,
    }
    own = np.eye(searcher.dimension, dtype=np.float32)
    write_adapted(folder, own, sparse=(), weights=(1.0,), depth=1000, estimate={}, **values)
    return folder


def test_a_search_takes_its_index_and_its_map_from_the_folder(adapted, searcher):
    hits = open_pipeline(PipelineSpec(adapted=str(adapted))).pipeline.search('the cat', 5)
    plain = searcher.search('the cat', 5)
    assert [hit.docid for hit in hits] == [hit.docid for hit in plain]
    np.testing.assert_allclose(
        [hit.score for hit in hits], [2 * hit.score for hit in plain], rtol=1e-5
    )


def test_what_does_not_fit_is_refused(adapted, tiny_checkpoint, tmp_path):
    with pytest.raises(MismatchError, match='bm25 were given, .* learnt to fuse none'):
        with_adapted(PipelineSpec(adapted=str(adapted), sparse=('bm25@lucene',)))
    with pytest.raises(InputError, match='decides how rankings are fused'):
        with_adapted(PipelineSpec(adapted=str(adapted), fusion='rrf'))
    other = tiny_checkpoint('other', seed=1)
    encode_corpus(
        open_corpus(tmp_path / 'corpus.jsonl'),
        RepBertDocumentEncoder(other),
        tmp_path / 'other-index',
    )
    with pytest.raises(MismatchError, match='other weights: adapt again'):
        open_pipeline(
            PipelineSpec(
                adapted=str(adapted), index=str(tmp_path / 'other-index'), encoder=str(other)
            )
        )
    (adapted / 'query_map.npy').write_bytes(b'damaged')
    with pytest.raises(DamagedFileError, match='not the map'):
        read_adapted(adapted)


def test_the_commands(searcher, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [line for number in range(30) for line in [f'{number}\tcat dog {number}\n']]
    (tmp_path / 'topics.tsv').write_text(''.join(lines))
    (tmp_path / 'qrels').write_text(''.join(f'{number} 0 d{number} 1\n' for number in range(30)))
    command = 'adapt --index index --topics topics.tsv --qrels qrels --quiet --output mine'.split()
    assert run(main, command) == 0
    assert 'no gain that can be told from noise: mine is not written' in capsys.readouterr().out
    assert not (tmp_path / 'mine').exists()
    assert run(main, [*command, '--keep']) == 0
    estimate = json.loads((tmp_path / 'mine/adapted.json').read_text())['estimate']
    assert estimate['topics'] == 30 and f'gain: {estimate["gain"]:+.4f}' in capsys.readouterr().out
    assert json.loads((tmp_path / 'mine.record.json').read_text())['inputs'][0]['role'] == 'index'
    assert run(main, 'search --adapted mine --topics topics.tsv --output run'.split()) == 0
    inputs = json.loads((tmp_path / 'run.record.json').read_text())['inputs']
    assert [own['name'] for own in inputs if own['role'] == 'adapted'] == ['mine']
    assert run(main, command) == 2
    assert 'mine exists already: overwrite it' in capsys.readouterr().err
    assert run(main, [*command, '--keep', '--overwrite', '--seed', '1']) == 0
    assert json.loads((tmp_path / 'mine.record.json').read_text())['settings']['seed'] == 1
    other = [*command[:-1], 'index', '--keep', '--overwrite']
    assert run(main, other) == 2
    assert 'index is no adapted search that was made here' in capsys.readouterr().err


class Unmoved(Reranker):
    """Leaves every candidate where it is."""

    name = 'unmoved'
    needs_text = False

    def score_lists(self, queries, lists, on_progress=None):
        return [-np.arange(len(hits), dtype=float) for hits in lists]


class Undecided(Unmoved):
    """Finds all candidates equally good."""

    name = 'undecided'

    def score_lists(self, queries, lists, on_progress=None):
        return [np.ones(len(hits)) for hits in lists]


@pytest.mark.parametrize('reranker', [Unmoved(), Undecided()], ids=['unmoved', 'undecided'])
@pytest.mark.parametrize('reads', [5, 50])
def test_a_reranker_that_changes_nothing_gains_nothing(searcher, reranker, reads):
    draw = random.Random(1)
    topics, qrels = turned(searcher, 40)
    rankings = {}
    for topic in topics:
        docids = [f'd{number}' for number in draw.sample(range(100, 300), 39)]
        docids.insert(draw.randrange(40), f'd{topic.qid}')
        rankings[topic.qid] = Ranking(docids, range(40, 0, -1))
    learnt = adapt(
        searcher,
        [Fixed(rankings)],
        topics,
        qrels,
        reranker=reranker.with_settings(reads=reads),
    )
    assert learnt.steps['and reranked'].tolist() == learnt.steps['and fused'].tolist()
    rows = list(learnt.untuned.items())
    best = max(values.mean() for name, values in rows[:-2])
    assert [name.partition('@')[2] for name, values in rows[-2:]] == [
        f'{reads}',
        f'{reads}:weight=0.5',
    ]
    assert [values.mean() for name, values in rows[-2:]] == [best, best]


def test_topics_with_one_text_are_one_question(searcher):
    """Held out together, with one value: 25 texts, each four times in other spellings, each with
    one random passage.
    """
    draw = np.random.default_rng(3)
    texts = [f'topic {number}' for number in range(25)]
    vectors = dict(zip(texts, draw.normal(size=(25, searcher.dimension)), strict=True))
    searcher.encode = lambda queries: np.stack(
        [vectors[normal_form(query)] for query in queries]
    ).astype(np.float32)
    topics = []
    qrels = {}
    for number, text in enumerate(texts):
        passage = f'd{draw.integers(300)}'
        for spelling in (text, text.upper(), text.replace(' ', '\t'), f' {text}  '):
            topics.append(Query(f'{number}-{len(topics)}', spelling))
            qrels[topics[-1].qid] = {passage: 1}
    estimate = adapt(searcher, [], topics, qrels).estimate()
    assert (estimate.topics, estimate.texts) == (100, 25)
    assert not estimate.is_convincing and estimate.gain < 0.05


def test_the_values_of_one_text_are_averaged():
    """a twice, b once: (1 + 0) / 2 and .5."""
    topics = [
        Topic(Query(qid, text), np.zeros(2, np.float32), {'d': 1})
        for qid, text in (('1', 'a b'), ('2', 'c'), ('3', 'A  B'))
    ]
    judged = JudgedTopics(topics, seed=0)
    assert judged.average_by_text([1.0, 0.5, 0.0]).tolist() == [0.5, 0.5]
    fold_of = {n: fold for fold, members in enumerate(judged.folds) for n in members}
    assert fold_of[0] == fold_of[2] != fold_of[1]


def test_too_few_different_texts_are_refused(searcher):
    topics = [Query(str(number), 'the cat') for number in range(20)]
    qrels = {topic.qid: {f'd{topic.qid}': 1} for topic in topics}
    with pytest.raises(InputError, match=r'20 of 20 topics .* different texts are 1: at least 20'):
        adapt(searcher, [], topics, qrels)


def test_judgments_of_other_passages_or_topics_are_named(searcher):
    topics = [Query(str(number), f'cat {number}') for number in range(30)]
    passages = {topic.qid: {f'page-{topic.qid}': 1} for topic in topics}
    with pytest.raises(InputError, match=r"docids like 'd0', the judgments like 'page-0'"):
        adapt(searcher, [], topics, passages)
    others = {f'q{topic.qid}': {f'd{topic.qid}': 1} for topic in topics}
    with pytest.raises(InputError, match=r"qids like '0', the judgments like 'q0'"):
        adapt(searcher, [], topics, others)


def test_the_baseline_has_every_fusion_that_needs_no_judgments(searcher):
    topics, qrels = turned(searcher, 20)
    wrong = Ranking(['d200', 'd201'], [2.0, 1.0])
    learnt = adapt(searcher, [Fixed({topic.qid: wrong for topic in topics})], topics, qrels)
    assert list(learnt.untuned) == [
        'tiny',
        'fixed',
        'interleave tiny+fixed',
        'interleave fixed+tiny',
        'rrf tiny+fixed k=60',
        'interpolation tiny+fixed alpha=0.5',
        'interpolation tiny+fixed alpha=0.5 minmax',
        'interpolation tiny+fixed alpha=0.5 zscore',
        'interpolation tiny+fixed alpha=0.7',
        'interpolation tiny+fixed alpha=0.7 minmax',
        'interpolation tiny+fixed alpha=0.7 zscore',
    ]
    estimate = learnt.estimate()
    assert estimate.untuned == max(values.mean() for values in learnt.untuned.values())
    assert learnt.untuned[estimate.baseline].mean() == estimate.untuned


def test_three_rankings_are_weighed_by_default_shares():
    chosen = untuned_settings(['dense', 'bm25', 'ql'])
    assert [str(setting) for setting in chosen[:4]] == [
        'interleave dense+bm25+ql',
        'interleave bm25+ql+dense',
        'rrf dense+bm25+ql k=60',
        'interpolation dense+bm25+ql weights=0.333333 0.333333 0.333333',
    ]
    assert str(chosen[-2]) == 'interpolation dense+bm25+ql weights=0.7 0.15 0.15 minmax'


def random_judgments(qids, draw):
    """One random passage for each topic."""
    return {qid: {f'd{draw.randrange(300)}': 1} for qid in qids}


def shuffled_judgments(qids, draw):
    """The passage of another topic, but by chance, for each topic."""
    passages = draw.sample(range(len(qids)), len(qids))
    return {qid: {f'd{passage}': 1} for qid, passage in zip(qids, passages, strict=True)}


def right_judgments(qids, draw):
    """Its own passage for each topic: both rankings know something, and maps and weights nothing
    more.
    """
    return {qid: {f'd{qid}': 1} for qid in qids}


@pytest.mark.slow
@pytest.mark.parametrize(
    ('judge', 'n_spellings'),
    [(random_judgments, 1), (random_judgments, 4), (shuffled_judgments, 1), (right_judgments, 1)],
)
def test_nothing_to_learn_is_not_claimed(searcher, judge, n_spellings):
    """Over 100 seeds, at most 5 claims; a reranker that changes nothing gains 0 in each."""
    passages = searcher.index.vectors(np.arange(300))
    claims = 0
    for seed in range(100):
        draw = random.Random(seed)
        noise = np.random.default_rng(seed).normal(size=(25, searcher.dimension))
        vectors = (passages[:25] + passages.std() * noise).astype(np.float32)
        searcher.encode = lambda queries, vectors=vectors: np.stack(
            [vectors[int(query.split()[1])] for query in queries]
        )
        numbers = [str(number) for number in range(25)]
        judgments = judge(numbers, draw)
        topics = []
        qrels = {}
        rankings = {}
        for number in numbers:
            docids = draw.sample([f'd{row}' for row in range(300) if row != int(number)], 39)
            docids.insert(min(int(draw.expovariate(0.2)), 39), f'd{number}')
            for spelling in range(n_spellings):
                topics.append(Query(f'{number}-{spelling}', f'topic{" " * (spelling + 1)}{number}'))
                qrels[topics[-1].qid] = judgments[number]
                rankings[topics[-1].qid] = Ranking(docids, range(40, 0, -1))
        learnt = adapt(
            searcher,
            [Fixed(rankings)],
            topics,
            qrels,
            seed=seed,
            reranker=Unmoved().with_settings(reads=20),
        )
        assert learnt.steps['and reranked'].tolist() == learnt.steps['and fused'].tolist()
        claims += learnt.estimate().is_convincing
    print(f'{judge.__name__}, {n_spellings} times each: {claims} claims')
    assert claims <= 5
