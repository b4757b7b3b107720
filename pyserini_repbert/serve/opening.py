"""Opening the indexes of a service, in an order in which each finds its base."""

from __future__ import annotations

import asyncio

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.errors import InputError, UnknownNameError
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.lanes import Lanes
from pyserini_repbert.serve.settings import ServeSettings


async def opened(settings: ServeSettings, lanes: Lanes) -> dict[str, ServedIndex]:
    """The indexes of a service by alias, all opened; those that others name as their base first.

    Raises
    ------
    UnknownNameError, InputError
        for a base_index that is not there, or is not a Lucene index; and what `ServedIndex.open` raises
    """
    known = {own.alias: own for own in settings.indexes}
    spread = [own.alias for own in settings.indexes if own.ray]
    if len(spread) > 1:  # workers hold their machines, and each keeps one thing open
        raise InputError(f"indexes '{spread[0]}' and '{spread[1]}' name a Ray cluster: a service searches one on Ray")
    found: dict[str, ServedIndex] = {}
    for own in sorted(settings.indexes, key=lambda own: own.base_index is not None):
        base = None
        if own.base_index is not None:
            if own.base_index not in known:
                near = did_you_mean(own.base_index, known)
                raise UnknownNameError(f"index '{own.alias}' names '{own.base_index}' as its base_index{near}")
            base = found.get(own.base_index)
            if base is None or base.index_type != 'tf':
                raise InputError(f"index '{own.alias}': its base_index '{own.base_index}' has to be a Lucene index")
        index = ServedIndex(own, settings, lanes)
        await index.open(base)
        found[own.alias] = index
        await asyncio.sleep(0)
    return {alias: found[alias] for alias in known}
