"""What decides the hits of a collection's search, as values that can be stored and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

from pyserini_repbert.collection.dense_search import DenseDocumentSearcher
from pyserini_repbert.collection.noted_rankings import ranking_names
from pyserini_repbert.collection.searching import CollectionSearcher
from pyserini_repbert.fusion.methods import FusionMethod
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.search.scans import scans

if TYPE_CHECKING:
    from pyserini_repbert.collection.bm25_search import Bm25DocumentSearcher

_WEIGHT_DIGITS = 6
_MAP = 'query_map'


@dataclass(frozen=True)
class SearchedRankings:
    """The rankings of a search of a collection, and their fusion.

    Attributes
    ----------
    dense : the search of its vectors
    words : its BM25; None without one
    names : of the rankings, by `CollectionRanking`, in their order
    fusion : of the rankings; None if one of them is the search
    scan : the name of the scan that finds hits of one of them; '' for exact search
    """

    dense: DenseDocumentSearcher
    words: Bm25DocumentSearcher | None
    names: tuple[str, ...]
    fusion: FusionSettings | None
    scan: str = ''

    @classmethod
    def of(cls, searcher: CollectionSearcher) -> Self:
        """The settings of an open search."""
        dense = searcher.dense
        scan = ''
        for leaf in searcher.leaves():
            # Feedback is given to the ranking that is searched.
            if isinstance(leaf, DenseDocumentSearcher):
                dense = leaf
            scan_of_leaf = getattr(leaf, 'scan', None)
            if scan_of_leaf is not None:
                scan = scan_of_leaf.name
        fusion = searcher.settings if len(searcher.parts) > 1 else None
        return cls(dense, searcher.words, tuple(ranking_names(searcher)), fusion, scan)

    def description(self) -> dict[str, Any]:
        """All that decides the hits but models, filter and rerankers, as JSON has it."""
        settings = None if self.words is None else self.words.settings
        feedback = self.dense.feedback
        query_map = {}
        # Earlier models have no such key: they are of searches without a map.
        if self.dense.query_map is not None:
            query_map[_MAP] = sha256(self.dense.query_map.tobytes()).hexdigest()
        return {
            **self._fusion_values(),
            'aggregate': str(self.dense.aggregation),
            'k1': None if settings is None else settings.k1,
            'b': None if settings is None else settings.b,
            'max_length': getattr(self.dense.query_encoder, 'limit', None),
            **{name: name == self.scan for name in scans()},
            'prf': None if feedback is None else asdict(feedback),
            **query_map,
        }

    def _fusion_values(self) -> dict[str, Any]:
        """The rankings and how they are fused; where their order does not matter, sorted."""
        fusion = self.fusion
        names = sorted(self.names)
        if fusion is None:
            return {'rankings': names, 'fusion': None}
        values: dict[str, Any] = {'fusion': str(fusion.method), 'depth': fusion.depth}
        if fusion.method is FusionMethod.INTERLEAVE:
            return {'rankings': list(self.names), **values}
        if fusion.method is FusionMethod.RRF:
            return {'rankings': names, **values, 'rrf_k': fusion.rrf_k}
        weights = fusion.weights_for(len(names))
        weight_of = dict(zip(self.names, weights, strict=True))
        values['normalize'] = str(fusion.normalize)
        # 1 - .9 is not exactly .1.
        values['weights'] = [round(weight_of[name], _WEIGHT_DIGITS) for name in names]
        return {'rankings': names, **values}


def differences_text(learned: Mapping[str, Any], searched: Mapping[str, Any]) -> str:
    """What differs between two descriptions, as 'fusion interpolation, here rrf'."""
    texts = []
    for name, value in learned.items():
        if name in searched and name != _MAP and searched[name] != value:
            texts.append(f'{name} {_text_of(value)}, here {_text_of(searched[name])}')
    before = learned.get(_MAP)
    here = searched.get(_MAP)
    if before != here:
        is_other = before is not None and here is not None
        texts.append(f'{_map_text(before)}, here {"another" if is_other else _map_text(here)}')
    return '; '.join(texts)


def _map_text(digest: str | None) -> str:
    """A query map, by its digest."""
    return 'no query map' if digest is None else 'a query map'


def _text_of(value: Any) -> str:
    """A value of a description as a user would give it."""
    if isinstance(value, Mapping):
        return str(value['method'])
    if isinstance(value, list):
        return ' '.join(map(str, value))
    return 'none' if value is None else str(value)
