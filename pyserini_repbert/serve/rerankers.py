"""The rerankers that clients may name; each is opened when it is first used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.errors import InputError, MismatchError, UnknownNameError
from pyserini_repbert.extension_words import missing_extension
from pyserini_repbert.names.rankers import names_class, ranker_class, system_of
from pyserini_repbert.names.rerankers import PLAIN_CROSS_ENCODER, open_reranker
from pyserini_repbert.pipeline.opening import apply_stage
from pyserini_repbert.pipeline.spec import StageSpec, options_of_clients
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank.base import Reranker
from pyserini_repbert.rerank.documents import IndexReranker, SearchedDocuments, bind_documents
from pyserini_repbert.serve.offered_rerankers import offered_rerankers
from pyserini_repbert.serve.queues import BatchedRanker, JobQueue
from pyserini_repbert.serve.settings import Limits, ServeSettings
from pyserini_repbert.systems.registry import (
    System,
    reads_index,
    recognised_system,
    rerankers,
    systems,
)
from pyserini_repbert.trace import Trace

OWN = 'own'
"""What stands for the system of a class of the operator's."""


class Rerankers:
    """The rerankers of a service, which are opened and rerank in queues.

    Parameters
    ----------
    settings : of the service
    queues : by name: 'rerank', and the names of rerankers that extensions offer

    Attributes
    ----------
    systems : name -> 'monobert', 'duobert', 'epic', 'cedr', …, or 'own' for a class of the
        operator's
    """

    def __init__(self, settings: ServeSettings, queues: Mapping[str, JobQueue]) -> None:
        self._settings = settings
        self._queues = queues
        self._offered = offered_rerankers(settings)
        self._locations = _locations_by_name(settings)
        self.systems = {name: _system_at(location) for name, location in self._locations.items()}
        for name, offered in self._offered.items():
            self.systems[name] = offered.system
        self._opened: dict[str, Reranker] = {}

    def check(self, stages: Sequence[StageSpec]) -> None:
        """Refuse stages that a client may not ask for, before anything is computed.

        Raises UnknownNameError for an unknown reranker, otherwise InputError.
        """
        limits = self._settings.limits
        inferences = 0
        for stage in stages:
            self._check_stage(stage, limits)
            inputs = self._system(stage.name).count_inputs(stage.k, dict(stage.options))
            inferences += inputs * stage.n_excerpts
        if inferences > limits.inferences:
            raise InputError(
                f'the stages take up to {inferences:,} model inputs, at most '
                f'{limits.inferences:,} are allowed here: rerank fewer candidates, or sample the '
                'pairs (NAME@K:sample=M)'
            )

    def _check_stage(self, stage: StageSpec, limits: Limits) -> None:
        if stage.name not in self.systems:
            known = ', '.join(self.systems) or 'none'
            near = catalog.did_you_mean(stage.name, self.systems)
            raise UnknownNameError(
                f"there is no reranker '{stage.name[:80]}' here{near}: there are {known}"
            )
        open_options = [option.parameter for option in options_of_clients()]
        open_options += self._system(stage.name).client_options
        for option, _ in stage.options:
            if option not in open_options:
                raise InputError(
                    f"reranker '{stage.name}': option '{option}' is not open to clients, only "
                    f'{_open_options()}'
                )
        if stage.k > limits.rerank_depth:
            raise InputError(
                f"stage '{stage.label}': at most {limits.rerank_depth} candidates are reranked here"
            )

    def _system(self, name: str) -> System:
        """The system of a reranker; for a class of the operator's, one without options."""
        return systems().get(self.systems[name], System(OWN, OWN))

    def resolve_name(self, model: str) -> str:
        """A reranker's name unchanged; for a system, the name of its first reranker."""
        if model in self.systems:
            return model
        for name, system in self.systems.items():
            if system == model:
                return name
        return model

    def queue_of(self, name: str) -> JobQueue:
        """Where a reranker works."""
        return self._queues[name if name in self._offered else 'rerank']

    def open(self, name: str) -> Reranker:
        """The reranker, opened if it is not yet. Call it in its queue only."""
        if name not in self._opened:
            if name in self._offered:
                self._opened[name] = self._offered[name].open()
            else:
                self._opened[name] = self._open(self._locations[name])
        return self._opened[name]

    def _open(self, location: str) -> Reranker:
        settings = self._settings
        opened = open_reranker(location, settings.device, precision=settings.precision)
        reranker = opened.remembering()
        if isinstance(reranker, IndexReranker):
            return reranker
        # The first call is slow.
        reranker.rerank('warm', [Candidate('0', text='up'), Candidate('1', text='now')])
        return reranker

    def relevances(self, name: str, scores: Sequence[float]) -> list[float]:
        """Scores of a reranker that has ranked, each as a number from 0 to 1."""
        reranker = self._opened[name]
        return [reranker.relevance(score) for score in scores]

    def stage(
        self, spec: StageSpec, trace: Trace, documents: SearchedDocuments | None = None
    ) -> BatchedRanker:
        """A stage that passed `check`; arguments are as in `stages`."""
        (stage,) = self.stages([spec], trace, documents)
        return stage

    def stages(
        self,
        specs: Sequence[StageSpec],
        trace: Trace,
        documents: SearchedDocuments | None = None,
    ) -> list[BatchedRanker]:
        """Stages that `check` let pass.

        Parameters
        ----------
        specs : one after the other
        trace : of the request
        documents : of the index that is searched; None: texts of a client are reranked
        """
        rerankers = bind_documents([self._open_stage(spec, trace) for spec in specs], documents)
        stages = [
            BatchedRanker(reranker, self.queue_of(spec.name), str(spec))
            for spec, reranker in zip(specs, rerankers, strict=True)
        ]
        return stages

    def _open_stage(self, spec: StageSpec, trace: Trace) -> Reranker:
        """The reranker of a stage."""
        queue = self.queue_of(spec.name)
        reranker: Reranker | None = self._opened.get(spec.name)
        if reranker is None:
            reranker = queue.call(lambda: self.open(spec.name), trace)
        return apply_stage(reranker.with_options(**spec.own_options), spec)


def _locations_by_name(settings: ServeSettings) -> dict[str, str]:
    """The rerankers of the settings, otherwise those that the package ships: a catalog name, a
    class or a checkpoint folder, by the name that clients give.
    """
    locations = settings.rerankers
    if locations is None:
        entries = catalog.entries('rerankers')
        locations = [name for name, entry in entries.items() if 'resource' in entry.values]
    by_name: dict[str, str] = {}
    for location in locations:
        is_name = catalog.find('rerankers', location) or names_class(location)
        name = location if is_name else Path(location).name
        earlier = by_name.setdefault(name, location)
        if earlier != location:
            raise InputError(
                f"rerankers {earlier} and {location} have one name, '{name}': rename a folder"
            )
    return by_name


def _system_at(location: str) -> str:
    """The system of a catalog's reranker or of a checkpoint folder; 'own' for a class."""
    entry = catalog.find('rerankers', location)
    if entry is not None:
        return str(entry.values['ranking']['system'])
    if names_class(location):
        # A wrong name fails at the start, not at the first query.
        ranker_class(location, searches=False)
        return OWN
    if not Path(location).is_dir() and not reads_index(location):
        near = catalog.did_you_mean(location, catalog.entries('rerankers'))
        raise UnknownNameError(
            f"reranker '{location}' is neither one of the catalog, nor of an extension that is "
            f'installed, nor a folder{near}{missing_extension(location)}'
        )
    recognised = recognised_system(location)
    if recognised is not None:
        return recognised.name
    system = system_of(location) or PLAIN_CROSS_ENCODER
    if system not in rerankers():
        raise MismatchError(
            f"'{location}' is for the system '{system}', a reranker was expected: "
            f'{", ".join(rerankers())}{missing_extension(system)}'
        )
    return system


def _open_options() -> str:
    """The options that clients may set, as an error shows them."""
    names = [
        f"{system.title}'s {', '.join(system.client_options)}"
        for system in systems().values()
        if system.client_options
    ]
    return '; '.join([*(option.form for option in options_of_clients()), *names])
