"""The base of rerankers: candidates get new scores, and with them a new order."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.fusion.fusing import scaled
from pyserini_repbert.fusion.methods import Normalization
from pyserini_repbert.ranking import ALL, NO_HITS, Candidate, Query, Ranker, Ranking, Run
from pyserini_repbert.trace import SILENT, StageCost, Trace

Progress = Callable[[int], object]
Scores = list[NDArray[np.floating]]
"""The scores of each list of candidates."""
NO_TEXT = 'has no text: name the corpus or an index that stores its passages'


@dataclass(slots=True)
class Work:
    """What a reranker does in a call, counted as in `StageCost`."""

    inferences: int = 0
    tokens: int = 0
    candidates: int = 0
    truncated: int = 0
    stored: int = 0


@dataclass(frozen=True)
class ExplanationSettings:
    """What an explanation shows; each reranker reads what concerns it.

    Attributes
    ----------
    top : expansion terms of EPIC
    layers : of CEDR's maps, 0 for the embeddings; none: the last
    samples, seed : of duoBERT's method 'sample'
    """

    top: int = 10
    layers: Sequence[int] = ()
    samples: int = 3
    seed: int = 0


class Reranker(Ranker):
    """Gives candidates new scores.

    Subclasses implement `score_lists`; this class checks input and orders the result, by descending
    score: candidates of equal score keep their order. A reranker takes the `reads` best candidates;
    the others stay below in their order.

    Attributes
    ----------
    drop_rest : drop the candidates that it does not read
    weight : its share, 0 to 1, of a score to which the run that it reads gives the rest, both
        min-max normalised; None: its own scores
    needs_text : whether candidates without text are refused
    precision : of its model: 'float32', 'bfloat16', 'float16', 'int8'; None if it is not known
    work : where it counts what it does; None if it does not count
    compares : whether a score depends on the other candidates of its list
    """

    reads: int = ALL
    drop_rest = False
    weight: float | None = None
    needs_text = True
    precision: str | None = None
    work: Work | None = None
    compares = False

    @abstractmethod
    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress = int
    ) -> Scores:
        """Scores for the candidates of each query, float (n,) each.

        A score does not depend on the other candidates, unless the model compares them.
        `on_progress` is called with the number of inputs done since the last call: `inferences(n)`
        in all for a list of n candidates.
        """

    def prepare(self, queries: Sequence[str], lists: Sequence[Ranking]) -> None:
        """Make what `score_lists` will need for these lists, in another thread while it scores
        others.
        """

    def inferences(self, n: int) -> int:
        """How many inputs a list of `n` candidates takes; a vector from an index counts as one."""
        return n

    @property
    def label(self) -> str:
        """'NAME@K', the last part of a folder."""
        name = Path(self.name).name or type(self).__name__
        return name if self.reads == ALL else f'{name}@{self.reads}'

    def identity(self) -> Mapping[str, object]:
        """All that scores depend on. Subclasses add their settings."""
        identity: dict[str, object] = {'reranker': type(self).__name__, 'name': self.name}
        if hasattr(self, 'weights_sha256'):
            identity['weights_sha256'] = self.weights_sha256
        if self.reads != ALL:
            identity |= {'k': self.reads, 'drop_rest': self.drop_rest}
        if self.weight is not None:
            identity['weight'] = self.weight
        return identity

    def with_options(self, **options: Any) -> Self:
        """A copy with other options of a stage (`systems.registry.StageOption.parameter`).

        Raises InputError for values that do not go together.
        """
        return self.with_settings(**options)

    def remembering(self) -> Self:
        """The same reranker, with what it computed at hand for later calls, if that saves work."""
        return self

    def explain(
        self, query: str, hits: Ranking, settings: ExplanationSettings, trace: Trace = SILENT
    ) -> dict[str, Any]:
        """Why the hits get their scores, as values of JSON; by default, the scores alone.

        `hits` have passed `check`. 'system' names the form of the other values. `trace` gets the
        progress, in model inputs.
        """
        return {
            'system': 'own',
            'docids': list(hits.docids),
            'scores': self.scores_of(query, hits, trace).tolist(),
            'inferences': self.inferences(len(hits)),
        }

    def scores_of(self, query: str, hits: Ranking, trace: Trace = SILENT) -> NDArray[np.float64]:
        """The scores of hits in their order, float64 (n,)."""
        ranking = self.rank([Query('0', query)], {'0': hits}, None, trace)['0']
        score_of = dict(zip(ranking.docids, ranking.scores, strict=True))
        return np.array([score_of[docid] for docid in hits.docids], dtype=np.float64)

    def reason(self, query: str, hit: Candidate) -> str:
        """Why a hit with a text got its score, in a line; empty where there is nothing to say."""
        return f'scored {hit.score:.4f} by {type(self).__name__}'

    def planned(self, lengths: Sequence[int]) -> list[int]:
        return [self.inferences(min(n, self.reads)) for n in lengths]

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        """As of `Ranker`; inputs of similar length share a batch, whatever their topic."""
        given = {topic.qid: (run or {}).get(topic.qid, NO_HITS) for topic in topics}
        heads = [ranking[: self.reads] for ranking in given.values()]
        for topic, head in zip(topics, heads, strict=True):
            self.check(topic.text, head)
        with self.counted(heads, trace) as counting:
            scores = counting.score_lists([topic.text for topic in topics], heads, trace.advance)
        return self.reordered(given, scores)

    def reordered(self, run: Run, scores: Sequence[NDArray[np.floating]]) -> Run:
        """A run whose best candidates get these scores, above the rest."""
        reranked = {}
        for (qid, ranking), new_scores in zip(run.items(), scores, strict=True):
            head = ranking[: len(new_scores)]
            rest = NO_HITS if self.drop_rest else ranking[len(new_scores) :]
            if self.weight is not None:
                before = scaled(head.scores, Normalization.MINMAX)
                after = scaled(new_scores.tolist(), Normalization.MINMAX)
                new_scores = (1 - self.weight) * before + self.weight * after
            reranked[qid] = rescored(head, new_scores).append_below(rest)
        return reranked

    @contextmanager
    def counted(self, lists: Sequence[Sequence[Candidate]], trace: Trace) -> Iterator[Self]:
        """A copy that scores `lists` and counts the work of this call alone; `trace` then gets
        its cost.
        """
        start = time.perf_counter()
        counting = self.with_settings(work=self.work and Work())
        yield counting
        seconds = time.perf_counter() - start
        lengths = [len(candidates) for candidates in lists]
        counts: dict[str, Any] = {
            'inferences': sum(map(self.inferences, lengths)),
            'candidates': sum(lengths),
            'tokens': None,
            'truncated': None,
        }
        if counting.work is not None:
            counts |= asdict(counting.work)
        cost = StageCost(
            self.label, len(lists), seconds=seconds, precision=self.precision, **counts
        )
        trace.spent(cost)

    def check(self, query: str, ranking: Ranking) -> None:
        """Raises InputError for a candidate without text (where the model needs it), or a docid
        that comes twice.
        """
        if len(set(ranking.docids)) < len(ranking):
            twice = _first_repeated(ranking.docids)
            raise InputError(
                f"candidate '{twice}' comes twice for query {query[:40]!r}: give it once"
            )
        if self.needs_text and len(ranking) and (not ranking.texts or None in ranking.texts):
            absent = next(candidate.docid for candidate in ranking if candidate.text is None)
            raise InputError(f"candidate '{absent}' {NO_TEXT}", parameters=('corpus', 'index'))


def _first_repeated(docids: Sequence[str]) -> str:
    """The first docid that has come before."""
    seen: set[str] = set()
    for docid in docids:
        if docid in seen:
            return docid
        seen.add(docid)
    raise ValueError('no docid comes twice')


def rescored(ranking: Ranking, scores: NDArray[np.floating]) -> Ranking:
    """The candidates with these scores, (n,), in descending order; ties keep their order.

    Raises DamagedFileError, naming the candidate, for a score that is not finite.
    """
    not_finite = np.flatnonzero(~np.isfinite(scores))
    if len(not_finite):
        docid = ranking.docids[not_finite[0]]
        raise DamagedFileError(
            f"the score of candidate '{docid}' is not finite: check the checkpoint"
        )
    order = np.argsort(-scores, kind='stable')
    return ranking.select_rows(order.tolist(), scores[order].tolist())


def rounded(values: NDArray[np.floating], digits: int = 6) -> list[float]:
    """Values as JSON shows them."""
    shown: list[float] = np.round(np.asarray(values, dtype=float), digits).tolist()
    return shown
