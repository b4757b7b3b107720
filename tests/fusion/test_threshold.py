"""The best of whole rankings, from their first hits: equal to fusing whole rankings."""

import random
from functools import partial
from itertools import chain
from math import fsum, nan
from operator import mul

import pytest

from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion import Fusion, FusionSettings, threshold
from pyserini_repbert.fusion.fused import look_deeper
from pyserini_repbert.fusion.threshold import FirstHits, fuse_first_hits
from pyserini_repbert.ranking import Background, Query, Ranker, by_score

TOPIC = Query('q', 'text')


class ScoredRanker(Ranker):
    """Ranks the documents of a table by their scores; notes how deep it was asked to rank."""

    gives_document_scores = True

    def __init__(self, name, score_of, background=0.0, chance=0.0, others=()):
        self.name = name
        self.score_of = score_of
        self.background = Background(background, chance)
        self.others = frozenset(others)
        self.depths = []

    def unjudged(self, topic):
        return self.others.intersection if self.others else None

    def _rank(self, topics, run, k, trace):
        self.depths.append(k)
        whole = by_score(list(self.score_of), list(self.score_of.values()))
        whole = whole.with_background(self.background)
        return {topic.qid: whole[:k] for topic in topics}

    def document_scores(self, topic, docids, hits):
        return [self.score_of.get(docid) for docid in docids]


def by_max(*weights):
    return FusionSettings('interpolation', weights=weights, normalize='max')


def above_background(*weights):
    return FusionSettings('interpolation', weights=weights, normalize='background')


NONE = frozenset()


def fused_by_hand(
    tables, weights, k, backgrounds=(0, 0, 0), chances=(0, 0, 0), others=(NONE, NONE, NONE)
):
    """The k best of all documents: the sum of weights times scores over the best, from a
    background on.

    A best score that is less above it than it would be by chance counts as a share of that. Without
    a score above the background, a term falls with the distance to the best score. A ranking gives
    a document of `others` at least the mean share of the rankings that judge it.
    """
    all_shares = []
    for table, zero, chance in zip(tables, backgrounds, chances, strict=False):
        best = max(table.values(), default=zero) - zero
        shares = {}
        for docid, value in table.items():
            score = value - zero
            share = max(score, 0) / max(best, chance) if best > 0 else 1 / (1 + best - score)
            shares[docid] = share
        all_shares.append(shares)
    totals = {}
    for docid in dict.fromkeys(chain.from_iterable(all_shares)):
        own = [shares.get(docid, 0.0) for shares in all_shares]
        judged = [part for part in range(len(tables)) if docid not in others[part]]
        weight = sum(weights[part] for part in judged)
        mean = sum(weights[part] * own[part] for part in judged) / weight if weight else 0.0
        raised = [own[part] if part in judged else max(own[part], mean) for part in range(len(own))]
        totals[docid] = fsum(map(mul, weights, raised))
    return by_score(list(totals), list(totals.values()))[:k]


def drawn_table(drawn, n_documents):
    """Scores of some documents, many of them alike, some of them below 0."""
    found = drawn.sample(range(n_documents), drawn.randint(0, n_documents))
    n_values = drawn.choice([2, 7, 1000])
    return {f'd{number}': drawn.randint(-n_values // 5, n_values) / 8 for number in found}


@pytest.mark.parametrize('seed', range(60))
def test_equals_the_fusion_of_whole_rankings(seed):
    drawn = random.Random(seed)
    tables = [drawn_table(drawn, drawn.choice([5, 200])) for _ in range(drawn.choice([2, 2, 3]))]
    weights = [drawn.choice([0.25, 0.5, 1]) for _ in tables]
    k = drawn.choice([1, 3, 10])
    parts = [ScoredRanker(str(number), table) for number, table in enumerate(tables)]
    ranked = Fusion(parts, by_max(*weights)).rank([TOPIC], None, k)['q']
    assert ranked == fused_by_hand(tables, weights, k)


@pytest.mark.parametrize('seed', range(60))
def test_above_a_background_equals_the_fusion_of_whole_rankings(seed):
    """A document that a ranking lacks adds nothing, whether its background is above 0 or below."""
    drawn = random.Random(seed)
    tables = [drawn_table(drawn, drawn.choice([5, 200])) for _ in range(drawn.choice([2, 2, 3]))]
    weights = [drawn.choice([0.25, 0.5, 1]) for _ in tables]
    backgrounds = [drawn.choice([-2.0, -0.125, 0.0, 0.5, 40.0, 1000.0]) for _ in tables]
    chances = [drawn.choice([0.0, 1.0, 16.0]) for _ in tables]
    k = drawn.choice([1, 3, 10])
    parts = []
    for number, table in enumerate(tables):
        parts.append(ScoredRanker(str(number), table, backgrounds[number], chances[number]))
    fusion = Fusion(parts, above_background(*weights))
    ranked = fusion.rank([TOPIC], None, k)['q']
    expected = fused_by_hand(tables, weights, k, backgrounds, chances)
    assert ranked == expected
    assert fusion.rank([TOPIC], None, None)['q'][:k] == expected


@pytest.mark.parametrize('seed', range(90))
def test_a_document_that_a_ranking_cannot_judge_has_the_share_of_the_others(seed):
    drawn = random.Random(seed)
    n_documents = drawn.choice([5, 200])
    tables = [drawn_table(drawn, n_documents) for _ in range(drawn.choice([2, 2, 3]))]
    weights = [drawn.choice([0.25, 0.5, 1, 1]) for _ in tables]
    backgrounds = [drawn.choice([-2.0, 0.0, 0.5]) for _ in tables]
    others = []
    for _ in tables:
        n_others = drawn.choice([0, n_documents // 2, n_documents])
        others.append(frozenset(f'd{n}' for n in drawn.sample(range(n_documents), n_others)))
    k = drawn.choice([1, 3, 10])
    parts = []
    for number, table in enumerate(tables):
        background = backgrounds[number]
        parts.append(ScoredRanker(str(number), table, background, others=others[number]))
    fusion = Fusion(parts, above_background(*weights))
    expected = fused_by_hand(tables, weights, None, backgrounds, others=others)
    ranked = fusion.rank([TOPIC], None, k)['q']
    assert ranked.docids == expected.docids[:k]
    assert ranked.scores == pytest.approx(expected.scores[:k])
    whole = fusion.rank([TOPIC], None, None)['q']
    assert whole.docids == expected.docids


def test_only_shares_above_the_background_are_raised():
    tables = [{'ours': 0.8, 'foreign': 1.0}, {'ours': 5.0}]
    parts = [ScoredRanker('dense', tables[0]), ScoredRanker('bm25', tables[1], others=['foreign'])]
    ranked = Fusion(parts, above_background(0.5, 0.5)).rank([TOPIC], None, 2)['q']
    assert ranked.docids == ('foreign', 'ours')
    assert ranked.scores == pytest.approx((1.0, 0.9))
    ranked = Fusion(parts, by_max(0.5, 0.5)).rank([TOPIC], None, 2)['q']
    assert ranked.docids == ('ours', 'foreign')
    assert ranked.scores == pytest.approx((0.9, 0.5))


def test_near_cosines_count_as_much_as_others_from_their_background():
    """Over the best, 'words' came first: .80 of .90 is nearly as much as .90."""
    cosines = {'near': 0.90, 'words': 0.80, 'far': 0.78}
    words = {'words': 8.0, 'far': 6.0}
    parts = [ScoredRanker('dense', cosines, 0.78), ScoredRanker('bm25', words)]
    over_best = Fusion(parts, by_max(0.6, 0.4)).rank([TOPIC], None, 3)['q']
    assert over_best.docids == ('words', 'far', 'near')
    ranked = Fusion(parts, above_background(0.6, 0.4)).rank([TOPIC], None, 3)['q']
    assert ranked.docids == ('near', 'words', 'far')
    assert ranked.scores == pytest.approx((0.6, 0.6 * 0.02 / 0.12 + 0.4, 0.3))


def test_a_best_hit_by_chance_counts_for_less():
    """A name that the encoder does not know: its nearest text had a greater share than the name."""
    cosines = {'any': 0.30, 'named': 0.05}
    words = {'named': 5.0}
    parts = [ScoredRanker('dense', cosines), ScoredRanker('bm25', words)]
    over_best = Fusion(parts, above_background(0.6, 0.4)).rank([TOPIC], None, 2)['q']
    assert over_best.docids == ('any', 'named')
    parts[0] = ScoredRanker('dense', cosines, chance=0.5)
    ranked = Fusion(parts, above_background(0.6, 0.4)).rank([TOPIC], None, 2)['q']
    assert ranked.docids == ('named', 'any')
    assert ranked.scores == pytest.approx((0.6 * 0.1 + 0.4, 0.6 * 0.6))


def test_few_hits_prove_the_best_where_cosines_are_near():
    cosines = {f'd{n}': 0.75 + 0.15 / (1 + n) for n in range(4000)}
    words = {f'd{n}': 9 / (1 + n) for n in range(4000)}
    parts = [ScoredRanker('dense', cosines, 0.75), ScoredRanker('bm25', words)]
    ranked = Fusion(parts, above_background(0.5, 0.5)).rank([TOPIC], None, 10)['q']
    assert ranked == fused_by_hand([cosines, words], [0.5, 0.5], 10, [0.75, 0])
    assert [part.depths for part in parts] == [[60], [60]]


def test_a_ranking_without_a_known_background_is_refused():
    parts = [ScoredRanker('dense', {'a': 1.0}, nan), ScoredRanker('bm25', {'a': 1.0})]
    with pytest.raises(InputError, match='background is not known'):
        Fusion(parts, above_background(0.5, 0.5)).rank([TOPIC], None, 1)
    # One that found nothing adds nothing.
    parts = [ScoredRanker('dense', {}, nan), ScoredRanker('bm25', {'a': 1.0})]
    assert len(Fusion(parts, above_background(0.5, 0.5)).rank([TOPIC], None, 1)['q']) == 1


@pytest.mark.parametrize('seed', range(40))
def test_rankings_without_a_score_above_zero_keep_their_order(seed):
    """All of their hits had 0, as if they had found nothing."""
    drawn = random.Random(seed)
    first = {docid: -1 - score for docid, score in drawn_table(drawn, 200).items()}
    tables = [first, drawn_table(drawn, 200)]
    parts = [ScoredRanker(str(number), table) for number, table in enumerate(tables)]
    first_alone = Fusion(parts, by_max(1, 0)).rank([TOPIC], None, 10)['q']
    assert first_alone == fused_by_hand(tables, [1, 0], 10)
    assert Fusion(parts, by_max(0.5, 0.5)).rank([TOPIC], None, 10)['q'] == fused_by_hand(
        tables, [0.5, 0.5], 10
    )


def drawn_zeros(drawn):
    """Scores of a few of twelve documents, many of them 0 and most below."""
    best = drawn.choice([0, 0, 2])
    found = drawn.sample(range(12), drawn.randint(1, 12))
    return {f'd{number:02}': min(best, drawn.choice([-3, -1, 0, best])) for number in found}


@pytest.mark.parametrize('seed', range(300))
@pytest.mark.parametrize('zero', [0.0, -1.0, 2.0])
def test_what_is_proven_is_so_where_the_best_score_is_zero(seed, zero):
    """A document that a ranking lacked has the score 0, and counted as one of its best hits."""
    drawn = random.Random(seed)
    tables = [drawn_zeros(drawn), drawn_zeros(drawn)]
    depth = drawn.choice([2, 4, 6])
    parts = []
    for table in tables:
        hits = by_score(list(table), list(table.values()))[:depth]
        scores_of = partial(scores_in, table)
        background = Background(zero)
        parts.append(FirstHits(hits.docids, len(hits) < depth, scores_of, background))
    fused = fuse_first_hits(parts, above_background(0.5, 0.5), 2)
    if fused.is_proven:
        assert fused.ranking == fused_by_hand(tables, [0.5, 0.5], 2, [zero, zero])


def scores_in(table, docids):
    return [table.get(docid) for docid in docids]


def test_few_hits_are_enough_where_scores_fall():
    tables = [{f'd{n}': 1 / (1 + n) for n in range(4000)} for _ in range(2)]
    parts = [ScoredRanker(str(number), table) for number, table in enumerate(tables)]
    ranked = Fusion(parts, by_max(0.5, 0.5)).rank([TOPIC], None, 10)['q']
    assert ranked == fused_by_hand(tables, [0.5, 0.5], 10)
    assert [part.depths for part in parts] == [[60], [60]]


def test_a_document_that_one_ranking_found_late_is_completed():
    first = {f'a{n:03}': 100.0 - n for n in range(100)} | {'x': 20.0}
    second = {f'b{n:03}': 100.0 - 90 * (n > 0) for n in range(100)} | {'x': 99.0}
    parts = [ScoredRanker('first', first), ScoredRanker('second', second)]
    ranked = Fusion(parts, by_max(0.5, 0.5)).rank([TOPIC], None, 1)['q']
    assert ranked.docids == ('x',)
    assert ranked.scores == pytest.approx((0.5 * 0.2 + 0.5 * 0.99,))


def test_alike_scores_are_not_searched_without_end_and_soon_but_once():
    tables = [{f'{letter}{n:05}': 1 + 1 / (9 + n) for n in range(5000)} for letter in 'ab']
    parts = [ScoredRanker(str(number), table) for number, table in enumerate(tables)]
    fusion = Fusion(parts, by_max(0.5, 0.5))
    for _ in range(3):
        assert len(fusion.rank([TOPIC], None, 10)['q']) == 10
    assert parts[0].depths == [60, 240, 1000, 60, 240, 1000, 240, 1000]


def test_hundreds_of_documents_of_one_score_hide_no_better_one():
    tables = []
    for letter in 'ab':
        copies = {f'{letter}{n:03}': 1.0 for n in range(200)}
        tables.append(copies | {'both': 0.9})
    parts = [ScoredRanker(str(number), table) for number, table in enumerate(tables)]
    (hit,) = Fusion(parts, by_max(0.5, 0.5)).rank([TOPIC], None, 1)['q']
    assert (hit.docid, hit.score) == ('both', 0.9)


def test_all_hits_and_a_depth_of_ones_own():
    tables = [{'a': 4.0, 'b': 1.0}, {'b': 8.0, 'c': 2.0}]
    parts = [ScoredRanker(str(number), table) for number, table in enumerate(tables)]
    whole = Fusion(parts, by_max(0.5, 0.5)).rank([TOPIC], None, None)['q']
    assert dict(zip(whole.docids, whole.scores, strict=True)) == {'b': 0.625, 'a': 0.5, 'c': 0.125}
    first_alone = FusionSettings('interpolation', weights=(0.5, 0.5), normalize='max', depth=1)
    cut = Fusion(parts, first_alone).rank([TOPIC], None, 3)['q']
    assert dict(zip(cut.docids, cut.scores, strict=True)) == {'a': 0.5, 'b': 0.5}


def test_who_reads_the_rankings_of_parts_gets_them_deeper():
    tables = [{f'd{n}': 1 / (1 + n) for n in range(4000)} for _ in range(2)]
    parts = [ScoredRanker(str(number), table) for number, table in enumerate(tables)]
    fusion = Fusion(parts, by_max(0.5, 0.5)).with_settings(least_depth=1000)
    fusion.rank([TOPIC], None, 10)
    assert [part.depths for part in parts] == [[1000], [1000]]


@pytest.mark.parametrize('method', ['interleave', 'rrf', 'interpolation'])
def test_deeper_rankings_of_parts_change_no_answer(method):
    tables = [{f'd{n}': 1 / (1 + n) for n in range(9)}, {f'd{n}': 1 + n for n in range(9)}]
    parts = [ScoredRanker(str(number), table) for number, table in enumerate(tables)]
    fusion = Fusion(parts, FusionSettings(method, depth=2))
    expected = fusion.rank([TOPIC], None, 5)['q']
    assert sorted(expected.docids) == ['d0', 'd1', 'd7', 'd8']
    assert look_deeper(fusion, 1000).rank([TOPIC], None, 5)['q'] == expected
    assert [part.depths for part in parts] == [[2, 1000], [2, 1000]]


def test_one_at_first_and_as_deep_as_it_takes(monkeypatch):
    monkeypatch.setattr(threshold, 'first_depth', lambda k: k)
    monkeypatch.setattr(threshold, '_DEEPER', 100)
    drawn = random.Random(7)
    for _ in range(20):
        tables = [drawn_table(drawn, 60) for _ in range(2)]
        parts = [ScoredRanker(str(number), table) for number, table in enumerate(tables)]
        ranked = Fusion(parts, by_max(0.6, 0.4)).rank([TOPIC], None, 5)['q']
        assert ranked == fused_by_hand(tables, [0.6, 0.4], 5)
