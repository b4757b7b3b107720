"""The costs of a pipeline's stages: model inputs, tokens, seconds, and truncated candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class StageCost:
    """The cost of one stage over some queries.

    Attributes
    ----------
    stage : its name, as in 'monobert@1000'
    queries : how many it reranked
    inferences : model inputs; a query takes k0 of monoBERT, k1(k1 - 1) of duoBERT (Multi-Stage section 5.3, figure 4)
    seconds : wall-clock time spent in it, summed over devices
    tokens : in all inputs, without padding; None where the reranker does not count them
    candidates : how many it scored
    truncated : candidates whose text was cut; None where the reranker does not count them
    stored : candidates scored by stored vectors, without reading their text: not part of `tokens` and `truncated`
    precision : of the model: 'float32', 'bfloat16', 'float16', 'int8'; None where the reranker does not say
    """

    stage: str
    queries: int
    inferences: int
    seconds: float
    tokens: int | None
    candidates: int
    truncated: int | None
    stored: int = 0
    precision: str | None = None

    def __add__(self, other: StageCost) -> StageCost:
        """The same stage over more queries."""
        return StageCost(
            self.stage,
            self.queries + other.queries,
            self.inferences + other.inferences,
            self.seconds + other.seconds,
            None if self.tokens is None or other.tokens is None else self.tokens + other.tokens,
            self.candidates + other.candidates,
            None if self.truncated is None or other.truncated is None else self.truncated + other.truncated,
            self.stored + other.stored,
            self.precision,
        )

    @property
    def inferences_per_query(self) -> float:
        """Mean number of model inputs of a query."""
        return self.inferences / self.queries if self.queries else 0.0

    @property
    def truncated_share(self) -> float | None:
        """Truncated candidates as a share of those whose text was read; None where none was read or none counted."""
        read = self.candidates - self.stored
        return None if self.truncated is None or not read else self.truncated / read

    def as_json(self) -> dict[str, object]:
        """All values, with inferences and seconds per query."""
        seconds = self.seconds / self.queries if self.queries else 0.0
        return asdict(self) | {'inferences_per_query': self.inferences_per_query, 'seconds_per_query': seconds}


def shown(costs: Sequence[StageCost]) -> str:
    """The costs as lines of text, one a stage, with a line of sums where there are several stages."""
    lines = []
    for cost in costs:
        n = cost.queries or 1
        parts = [f'{cost.inferences_per_query:.1f} inferences', f'{cost.seconds / n:.3f} s']
        if cost.tokens is not None:
            parts.insert(1, f'{cost.tokens / n:.0f} tokens')
        notes = [] if cost.precision is None else [cost.precision]
        if cost.stored:
            notes.append(f'{100 * cost.stored / cost.candidates:.1f}% of candidates by stored vectors')
        if cost.truncated_share is not None:
            among = ' of the others' if cost.stored else ' of candidates'
            notes.append(f'{100 * cost.truncated_share:.1f}%{among} truncated')
        lines.append('; '.join([f'{cost.stage}: {", ".join(parts)} a query over {cost.queries} queries', *notes]))
    if len(costs) > 1:
        inferences = sum(cost.inferences_per_query for cost in costs)
        seconds = sum(cost.seconds / (cost.queries or 1) for cost in costs)
        lines.append(f'all stages: {inferences:.1f} inferences, {seconds:.3f} s a query')
    return '\n'.join(lines)
