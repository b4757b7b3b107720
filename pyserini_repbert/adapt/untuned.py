"""The searches that need no judgments: the present search, each single ranking, and untuned
fusions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyserini_repbert.adapt.adaptation import UntunedSearches, UntunedWay
from pyserini_repbert.adapt.judged_topics import DEPTH, JudgedTopics, Values
from pyserini_repbert.adapt.weights import CUT
from pyserini_repbert.evaluate.significance import paired_t_test
from pyserini_repbert.evaluate.studies.fusion import RunFusion, untuned_settings
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.ranking import Ranker, Run
from pyserini_repbert.search.dense import VectorSearcher


def search_untuned(
    dense: VectorSearcher,
    judged: JudgedTopics,
    runs: dict[str, Run],
    *,
    reranker: Ranker | None,
    now: Ranker | None,
) -> UntunedSearches:
    """The present search, each single ranking, and each fusion that needs no judgments.

    Parameters
    ----------
    dense : the dense ranking's searcher
    judged : the topics
    runs : of each ranking, by its name, the dense one first
    reranker : reranks the present search, with its score and with half of it
    now : the present search; None: the usual fusion of `runs`
    """
    ways = {str(fusion): UntunedWay(fusion) for fusion in _untuned_fusions(dense, list(runs))}
    if now is None:
        usual = _usual_fusion(dense, list(runs))
        now_name = str(usual)
        now_run = usual.fused(runs, judged.qids, DEPTH)
    else:
        now_name = now.name
        now_run = now.rank(judged.queries, None, DEPTH)

    values = {now_name: judged.values(now_run)}
    agreement = paired_t_test(values[now_name].tolist(), judged.values_by_others(now_run).tolist())
    for name, way in ways.items():
        if name not in values:
            values[name] = judged.values(way.fusion.fused(runs, judged.qids, CUT))
    if reranker is None:
        return UntunedSearches(now_name, values, ways, agreement)
    reranked_name = f'{now_name}, {reranker.label}'
    half_name = f'{reranked_name}:weight=0.5'
    reranked = _reranked_values(judged, now_run, reranker)
    values = {reranked_name: reranked.whole, **values}
    if now_name in ways:
        values[half_name] = reranked.half
        ways[half_name] = UntunedWay(ways[now_name].fusion, rerank_weight=0.5)
    return UntunedSearches(reranked_name, values, ways, agreement)


def _usual_fusion(dense: VectorSearcher, names: Sequence[str]) -> RunFusion:
    """How these rankings, the dense one first, are fused where nobody says how."""
    return RunFusion(tuple(names), dense.usual_fusion(names[1:]))


def _untuned_fusions(dense: VectorSearcher, names: Sequence[str]) -> list[RunFusion]:
    """Each single ranking, and the fusions of all that need no judgments.

    A collection's usual fusion is one of them.
    """
    alone = [RunFusion((name,), FusionSettings()) for name in names]
    if len(names) < 2:
        return alone
    fusions = untuned_settings(names)
    usual = _usual_fusion(dense, names)
    if usual not in fusions:
        fusions.append(usual)
    return alone + fusions


@dataclass(frozen=True)
class _RerankedValues:
    """Values of a run reranked: by the reranker's own scores, and with half of the score."""

    whole: Values
    half: Values


def _reranked_values(judged: JudgedTopics, run: Run, reranker: Ranker) -> _RerankedValues:
    whole = []
    half = []
    for rankings in judged.rerank(run, reranker):
        by_reranker, by_both = rankings.values([0.0, 1.0], [0.5, 0.5])
        whole.append(by_reranker)
        half.append(by_both)
    return _RerankedValues(judged.average_by_text(whole), judged.average_by_text(half))
