"""The sparse systems of a served index, by name; each is opened when it is first used, or ahead by `open_all`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert import catalog
from pyserini_repbert.lucene.sparse_settings import SparseSettings, built_variant
from pyserini_repbert.serve.settings import IndexSettings

_SETTINGS_KEPT = 4  # opened Lucene searchers with k1 and b of a client's choice


class SparseSystems:
    """Searchers of Lucene indexes, to be opened and used in the Java lane."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._specs: dict[str, tuple[str, str | None]] = {}  # name -> what `open_sparse` takes
        self._opened: dict[str, Any] = {}
        self._weighted: OrderedDict[tuple[float, float], Any] = OrderedDict()

    @property
    def names(self) -> tuple[str, ...]:
        """The systems' names, in the order in which they were added."""
        return tuple(self._specs)

    def add_epic(self, place: str) -> None:
        """Add the system 'epic': an index of EPIC's impacts."""
        self._specs['epic'] = (place, None)

    def add(self, settings: IndexSettings, wanted: Sequence[str] | None, lucene: bool) -> None:
        """Add systems to search an index with.

        Parameters
        ----------
        wanted : as `IndexSettings.sparse`; None: the catalog's techniques that fit the Lucene index
        lucene : whether the settings' place is the Lucene index itself, not a dense index that has one beside it
        """
        place = settings.place
        beside = None if lucene else place
        if wanted is not None:
            for spec in wanted:
                name, _, folder = spec.partition('@')
                self._specs[name] = (spec if folder or not lucene else f'{name}@{place}', beside)
            return
        variant = (built_variant(Path(place)) if lucene else None) or 'bm25'
        for name, entry in catalog.entries('sparse').items():
            if entry.values['variant'] == variant:
                self._specs[name] = (f'{name}@{place}' if lucene else name, beside)

    def searcher(self, name: str) -> Any:
        """The searcher of a system, opened if it is not yet. Raises what `open_sparse` raises."""
        if name not in self._opened:
            from pyserini_repbert.search.sparse import open_sparse

            spec, index = self._specs[name]
            self._opened[name] = open_sparse(spec, index, device=self._device)
        return self._opened[name]

    def open_all(self) -> None:
        """Open every system, so that one that cannot be opened fails at the start, not at the first query."""
        for name in self._specs:
            self.searcher(name)

    def weighted(self, weights: tuple[float, float]) -> Any:
        """A searcher with a client's (k1, b) of BM25; the last few stay open."""
        from pyserini_repbert.lucene.searcher import LuceneSparseSearcher

        if weights not in self._weighted:
            folder = self.searcher('bm25').index
            while len(self._weighted) >= _SETTINGS_KEPT:
                self._weighted.popitem(last=False)[1].close()
            self._weighted[weights] = LuceneSparseSearcher(folder, SparseSettings(k1=weights[0], b=weights[1]))
        self._weighted.move_to_end(weights)
        return self._weighted[weights]
