"""Recall at growing depths (RepBERT Figure 1a)."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.formats.topics import Qrels
from pyserini_repbert.ranking import Run


def recall_at_depths(run: Run, qrels: Qrels, depths: Sequence[int], rel: int = 1) -> dict[int, float]:
    """Depth -> recall over all judged topics; a document of grade `rel` or higher is relevant."""
    names = {depth: f'R(rel={rel})@{depth}' for depth in depths}
    means = evaluate(run, qrels, parse_measures(names.values())).means
    return {depth: means[name] for depth, name in names.items()}
