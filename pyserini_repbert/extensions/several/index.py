"""`SeveralIndexes`: several collections as one index."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from pyserini_repbert.collection.filter_texts import SearchedBeside, named_fields
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.data.word_forms import unite
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.several.names import index_names, prefix_of, split_location
from pyserini_repbert.extensions.several.searching import MergedRanking, SeveralSearcher
from pyserini_repbert.extensions.several.store import SeveralStores
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.indexes.generations import Generations
from pyserini_repbert.indexes.kind import Index, IndexKind, SearchOptions, kind_of
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.indexes.offered import OfferedRankings
from pyserini_repbert.names.building import OnBuild, build_silently
from pyserini_repbert.record import Input
from pyserini_repbert.search.adapted_folder import read_adapted

logger = logging.getLogger(__name__)


class SeveralIndexes(Index):
    """Several collections, each searched by its own encoder, as one index.

    What single collections learned or were set to rerank with is not used; their k1 and b are. A
    collection that is set, for example, to be searched only by words has no other ranking here.

    Parameters
    ----------
    kind, location, options, before : as in `IndexKind.open`

    Attributes
    ----------
    parts : the collections by the names of their folders
    """

    def __init__(
        self,
        kind: IndexKind,
        location: str,
        options: SearchOptions,
        before: SeveralIndexes | None = None,
    ) -> None:
        super().__init__(kind, location, options)
        locations = split_location(location)
        of_parts = replace(options, filter=None, uses_learned=False, uses_settings=True)
        self.parts: dict[str, Any] = {}
        try:
            for name, part in zip(index_names(locations), locations, strict=True):
                earlier = None if before is None else before.parts[name]
                self.parts[name] = kind_of(part).open(part, of_parts, earlier)
            self._share_encoders()
            self._rankings = self._common_rankings()
            self._beside = self._beside_each()
            if options.filter is not None:
                self.parts = self._filtered(DocumentFilter(options.filter))
                self._say_unknown_fields(options.filter)
        except BaseException:
            self.close()
            raise

    def _share_encoders(self) -> None:
        """Let collections of the same models search with the encoders of the first of them."""
        indexes = list(self.parts.values())
        for number, index in enumerate(indexes):
            for earlier in reversed(indexes[:number]):
                index.share_encoders(earlier)

    def _common_rankings(self) -> tuple[str, ...]:
        """The searched rankings: the first collection's, if all other collections have them.

        Raises InputError if there are none.
        """
        first, *others = self.parts.values()
        common = []
        for name in first.rankings:
            if all(name in other.offered.names for other in others):
                common.append(name)
        if not common:
            raise InputError(
                f"the collections of '{self.location}' have no ranking in common: search each "
                'alone',
                parameters=('index', 'rankings'),
            )
        return tuple(common)

    def _beside_each(self) -> dict[str, SearchedBeside]:
        """What a filter of each collection knows: the fields of all."""
        types: set[tuple[str, str]] = set()
        for part in self.parts.values():
            for field, kinds in part.generation.field_types.items():
                types.update((field, kind) for kind in kinds)
        return {name: SearchedBeside(prefix_of(name), frozenset(types)) for name in self.parts}

    def _filtered(self, wanted: DocumentFilter) -> dict[str, Any]:
        """The collections within a filter."""
        return {
            name: part.within(replace(wanted, beside=self._beside[name]))
            for name, part in self.parts.items()
        }

    def _say_unknown_fields(self, text: str) -> None:
        """Log which collections lack a field that a filter names."""
        for field in sorted(named_fields(text)):
            lacking = [
                name
                for name, part in self.parts.items()
                if unite(field) not in part.generation.field_types
            ]
            if lacking:
                logger.warning("no document of %s has a field '%s'", ' and '.join(lacking), field)

    @property
    def rankings(self) -> tuple[str, ...]:
        return self._rankings

    @property
    def fusion(self) -> FusionSettings:
        return self.fusion_of(self._rankings) or FusionSettings()

    def fusion_of(self, rankings: Sequence[str]) -> FusionSettings | None:
        first = next(iter(self.parts.values()))
        fusion: FusionSettings | None = first.fusion_of(rankings)
        return fusion

    @property
    def offered(self) -> OfferedRankings:
        """The rankings that all have; none takes a document, or knows how likely hits are."""
        first, *others = [part.offered for part in self.parts.values()]
        shared = set(first.names).intersection(*(other.names for other in others))
        scanned = {name: ranking for name, ranking in first.scanned.items() if name in shared}
        is_usual = all(other.usual == first.usual for other in others)
        return OfferedRankings(
            tuple(name for name in first.names if name in shared),
            of_vectors=first.of_vectors & shared,
            of_models=first.of_models & shared,
            with_feedback=first.with_feedback & shared,
            scanned=scanned,
            usual=first.usual if is_usual else '',
            fused=tuple(name for name in first.fused if name in shared),
        )

    @property
    def searches_words(self) -> bool:
        return any(part.searches_words for part in self.parts.values())

    def searcher(
        self,
        machine: Machine,
        fusion: FusionSettings | None = None,
        on_build: OnBuild = build_silently,
    ) -> SeveralSearcher:
        rankings = [self.ranking(name, machine) for name in self._rankings]
        searchers = {name: part.searcher(machine) for name, part in self.parts.items()}
        return SeveralSearcher(rankings, searchers, fusion or self.fusion)

    def ranking(self, name: str, machine: Machine) -> MergedRanking:
        rankers = {}
        sizes = {}
        searched = [part for part in self.parts.values() if searches(part, name)]
        for index_name, part in self.parts.items():
            if searched and part not in searched:
                continue
            rankers[index_name] = part.ranking(name, machine)
            sizes[index_name] = part.n_passages(machine)
        return MergedRanking(name, rankers, sizes, self._beside, self._has_one_model(name))

    def _has_one_model(self, name: str) -> bool:
        """Whether the scores of a ranking are of one model in all collections, or of words."""
        models = []
        for part in self.parts.values():
            settings = part.generation.settings
            of_ranking: Any = None
            if name in part.offered.of_vectors:
                of_ranking = settings.model_key()
            elif name in part.offered.of_models:
                of_ranking = list(settings.further_models.values())
            models.append(of_ranking)
        return all(model == models[0] for model in models)

    def is_open(self, name: str) -> bool:
        return all(part.is_open(name) for part in self.parts.values())

    def prepare(self, machine: Machine) -> None:
        for part in self.parts.values():
            part.prepare(machine)

    def within(self, wanted: DocumentFilter) -> Self:
        other = copy.copy(self)
        other.parts = self._filtered(wanted)
        return other

    def warnings(self) -> list[str]:
        """What all collections say.

        If a document of any collection matches, the filter leaves some.
        """
        said = [part.warnings() for part in self.parts.values()]
        return list(said[0]) if all(said) else []

    def store(self, machine: Machine) -> SeveralStores:
        return SeveralStores({name: part.store(machine) for name, part in self.parts.items()})

    def n_passages(self, machine: Machine) -> int:
        return sum(part.n_passages(machine) for part in self.parts.values())

    def n_hits(self, machine: Machine) -> int:
        return sum(part.n_hits(machine) for part in self.parts.values())

    def inputs(self) -> tuple[Input, ...]:
        inputs: list[Input] = []
        for part in self.parts.values():
            inputs += part.inputs()
        return tuple(inputs)

    def about(self) -> dict[str, Any]:
        """As in `Index`: documents, language, fields and fusion of all collections together."""
        abouts = [part.about() for part in self.parts.values()]
        fields: dict[str, set[str]] = {}
        for about in abouts:
            for name, kinds in about['fields'].items():
                fields.setdefault(name, set()).update(kinds)
        own_fusion: Mapping[str, Any] = {
            name: abouts[0][name]
            for name in ('fusion', 'weights', 'normalize')
            if name in abouts[0]
        }
        return {
            'documents': sum(about['documents'] for about in abouts),
            'fields': {name: sorted(kinds) for name, kinds in sorted(fields.items())},
            **own_fusion,
        }

    def has_newer(self) -> bool:
        return any(part.has_newer() for part in self.parts.values())

    def check_successor(self, newer: Generations) -> None:
        assert isinstance(newer, SeveralIndexes)
        for name, part in self.parts.items():
            part.check_successor(newer.parts[name])

    def close(self) -> None:
        for part in self.parts.values():
            part.close()


def searches(part: Index, ranking: str) -> bool:
    """Whether a collection is searched by a ranking, unless it learned or was set to others."""
    folder = part.learned()
    rankings = () if folder is None else read_adapted(folder).rankings
    return not rankings or ranking in rankings
