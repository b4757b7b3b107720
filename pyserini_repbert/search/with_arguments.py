"""Keyword arguments of searches that extensions take: of `Collection.search` and of retrievers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import open_by_extension
from pyserini_repbert.extension_words import missing_extension
from pyserini_repbert.ranking import Candidate, Ranker


def search_of_arguments(
    ranker: Ranker, arguments: Mapping[str, Any], **settings: Any
) -> Callable[[str, int], list[Candidate]] | None:
    """What an extension searches with, as arguments ask; None if none asks for anything.

    Parameters
    ----------
    ranker : an open search
    arguments : by name; False and None ask for nothing
    settings : of the search, as the opener 'search' of `Extension.openers` takes them

    Raises InputError for an argument that no extension takes with this search, and for two that ask
    for something.
    """
    asked = {}
    for name, value in arguments.items():
        search = open_by_extension('search', ranker, argument=name, **settings)
        if search is None:
            raise InputError(
                f"no extension that is installed takes '{name}' with this search: search a "
                f'collection, or leave it out{missing_extension(name)}'
            )
        if value:
            asked[name] = search
    if len(asked) > 1:
        raise InputError(f'{" and ".join(asked)} were asked for: ask for one at a time')
    return next(iter(asked.values()), None)
