"""The rerankers that clients may name; each is opened when it is first used, in the rerank lane."""

from __future__ import annotations

import copy
import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert import catalog
from pyserini_repbert.errors import InputError, MismatchError, UnknownNameError
from pyserini_repbert.interop.pyserini.registration import system_of
from pyserini_repbert.pipeline.opening import SYSTEMS, open_reranker
from pyserini_repbert.pipeline.spec import StageSpec
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank.aggregation import checked_method
from pyserini_repbert.rerank.base import Progress, Reranker, Work
from pyserini_repbert.serve.settings import Limits, ServeSettings

if TYPE_CHECKING:
    from pyserini_repbert.rerank.duobert import DuoBertReranker, Matrix

_OPTIONS = {'duobert': ('method', 'samples', 'seed')}  # options that clients may set; none that names a file
_MATRICES = 64  # pair matrices kept for each duoBERT


class RememberingDuoBert(Reranker):
    """duoBERT that keeps its last pair matrices: another aggregation of the same candidates takes no inference.

    If an aggregation needs a pair that a matrix lacks, all pairs that it needs are compared anew.

    Parameters
    ----------
    matrices : the kept ones, by a digest of query and passages; shared and changed
    """

    def __init__(self, reranker: DuoBertReranker, matrices: OrderedDict[str, Matrix]) -> None:
        self.reranker, self.matrices = reranker, matrices
        self.name, self.precision = reranker.name, reranker.precision

    @property
    def work(self) -> Work:  # type: ignore[override]
        """The work of the model; pairs of a kept matrix are not counted."""
        return self.reranker.work

    def with_options(self, options: Mapping[str, Any]) -> RememberingDuoBert:
        """The same model and matrices with another aggregation; `options` as of `StageSpec`, which are not checked."""
        other = copy.copy(self.reranker)
        other.method = checked_method(options.get('method', 'sum'), options.get('samples'))
        other.samples, other.seed = options.get('samples'), options.get('seed', 0)
        return RememberingDuoBert(other, self.matrices)

    def inferences(self, n: int) -> int:
        """How many model inputs a list of `n` candidates takes that has no matrix yet."""
        return self.reranker.inferences(n)

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress | None = None
    ) -> list[NDArray[np.floating]]:
        """The aggregated scores of each query's candidates, float64 (n,) each."""
        return [
            self.reranker.aggregated(query, self.differences(query, own, on_progress))
            for query, own in zip(queries, lists, strict=True)
        ]

    def differences(self, query: str, candidates: Ranking, on_progress: Progress | None = None) -> Matrix:
        """The logit differences of at least the pairs that the method needs, float64 (n, n), NaN where not compared."""
        from pyserini_repbert.rerank.aggregation import sampled_pairs
        from pyserini_repbert.rerank.duobert import sample_seed

        duo = self.reranker
        needed = sampled_pairs(len(candidates), duo.samples, sample_seed(duo.seed, query))
        compared = '\0'.join([self.name, query, *map(str, candidates.texts)])
        key = hashlib.sha256(compared.encode('utf-8', 'replace')).hexdigest()
        if key not in self.matrices or np.isnan(self.matrices[key][needed]).any():
            (self.matrices[key],) = duo.pair_differences([query], [candidates], [needed], on_progress)
        self.matrices.move_to_end(key)
        if len(self.matrices) > _MATRICES:
            self.matrices.popitem(last=False)
        return self.matrices[key]


class Rerankers:
    """The rerankers of a service.

    Attributes
    ----------
    systems : name -> 'monobert', 'duobert', 'epic' or 'cedr'
    """

    def __init__(self, settings: ServeSettings) -> None:
        self._settings = settings
        self._places: dict[str, str] = {}
        for place in settings.rerankers:
            if self._places.setdefault(_short(place), place) != place:
                other = self._places[_short(place)]
                raise InputError(f"rerankers {other} and {place} have one name, '{_short(place)}': rename a folder")
        self.systems = {name: _system(place) for name, place in self._places.items()}
        self._opened: dict[str, Reranker] = {}
        self._maps: dict[str, Any] = {}

    def check(self, stages: Sequence[StageSpec], limits: Limits) -> None:
        """Refuse stages that a client may not ask for, before anything is computed."""
        total = 0
        for spec in stages:
            system = self.system(spec.name)
            options = dict(spec.options)
            allowed = _OPTIONS.get(system, ())
            if others := [key for key in options if key not in allowed]:
                only = f', only {", ".join(allowed)}' if allowed else ''
                raise InputError(f"reranker '{spec.name}': option '{others[0]}' is not open to clients{only}")
            if system == 'duobert':
                checked_method(options.get('method', 'sum'), options.get('samples'))
            if spec.k > limits.rerank_depth:
                raise InputError(f"stage '{spec.label}': at most {limits.rerank_depth} candidates are reranked here")
            total += inferences(system, spec.k, options)
        if total > limits.inferences:
            raise InputError(
                f'the stages take up to {total:,} model inputs, at most {limits.inferences:,} are allowed here: '
                'rerank fewer candidates, or sample the pairs (NAME@K:sample=M)'
            )

    def system(self, name: str) -> str:
        """The system of a reranker. Raises UnknownNameError for a name that the service lacks."""
        if name not in self.systems:
            known = ', '.join(self.systems) or 'none'
            near = catalog.did_you_mean(name, self.systems)
            raise UnknownNameError(f"there is no reranker '{name[:80]}' here{near}: there are {known}")
        return self.systems[name]

    def named(self, model: str) -> str:
        """The name of a reranker, given that or a system, whose first it is. Raises UnknownNameError for neither."""
        name = model
        if model not in self.systems:
            name = next((name for name, system in self.systems.items() if system == model), model)
        self.system(name)
        return name

    def opened(self, name: str) -> Reranker:
        """The reranker, opened if it is not yet. Only in the rerank lane. Raises what `open_reranker` raises."""
        self.system(name)
        if name not in self._opened:
            settings = self._settings
            made = open_reranker(self._places[name], settings.device, precision=settings.precision)
            if self.systems[name] == 'duobert':
                made = RememberingDuoBert(made, OrderedDict())  # type: ignore[arg-type]
            made.rerank('warm', [Candidate('0', text='up'), Candidate('1', text='now')])  # the first call is slow
            self._opened[name] = made
        return self._opened[name]

    def reranker(self, spec: StageSpec) -> Reranker:
        """A stage with its opened reranker. Only in the rerank lane. Raises what `opened` raises."""
        reranker = self.opened(spec.name)
        if isinstance(reranker, RememberingDuoBert):
            reranker = reranker.with_options(dict(spec.options))
        return reranker.with_settings(reads=spec.k)

    def similarity_model(self, name: str) -> Any:
        """The model for the similarity maps of a CEDR checkpoint. Only in the rerank lane.

        Raises MismatchError for a reranker of another system, UnknownNameError for a name that the service lacks.
        """
        from pyserini_repbert.explain.similarity import SimilarityModel

        if self.system(name) != 'cedr':
            raise MismatchError(
                f"reranker '{name}' is of the system '{self.systems[name]}', similarity maps are CEDR's"
            )
        if name not in self._maps:
            self._maps[name] = SimilarityModel(self._places[name], self._settings.device, self._settings.precision)
        return self._maps[name]


def inferences(system: str, n: int, options: Mapping[str, Any]) -> int:
    """The model inputs of a stage for `n` candidates: n, or for duoBERT n(n - 1), or n times the samples if fewer."""
    if system != 'duobert':
        return n
    competitors = max(n - 1, 0)
    return n * min(competitors, options.get('samples') or competitors)


def shipped() -> tuple[str, ...]:
    """The names of the catalog's rerankers that come with this package."""
    return tuple(name for name, entry in catalog.entries('rerankers').items() if 'resource' in entry.values)


def _short(name: str) -> str:
    return name if catalog.find('rerankers', name) else Path(name).name


def _system(place: str) -> str:
    entry = catalog.find('rerankers', place)
    if entry is not None:
        return str(entry.values['ranking']['system'])
    if not Path(place).is_dir():
        near = catalog.did_you_mean(place, catalog.entries('rerankers'))
        raise UnknownNameError(f"reranker '{place}' is neither one of the catalog nor a folder{near}")
    system = system_of(place) or 'monobert'
    if system not in SYSTEMS:
        raise MismatchError(f"'{place}' is for the system '{system}', a reranker was expected: {', '.join(SYSTEMS)}")
    return system
