"""`Pipeline`: a first stage followed by rerankers, for use from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyserini_repbert.data.passages import PassageTexts
from pyserini_repbert.errors import InputError
from pyserini_repbert.pipeline.costs import StageCost
from pyserini_repbert.pipeline.reranking import Settings, run_stages
from pyserini_repbert.pipeline.stages import Stage, check_depths
from pyserini_repbert.ranking import NO_HITS, Candidate, Query, Ranking, Run
from pyserini_repbert.rerank.base import Progress, Reranker
from pyserini_repbert.search.hybrid import Searcher, run_of
from pyserini_repbert.search.query_vectors import check_qids


class Pipeline:
    """H0 … HN of Multi-Stage section 3: each stage reranks the best candidates of the one before.

    Parameters
    ----------
    first_stage : a searcher (RepBertSearcher, HybridSearcher, one of Pyserini's or ours on Lucene), or a run (from a
        run file, a fusion or a searcher's `batch_search`): {qid: Ranking or candidates}
    stages : (reranker, k) or Stage; k must not grow from stage to stage
    texts : gives passage text by docid; not needed where no reranker reads text
    hits : depth of the first stage's search; default: as many as the first reranker takes
    drop_rest : drop the candidates that a stage did not rerank, instead of leaving them below in their order

    Attributes
    ----------
    costs : the costs of the last call, one for each stage

    Raises
    ------
    InputError
        for no stages, or one that takes more candidates than the one before it
    """

    def __init__(
        self,
        first_stage: Searcher | Mapping[str, Sequence[Candidate]],
        stages: Sequence[Stage | tuple[Reranker, int]],
        texts: PassageTexts | None = None,
        hits: int | None = None,
        drop_rest: bool = False,
    ) -> None:
        self.stages = [stage if isinstance(stage, Stage) else Stage(*stage) for stage in stages]
        check_depths([stage.name for stage in self.stages], [stage.k for stage in self.stages])
        self.first_stage, self.texts = first_stage, texts
        self.hits = hits or self.stages[0].k
        self.settings = Settings(drop_rest=drop_rest)
        self.costs: list[StageCost] = []

    def search(self, query: str, k: int | None = None) -> list[Candidate]:
        """The ranking of one query, best first, at most `k` candidates. Raises InputError where H0 is a run."""
        if isinstance(self.first_stage, Mapping):
            raise InputError('the first stage is a run, which knows qids only: use batch_search')
        return self.batch_search([query], ['0'], k)['0']

    def batch_search(
        self,
        queries: Sequence[str],
        qids: Sequence[str],
        k: int | None = None,
        threads: int = 1,
        on_progress: Progress | None = None,
    ) -> dict[str, list[Candidate]]:
        """Hits by qid, best first, at most `k`; empty for a query for which the first stage finds nothing.

        Raises
        ------
        InputError
            for a candidate whose text cannot be found, a negative k, a qid that comes twice, or not as many qids as
            queries
        """
        check_qids(queries, qids)
        topics = [Query(qid, query) for qid, query in zip(qids, queries, strict=True)]
        return {qid: list(ranking) for qid, ranking in self.rankings(topics, k, threads, on_progress).items()}

    def rankings(
        self, topics: Sequence[Query], k: int | None = None, threads: int = 1, on_progress: Progress | None = None
    ) -> Run:
        """The result of `batch_search` as a run, in the order of the topics."""
        if k is not None and k < 0:
            raise InputError(f'k={k} was asked for, expected 0 or more')
        run = self._first(topics, threads)
        self.costs = [StageCost(stage.name, len(topics), 0, 0.0, None, 0, None) for stage in self.stages]
        if any(run.values()):
            done = run_stages(
                topics, run, self.stages, self.texts, self.settings, on_total=lambda _: on_progress or _ignore
            )
            run |= done.run
            self.costs = [replace(cost, queries=len(topics)) for cost in done.costs]
        return {qid: ranking[:k] for qid, ranking in run.items()}

    def _first(self, topics: Sequence[Query], threads: int) -> Run:
        if isinstance(self.first_stage, Mapping):
            return {query.qid: Ranking.of(self.first_stage.get(query.qid, NO_HITS)) for query in topics}
        texts, qids = [query.text for query in topics], [query.qid for query in topics]
        return run_of(self.first_stage, texts, qids, self.hits, threads)


def _ignore(n: int) -> None:
    """The progress callback where none is given."""
