"""The rerankers that clients may name; each is opened when it is first used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pyserini_repbert import catalog
from pyserini_repbert.errors import InputError, MismatchError, UnknownNameError
from pyserini_repbert.names.rankers import names_class, ranker_class, system_of
from pyserini_repbert.pipeline.opening import SYSTEMS, open_reranker
from pyserini_repbert.pipeline.spec import StageSpec
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank.aggregation import checked_method, sampled_pairs
from pyserini_repbert.rerank.base import Progress, Reranker
from pyserini_repbert.rerank.duobert import DuoBertReranker, Matrix, Wanted, sample_seed
from pyserini_repbert.serve.settings import ServeSettings
from pyserini_repbert.serve.together import Queue, Together
from pyserini_repbert.trace import Trace

_DUO_OPTIONS = ('method', 'samples', 'seed')  # that clients may set; none that names a file
_MATRICES = 64  # pair matrices kept for each duoBERT


class RememberingDuoBert(DuoBertReranker):
    """An opened duoBERT with its last pair matrices: another aggregation of the same candidates
    takes no inference.

    If an aggregation needs a pair that a matrix lacks, all its pairs are compared anew. Copies
    share the matrices.
    """

    def __init__(self, reranker: DuoBertReranker) -> None:
        vars(self).update(vars(reranker))
        self.matrices: dict[tuple[str, tuple[str | None, ...]], Matrix] = {}  # by query and texts

    def pair_differences(
        self,
        queries: Sequence[str],
        lists: Sequence[Ranking],
        wanted: Sequence[Wanted] | None = None,
        on_progress: Progress = int,
    ) -> list[Matrix]:
        """The logit differences of at least the wanted pairs, float64 (n, n) a query, NaN where
        not compared.
        """
        matrices = []
        for number, (query, candidates) in enumerate(zip(queries, lists, strict=True)):
            pairs = sampled_pairs(len(candidates), self.samples, sample_seed(self.seed, query))
            pairs = wanted[number] if wanted else pairs
            matrix = self.matrices.pop((query, candidates.texts), None)
            if matrix is None or np.isnan(matrix[pairs]).any():
                (matrix,) = super().pair_differences([query], [candidates], [pairs], on_progress)
            self.matrices[query, candidates.texts] = matrix
            if len(self.matrices) > _MATRICES:
                del self.matrices[next(iter(self.matrices))]
            matrices.append(matrix)
        return matrices


class Rerankers:
    """The rerankers of a service, which are opened and rerank in a queue.

    `systems`: name -> 'monobert', 'duobert', 'epic', 'cedr', or 'own' for a class of the
    operator's.
    """

    def __init__(self, settings: ServeSettings, queue: Queue) -> None:
        self._settings = settings
        self.queue = queue
        self._places: dict[str, str] = {}
        shipped = [
            name
            for name, entry in catalog.entries('rerankers').items()
            if 'resource' in entry.values
        ]
        for place in shipped if settings.rerankers is None else settings.rerankers:
            name = (
                place
                if catalog.find('rerankers', place) or names_class(place)
                else Path(place).name
            )
            if self._places.setdefault(name, place) != place:
                raise InputError(
                    f"rerankers {self._places[name]} and {place} have one name, '{name}': rename "
                    f'a folder'
                )
        self.systems = {name: _system(place) for name, place in self._places.items()}
        self._opened: dict[str, Any] = {}

    def check(self, stages: Sequence[StageSpec]) -> None:
        """Refuse stages that a client may not ask for, before anything is computed."""
        limits = self._settings.limits
        total = 0
        for spec in stages:
            if spec.name not in self.systems:
                known = ', '.join(self.systems) or 'none'
                near = catalog.did_you_mean(spec.name, self.systems)
                raise UnknownNameError(
                    f"there is no reranker '{spec.name[:80]}' here{near}: there are {known}"
                )
            is_duo = self.systems[spec.name] == 'duobert'
            options = dict(spec.options)
            if others := [key for key in options if not (is_duo and key in _DUO_OPTIONS)]:
                only = f"only duoBERT's {', '.join(_DUO_OPTIONS)}"
                raise InputError(
                    f"reranker '{spec.name}': option '{others[0]}' is not open to clients, {only}"
                )
            if spec.k > limits.rerank_depth:
                raise InputError(
                    f"stage '{spec.label}': at most {limits.rerank_depth} candidates are reranked "
                    f'here'
                )
            competitors = min(spec.k - 1, options.get('samples') or spec.k) if is_duo else 1
            total += spec.k * competitors
        if total > limits.inferences:
            raise InputError(
                f'the stages take up to {total:,} model inputs, at most {limits.inferences:,} are '
                f'allowed here: '
                'rerank fewer candidates, or sample the pairs (NAME@K:sample=M)'
            )

    def opened(self, name: str) -> Any:
        """The reranker, opened if it is not yet. Only in the queue."""
        if name not in self._opened:
            settings = self._settings
            reranker: Reranker = open_reranker(
                self._places[name], settings.device, precision=settings.precision
            )
            if isinstance(reranker, DuoBertReranker):
                reranker = RememberingDuoBert(reranker)
            reranker.rerank(
                'warm', [Candidate('0', text='up'), Candidate('1', text='now')]
            )  # the first call is slow
            self._opened[name] = reranker
        return self._opened[name]

    def stage(self, spec: StageSpec, trace: Trace) -> Together:
        """A stage that `check` let pass."""
        reranker = self._opened.get(spec.name) or self.queue.call(
            lambda: self.opened(spec.name), trace
        )
        changes = dict(spec.options)
        if isinstance(reranker, DuoBertReranker):
            changes['method'] = checked_method(changes.get('method', 'sum'), changes.get('samples'))
        return Together(reranker.with_settings(reads=spec.k, **changes), self.queue, str(spec))


def _system(place: str) -> str:
    entry = catalog.find('rerankers', place)
    if entry is not None:
        return str(entry.values['ranking']['system'])
    if names_class(place):
        ranker_class(
            place, searches=False
        )  # a wrong name fails at the start, not at the first query
        return 'own'
    if not Path(place).is_dir():
        near = catalog.did_you_mean(place, catalog.entries('rerankers'))
        raise UnknownNameError(
            f"reranker '{place}' is neither one of the catalog nor a folder{near}"
        )
    system = system_of(place) or 'monobert'
    if system not in SYSTEMS:
        raise MismatchError(
            f"'{place}' is for the system '{system}', a reranker was expected: {', '.join(SYSTEMS)}"
        )
    return system
