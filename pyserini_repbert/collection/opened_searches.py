"""Opening the search of a collection's generation, for Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.collection.adaptation import adaptation_in_use
from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.opened_models import FurtherEncoders
from pyserini_repbert.collection.rankings import default_fusion, rankings_of
from pyserini_repbert.collection.searching import (
    CollectionSearcher,
    SearchSettings,
    learned_settings,
    open_collection_encoder,
)
from pyserini_repbert.collection.settings import EncoderSource
from pyserini_repbert.search.adapted_folder import read_description
from pyserini_repbert.search.aggregation import PassageAggregation

if TYPE_CHECKING:
    from pyserini_repbert.rerank.base import Reranker
    from pyserini_repbert.search.dense import QueryEncoder


@dataclass(frozen=True)
class OwnSearch:
    """The search of a generation as it learned or was set.

    Attributes
    ----------
    learned : the folder that says how; None: nothing was learned or set
    searcher : without the rerankers that the folder names
    """

    learned: Path | None
    searcher: CollectionSearcher


class OpenedSearches:
    """Opens the searches of a collection. Searches of several generations share their models.

    Parameters
    ----------
    source : the collection's encoders; passages and queries share an encoder that is open
    """

    def __init__(self, source: EncoderSource) -> None:
        self._source = source
        self._further_encoders = FurtherEncoders()
        self._rerankers: dict[str, Reranker] = {}
        self._own: OwnSearch | None = None
        # The model of the encoder of queries that is open.
        self._model_key = b''

    def own(self, generation: Generation) -> OwnSearch:
        """The search of a generation as it learned or was set.

        It is opened once for a generation and a learning; the one before is closed.
        """
        learned = adaptation_in_use(generation.folder, generation.settings)
        own = self._own
        if own is None or own.searcher.generation is not generation or own.learned != learned:
            self.close()
            own = OwnSearch(learned, self.open(generation))
            self._own = own
        return own

    def open(
        self,
        generation: Generation,
        asked: SearchSettings | None = None,
        fusion: Mapping[str, Any] | None = None,
        query_encoder: QueryEncoder | None = None,
    ) -> CollectionSearcher:
        """A search of a generation: as a user says; otherwise as it learned or was set.

        Parameters
        ----------
        generation : is searched
        asked : what a user says, except for the fusion; default: nothing
        fusion : attributes of `FusionSettings` that a user says; default: none
        query_encoder : default: the one that the collection names

        Raises MismatchError for another encoder.
        """
        asked = asked or SearchSettings()
        encoder = query_encoder
        if encoder is None:
            encoder = self._open_query_encoder(generation)
        settings = asked
        learned = adaptation_in_use(generation.folder, generation.settings)
        if learned is not None:
            own = learned_settings(encoder, learned, generation.settings)
            is_max = asked.aggregation == PassageAggregation.MAX
            if asked.rankings or fusion or not is_max:
                settings = replace(asked, k1=own.k1, b=own.b)
            else:
                settings = replace(own, scan=asked.scan)
        if fusion:
            rankings = rankings_of(generation.settings, asked.rankings)
            settings = replace(settings, fusion=default_fusion(rankings).changed(**fusion))
        self._share_further_encoders(generation)
        return CollectionSearcher(
            generation, lambda: encoder, settings, self._source.device, self._further_encoders
        )

    def rerankers(self, learned: Path | None) -> dict[str, Reranker]:
        """The rerankers of the own search, as `stored_rerankers`; each is opened once."""
        rerankers = stored_rerankers(learned, self._source.device, self._rerankers)
        self._rerankers |= rerankers
        return rerankers

    def close(self) -> None:
        """Close the own search. Its generation and its models stay open."""
        if self._own is not None:
            for ranking in self._own.searcher.leaves():
                ranking.close()
            self._own = None

    def _open_query_encoder(self, generation: Generation) -> QueryEncoder:
        """The encoder of queries, opened once: further generations have the same."""
        model_key = generation.settings.model_key()
        if self._model_key != model_key:
            self._source.query_encoder = open_collection_encoder(
                generation,
                device=self._source.device,
                open_encoder=self._source.opened if self._source.is_opened else None,
            )
            self._model_key = model_key
        query_encoder: QueryEncoder = self._source.query_encoder
        return query_encoder

    def _share_further_encoders(self, generation: Generation) -> None:
        """Let searches use the further models that are open for writing, if they are the same."""
        for kind, model in generation.settings.further_models.items():
            source = self._source.further[kind]
            if source.is_opened and model.difference(source.model) is None:
                self._further_encoders.keep(kind, model, source.opened)


def stored_rerankers(
    learned: Path | None, device: str, opened: Mapping[str, Reranker] | None = None
) -> dict[str, Reranker]:
    """The rerankers that a user set for a collection, by their stages, as NAME@K.

    Parameters
    ----------
    learned : the folder that names them; None: there are none
    device : where they run
    opened : some that are open, by their stages
    """
    if learned is None:
        return {}
    from pyserini_repbert.names.rerankers import open_reranker

    rerankers = dict(opened or {})
    stages = read_description(learned).stages
    for stage in stages:
        if stage not in rerankers:
            name, _, depth = stage.partition('@')
            rerankers[stage] = open_reranker(name, device).with_settings(reads=int(depth))
    return {stage: rerankers[stage] for stage in stages}
