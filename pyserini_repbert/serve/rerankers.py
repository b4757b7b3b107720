"""The rerankers that clients may name; each is opened when it is first used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert import catalog
from pyserini_repbert.errors import InputError, MismatchError, UnknownNameError
from pyserini_repbert.names.rankers import names_class, ranker_class, system_of
from pyserini_repbert.names.rerankers import PLAIN_CROSS_ENCODER, open_reranker
from pyserini_repbert.pipeline.spec import StageSpec
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank.base import Reranker
from pyserini_repbert.serve.settings import ServeSettings
from pyserini_repbert.serve.together import Queue, Together
from pyserini_repbert.systems.registry import System, rerankers, systems
from pyserini_repbert.trace import Trace

OWN = 'own'  # what stands for the system of a class of the operator's


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
            system = systems().get(self.systems[spec.name], System(OWN, OWN))
            options = dict(spec.options)
            closed = [key for key in options if key not in system.client_options]
            if closed:
                raise InputError(
                    f"reranker '{spec.name}': option '{closed[0]}' is not open to clients, only "
                    f'{_open_options()}'
                )
            if spec.k > limits.rerank_depth:
                raise InputError(
                    f"stage '{spec.label}': at most {limits.rerank_depth} candidates are reranked "
                    f'here'
                )
            total += system.count_inputs(spec.k, options)
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
            reranker = reranker.remembering()
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
        chosen = reranker.with_options(**dict(spec.options)).with_settings(reads=spec.k)
        return Together(chosen, self.queue, str(spec))


def _system(place: str) -> str:
    entry = catalog.find('rerankers', place)
    if entry is not None:
        return str(entry.values['ranking']['system'])
    if names_class(place):
        ranker_class(
            place, searches=False
        )  # a wrong name fails at the start, not at the first query
        return OWN
    if not Path(place).is_dir():
        near = catalog.did_you_mean(place, catalog.entries('rerankers'))
        raise UnknownNameError(
            f"reranker '{place}' is neither one of the catalog nor a folder{near}"
        )
    system = system_of(place) or PLAIN_CROSS_ENCODER
    if system not in rerankers():
        raise MismatchError(
            f"'{place}' is for the system '{system}', a reranker was expected: "
            f'{", ".join(rerankers())}'
        )
    return system


def _open_options() -> str:
    """The options that clients may set, as an error shows them."""
    names = [
        f"{system.title}'s {', '.join(system.client_options)}"
        for system in systems().values()
        if system.client_options
    ]
    return '; '.join(names)
