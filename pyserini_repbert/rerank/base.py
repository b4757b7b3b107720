"""What every reranker is: it gives candidates new scores, and with them a new order.

Subclass `Reranker` to write your own reranker: implement `score_lists`, which gives the
candidates of each query a score. The base owns the rest: it checks the input, cuts each ranking to
the depth that is read, counts the cost, mixes scores with the stage before, and orders the
result. `examples/own_rankers.py` has one in a few lines.
"""

from __future__ import annotations

import math
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
from pyserini_repbert.ranking import (
    ALL,
    NO_HITS,
    Candidate,
    Excerpts,
    Query,
    Ranker,
    Ranking,
    Run,
)
from pyserini_repbert.trace import SILENT, StageCost, Trace

# Called with the number of model inputs done since the last call.
Progress = Callable[[int], object]
# The scores of each list of candidates, (n,) each.
Scores = list[NDArray[np.floating]]
# What a reranker of several passages keeps in its trace: the number of the passage that gave each
# document its score, by docid.
DECISIVE = 'decisive passages'
NO_TEXT = 'has no text: name the corpus or an index that stores its passages'


@dataclass(slots=True)
class Work:
    """What a reranker does in a call.

    Attributes
    ----------
    inferences, tokens, candidates, truncated, stored : counted as in `StageCost`
    """

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
    top : how many expansion terms of EPIC are shown
    layers : the layers of CEDR's maps, 0 for the embeddings; none: the last layer
    samples : competitors that duoBERT's method 'sample' draws for each candidate
    seed : of that sampling
    """

    top: int = 10
    layers: Sequence[int] = ()
    samples: int = 3
    seed: int = 0


class Reranker(Ranker):
    """Gives the best candidates of a run new scores, and orders them by these.

    Subclasses implement `score_lists`. This class checks the input and orders the result by
    descending score. Candidates of equal score keep their order. A reranker reads the `reads` best
    candidates; the others stay below them in their order.

    Attributes
    ----------
    drop_rest : whether the candidates that it does not read are dropped
    score_share : the share, 0 to 1, of its score in the final score. The score in the input run has
        the rest. Both are min-max normalised first. None: only its score
    needs_text : whether candidates without text are refused
    precision : of its model: 'float32', 'bfloat16', 'float16', 'int8'; None if it is not known
    work : counts its work; None if it does not count
    compares : whether a score depends on the other candidates of its list
    n_excerpts : how many passages it reads of a document that has `Candidate.excerpts`: the
        document's score is the greatest of theirs (MaxP, Dai and Callan 2019)
    """

    reads: int = ALL
    drop_rest = False
    score_share: float | None = None
    needs_text = True
    precision: str | None = None
    work: Work | None = None
    compares = False

    @abstractmethod
    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress = int
    ) -> Scores:
        """Scores for the candidates of each query.

        A score depends only on the query and the candidate, unless the reranker `compares`.

        Parameters
        ----------
        queries : their texts
        lists : the candidates of each query, checked by `check`
        on_progress : called with the number of model inputs done since the last call: in all,
            `inferences(n)` for a list of n candidates

        Returns an array for each list, float (n,), in the order of its candidates.
        """

    @property
    def reads_scores(self) -> bool:
        return self.score_share is not None

    def relevance(self, score: float) -> float:
        """A score as a number from 0 to 1, in the same order; by default its sigmoid.

        It is for programs that expect such a number, and is not a calibrated probability.
        """
        # The exponent is never above 0.
        power = math.exp(-abs(score))
        return 1 / (1 + power) if score >= 0 else power / (1 + power)

    def prepare(self, queries: Sequence[str], lists: Sequence[Ranking]) -> None:
        """Make what `score_lists` will need for these lists.

        It runs in another thread, while this one scores other lists. By default it does nothing.
        """

    def inferences(self, n: int) -> int:
        """How many model inputs a list of `n` candidates takes.

        A vector from an index also counts.
        """
        return n

    @property
    def label(self) -> str:
        """'NAME@K', or 'NAME' if it reads all candidates; of a checkpoint folder, its last part."""
        name = Path(self.name).name or self.recorded_as
        if self.reads == ALL:
            return name
        return f'{name}@{self.reads}'

    def identity(self) -> Mapping[str, object]:
        """All that decides its scores. Subclasses add their settings."""
        identity: dict[str, object] = {'reranker': self.recorded_as, 'name': self.name}
        if hasattr(self, 'weights_sha256'):
            identity['weights_sha256'] = self.weights_sha256
        if self.reads != ALL:
            identity |= {'k': self.reads, 'drop_rest': self.drop_rest}
        if self.score_share is not None:
            identity['weight'] = self.score_share
        if self.n_excerpts > 1:
            identity['passages'] = self.n_excerpts
        return identity

    def with_options(self, **options: Any) -> Self:
        """A copy with other options of a stage (`systems.registry.StageOption.parameter`).

        Raises InputError for values that do not go together.
        """
        return self.with_settings(**options)

    def remembering(self) -> Self:
        """The same reranker, which keeps its results for later calls if that saves work."""
        return self

    def explain(
        self, query: str, hits: Ranking, settings: ExplanationSettings, trace: Trace = SILENT
    ) -> dict[str, Any]:
        """Why the hits get their scores, as values of JSON; by default, only the scores.

        Parameters
        ----------
        query : its text
        hits : checked by `check`
        settings : what to show
        trace : gets the progress, in model inputs

        Returns a dictionary whose 'system' names the form of the other values. In the form 'own',
        these are 'docids', 'scores' and 'inferences', and optionally 'tables', which commands and
        the page show unchanged: each {'docid', 'title', 'rows'}. A row is an object; its keys, the
        same in each, name the columns. The first column names the row, the second is a number,
        which pictures show.
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
        scores_by_docid = dict(zip(ranking.docids, ranking.scores, strict=True))
        return np.array([scores_by_docid[docid] for docid in hits.docids], dtype=np.float64)

    def reason(self, query: str, hit: Candidate) -> str:
        """Why a hit with a text got its score, in a line; empty if there is nothing to say."""
        scored = f'scored {hit.score:.4f} by {self.recorded_as}'
        if self.score_share is None:
            return scored
        return f'{scored} ({self.score_share:g}) and the stage before ({1 - self.score_share:g})'

    def rerank(
        self, query: str, candidates: Sequence[Candidate], k: int | None = None
    ) -> list[Candidate]:
        """All candidates in a new order, best first, or the k best.

        The arguments are not changed.
        """
        whole = self.with_settings(reads=ALL)
        run = whole.rank([Query('0', query)], {'0': Ranking.of(candidates)}, k)
        return list(run['0'])

    def planned(self, lengths: Sequence[int]) -> list[int]:
        return [self.inferences(min(n, self.reads) * self.n_excerpts) for n in lengths]

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        """As in `Ranker`. All topics are scored in one call: their inputs may share batches."""
        run_of_topics: Run = {topic.qid: (run or {}).get(topic.qid, NO_HITS) for topic in topics}
        heads = [ranking[: self.reads] for ranking in run_of_topics.values()]
        for topic, head in zip(topics, heads, strict=True):
            self.check(topic.text, head)
        queries = [topic.text for topic in topics]
        if self.n_excerpts > 1:
            return self._rank_by_excerpts(run_of_topics, queries, heads, trace)
        with self.counted(heads, trace) as counting:
            scores = counting.score_lists(queries, heads, trace.advance)
        return self.reordered(run_of_topics, scores)

    def _rank_by_excerpts(
        self, run: Run, queries: Sequence[str], heads: Sequence[Ranking], trace: Trace
    ) -> Run:
        """The run after reranking documents by their best passages.

        Parameters
        ----------
        run : of these topics
        queries, heads : the text of each topic, and the documents that are read
        trace : gets progress and cost
        """
        passages = [_Passages.of(head, self.n_excerpts) for head in heads]
        lists = [of_topic.ranking for of_topic in passages]
        with self.counted(lists, trace) as counting:
            scores = counting.score_lists(queries, lists, trace.advance)
        best_first: Run = {}
        totals: Scores = []
        for (qid, ranking), of_topic, values in zip(run.items(), passages, scores, strict=True):
            best = of_topic.best(values)
            hits = of_topic.put_first(ranking, best)
            best_first[qid] = hits
            totals.append(values[best])
            decisive = {hit.docid: hit.excerpts[0].number for hit in hits if hit.excerpts}
            trace.keep(DECISIVE, qid, decisive)
        return self.reordered(best_first, totals)

    def reordered(self, run: Run, scores: Sequence[NDArray[np.floating]]) -> Run:
        """The run after reranking: its best candidates by their new scores, above the rest.

        `scores` are the scores of the best candidates of each ranking, in its order: (n,) each.
        """
        reranked = {}
        for (qid, ranking), new_scores in zip(run.items(), scores, strict=True):
            depth = len(new_scores)
            head = ranking[:depth]
            if self.score_share is not None:
                before = scaled(head.scores, Normalization.MINMAX)
                after = scaled(new_scores.tolist(), Normalization.MINMAX)
                new_scores = (1 - self.score_share) * before + self.score_share * after
            reranked[qid] = rescored(head, new_scores)
            if not self.drop_rest:
                reranked[qid] = reranked[qid].append_below(ranking[depth:])
        return reranked

    @contextmanager
    def counted(self, lists: Sequence[Sequence[Candidate]], trace: Trace) -> Iterator[Self]:
        """A copy that counts only the work of this call, for scoring `lists` in the context.

        At the end of the context, `trace` gets the cost.
        """
        start = time.perf_counter()
        counting = self.with_settings(work=self.work and type(self.work)())
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
            stage=self.label,
            queries=len(lists),
            seconds=seconds,
            precision=self.precision,
            **counts,
        )
        trace.spent(cost)

    def check(self, query: str, ranking: Ranking) -> None:
        """Raises InputError for candidates that cannot be scored.

        These are a docid that comes twice and, where the model needs it, a candidate without text.
        """
        if len(set(ranking.docids)) < len(ranking):
            twice = _first_repeated(ranking.docids)
            raise InputError(
                f"candidate '{twice}' comes twice for query {query[:40]!r}: give it once"
            )
        if self.needs_text and len(ranking) and (not ranking.texts or None in ranking.texts):
            absent = next(candidate.docid for candidate in ranking if candidate.text is None)
            raise InputError(f"candidate '{absent}' {NO_TEXT}", parameters=('corpus', 'index'))


@dataclass(frozen=True)
class _Passages:
    """The passages of a ranking's first documents, as separate candidates.

    Attributes
    ----------
    ranking : the passages, a document's passages together
    starts : where each document begins, int64 (documents,)
    """

    ranking: Ranking
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, documents: Ranking, n: int) -> _Passages:
        """The n best passages of each document; only its text, if it has none."""
        passages: list[Candidate] = []
        starts = []
        for document in documents:
            starts.append(len(passages))
            texts = [excerpt.model_input for excerpt in document.excerpts[:n]]
            for number, text in enumerate(texts or [document.text]):
                name = f'{document.docid}#{number}'
                passages.append(Candidate(name, document.score, text))
        return cls(Ranking.of(passages), np.array(starts, np.int64))

    def best(self, scores: NDArray[np.floating]) -> NDArray[np.int64]:
        """The row of each document's best passage, int64 (documents,)."""
        ends = [*self.starts[1:].tolist(), len(scores)]
        rows = [
            start + int(np.argmax(scores[start:end]))
            for start, end in zip(self.starts.tolist(), ends, strict=True)
        ]
        return np.array(rows, np.int64)

    def put_first(self, ranking: Ranking, best: NDArray[np.int64]) -> Ranking:
        """The ranking, in which each document's best passage is its text and its first excerpt.

        `best` has the rows of the best passages.
        """
        excerpts: dict[str, Excerpts] = {}
        for document, start, row in zip(ranking, self.starts.tolist(), best.tolist(), strict=False):
            number = row - start
            others = document.excerpts[:number] + document.excerpts[number + 1 :]
            excerpts[document.docid] = document.excerpts[number : number + 1] + others
        return ranking.with_excerpts(excerpts)


def _first_repeated(docids: Sequence[str]) -> str:
    """The first docid that has come before."""
    seen: set[str] = set()
    for docid in docids:
        if docid in seen:
            return docid
        seen.add(docid)
    raise ValueError('no docid comes twice')


def rescored(ranking: Ranking, scores: NDArray[np.floating]) -> Ranking:
    """The candidates by their new scores, (n,), descending; ties keep their order.

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


def rounded(values: NDArray[np.floating]) -> list[float]:
    """Values as JSON shows them, to six digits after the point."""
    shown: list[float] = np.round(np.asarray(values, dtype=float), 6).tolist()
    return shown
