"""What `adapt` offers, as the folder stores it and as a person reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.adapt.adaptation import Adaptation, Estimate
from pyserini_repbert.evaluate.studies.fusion import RunFusion
from pyserini_repbert.fusion.fused import Fusion
from pyserini_repbert.fusion.methods import FusionMethod
from pyserini_repbert.indexes.kind import USUAL_RANKING, Index
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.ranking import Ranker

# The name of the present search, if a collection uses what it learned.
LEARNED_BEFORE = 'what is learned and used already'


@dataclass(frozen=True)
class OfferedSearch:
    """The search that is stored.

    Attributes
    ----------
    query_map : float32 (d, d); None if queries are searched as they are encoded
    rankings : positions of the rankings that are searched, in the order of fusion; dense is 0
    rerank_weight : the reranker's share of the score; None: nothing is reranked
    fusion : attributes of `search.adapted_folder.AdaptedSearch` that say how they are fused
    """

    query_map: NDArray[np.float32] | None
    rankings: tuple[int, ...]
    rerank_weight: float | None
    fusion: dict[str, Any] = field(default_factory=dict)


def offered_search(adaptation: Adaptation, names: Sequence[str]) -> OfferedSearch:
    """What is stored of an adaptation; `names` are of the rankings, the dense one first."""
    if adaptation.offered == adaptation.learned:
        return OfferedSearch(
            query_map=adaptation.query_map,
            rankings=tuple(range(len(names))),
            rerank_weight=adaptation.rerank_weight,
            fusion={'weights': adaptation.weights},
        )
    way = adaptation.untuned.ways[adaptation.offered]
    return OfferedSearch(
        query_map=None,
        rankings=tuple(names.index(name) for name in way.fusion.order),
        rerank_weight=way.rerank_weight,
        fusion=_fusion_values(way.fusion),
    )


def _fusion_values(fusion: RunFusion) -> dict[str, Any]:
    """The attributes of `AdaptedSearch` by which runs are fused so."""
    n_rankings = len(fusion.order)
    settings = fusion.settings
    if n_rankings == 1:
        return {'weights': (1.0,)}
    if settings.method is FusionMethod.INTERPOLATION:
        return {'weights': settings.weights_for(n_rankings), 'normalize': str(settings.normalize)}
    values: dict[str, Any] = {'method': str(settings.method), 'weights': ()}
    if settings.method is FusionMethod.RRF:
        values['rrf_k'] = settings.rrf_k
    return values


def collection_rankings(offered: OfferedSearch, names: Sequence[str]) -> tuple[str, ...]:
    """The names of a collection's rankings that are searched; none if all are, dense first."""
    if offered.rankings == tuple(range(len(names))):
        return ()
    # The dense ranking is called after its encoder.
    known = [USUAL_RANKING, *names[1:]]
    return tuple(known[position] for position in offered.rankings)


def learned_parts(first: Ranker) -> list[Ranker]:
    """The rankings that are learned from, the dense one first.

    A part that only scores the hits of others again, as token vectors do, is left out.
    """
    if not first.parts:
        return [first]
    parts = []
    for part in first.parts:
        parts += learned_parts(part)
    return parts


def search_as_now(index: Index | None, first: Ranker, machine: Machine) -> Ranker:
    """The present search, named by how it fuses: `first`, or what was learned and is used.

    Parameters
    ----------
    index : the index, if only it is searched; None: what `first` is
    first : the first stage, without what was learned
    machine : where it runs
    """
    learned = None if index is None else index.learned()
    if index is not None and learned is not None:
        ranker = index.as_learned(learned, machine)
        if ranker is not None:
            return ranker.with_settings(name=LEARNED_BEFORE)
    if isinstance(first, Fusion):
        names = tuple(part.name for part in first.parts)
        return first.with_settings(name=str(RunFusion(names, first.settings)))
    return first


def report_of(adaptation: Adaptation, estimate: Estimate) -> dict[str, Any]:
    """The gain, overall and for each question, as values of JSON."""
    means = {
        name: round(float(values.mean()), 6)
        for name, values in (adaptation.untuned.values | adaptation.steps).items()
    }
    questions = [
        {'question': text, 'before': round(float(old), 6), 'after': round(float(new), 6)}
        for text, old, new in zip(
            adaptation.texts, adaptation.before, adaptation.after, strict=True
        )
    ]
    return {
        'gain': estimate.gain,
        'standard_error': estimate.standard_error,
        'low': estimate.low,
        'high': estimate.high,
        'p': estimate.p,
        'is_convincing': estimate.is_convincing,
        'is_worth_using': estimate.is_worth_using,
        'baseline': estimate.now,
        'winner': estimate.winner,
        'topics': estimate.topics,
        'means': means,
        'questions': questions,
        'sentence': _sentence(adaptation, estimate),
    }


def gain_text(gain: float, low: float, high: float) -> str:
    """A gain in nDCG@10 and its interval."""
    return f'{gain:+.3f} nDCG@10 (95% interval {low:+.3f} to {high:+.3f})'


def _sentence(adaptation: Adaptation, estimate: Estimate) -> str:
    """What an estimate says, in words for somebody who has never seen one."""
    offered = f"'{estimate.offered}', which learned nothing,"
    if estimate.offered == adaptation.learned:
        offered = 'what was learned'
    measured = (
        f'nDCG@10 on held-out questions is {estimate.after:.3f}, and {estimate.before:.3f} with '
        f'the present search ({estimate.now}): '
        f'{gain_text(estimate.gain, estimate.low, estimate.high)}.'
    )
    if estimate.is_convincing:
        return f'It helps: {offered} is better than the present search. {measured}'
    if estimate.is_worth_using:
        return (
            f'It probably helps: {offered} is better than the present search with a '
            f'probability of {estimate.probability:.2f}. {measured}'
        )
    without_gain = f'With {offered.removesuffix(",")}, {measured}'
    if estimate.keeps_now:
        return f'The present search is the best. {without_gain}'
    return f'No gain is more than noise. {without_gain}'
