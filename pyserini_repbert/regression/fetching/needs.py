"""What conditions need and lack, with the conditions that need the least first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert.regression import resources
from pyserini_repbert.regression.schema import Condition, Origin, Resource
from pyserini_repbert.regression.workspace import Workspace

Pair = tuple[Condition, Workspace]

FETCHED = (Origin.ADDRESS, Origin.CATALOG)  # the origins that `fetch` downloads from
_FUSION = 'pyserini_repbert.fusion'  # the only command, besides the evaluation, on published runs
_UNITS = {'B': 1, 'kB': 10**3, 'MB': 10**6, 'GB': 10**9, 'TB': 10**12}
_SIZE = re.compile(r'(\d+(?:\.\d+)?)\s*(TB|GB|MB|kB|B)\b(?!\s+unpacked)')


@dataclass(frozen=True)
class Need:
    """A resource that conditions lack.

    Attributes
    ----------
    target : where it is put; None for a catalog resource, which goes into the cache, and for one without a path
    size : bytes to download, None if unknown
    size_text : its size as the regression or the catalog states it
    get : the command, or the sentence, that gets it
    """

    resource: Resource
    target: Path | None
    size: int | None
    size_text: str
    get: str
    licence: str

    @property
    def key(self) -> str:
        """Identifies the resource, whatever name a regression gives it."""
        return str(self.target or self.resource.get)

    @property
    def is_fetched(self) -> bool:
        """Whether `fetch` can download it."""
        return self.resource.origin in FETCHED


def size_in_bytes(text: str) -> int:
    """'10GB' -> 10,000,000,000. Raises ValueError for a text that is not a size."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"'{text[:40]}' is not a size: expected a number with B, kB, MB, GB or TB, such as 10GB")
    return round(float(found[1]) * _UNITS[found[2]])


def download_size(text: str) -> int | None:
    """Bytes to download, of '987 MB packed, 2.9 GB unpacked'; None where the text says none."""
    size = _SIZE.search(text)
    return round(float(size[1]) * _UNITS[size[2]]) if size else None


def needs_of(condition: Condition, workspace: Workspace) -> list[Need]:
    """The resources that a condition lacks."""
    found = []
    for name in workspace.needed(condition.needs):
        resource = workspace.regression.resources[name]
        absent = resources.missing(resource, workspace.places)
        if absent is None:
            continue
        place = resources.target(resource, workspace.places) if resource.path else None
        found.append(Need(resource, place, download_size(absent.size), absent.size, absent.get, absent.licence))
    return found


def is_out_of_reach(needs: Iterable[Need]) -> bool:
    """Whether a resource was never published, so that the condition cannot be run, whatever is fetched."""
    return any(need.resource.origin is Origin.UNPUBLISHED for need in needs)


def is_of_published_runs(condition: Condition, workspace: Workspace) -> bool:
    """Whether published files are all that a condition needs: no model, no collection, nothing by hand, no Java."""
    resources_needed = [workspace.regression.resources[name] for name in workspace.needed(condition.needs)]
    commands = [*condition.commands, *(own for build in workspace.builds(condition.needs) for own in build.commands)]
    return (
        bool(condition.expected and resources_needed)
        and all(one.origin is Origin.ADDRESS for one in resources_needed)
        and all(command.split()[2] == _FUSION for command in commands)
    )


def cheapest_first(work: Sequence[Pair], budget: int | None = None) -> list[tuple[Pair, list[Need]]]:
    """Conditions whose needs can be had, each with what it lacks beyond those before it.

    The next one is always the one that needs the least then: the fewest downloads of unknown size, then the fewest
    resources brought by hand, then the fewest bytes.

    Parameters
    ----------
    budget : bytes to download; a condition that would exceed it, or is of unknown size, is left out; None for no limit
    """
    left = [(pair, needs_of(*pair)) for pair in work if pair[0].expected]
    left = [(pair, needs) for pair, needs in left if not is_out_of_reach(needs)]
    taken: set[str] = set()
    spent = 0
    found: list[tuple[Pair, list[Need]]] = []
    while left:
        costs = [_cost(needs, taken) for _, needs in left]
        best = min(range(len(left)), key=costs.__getitem__)
        if budget is not None and (costs[best][0] or spent + costs[best][2] > budget):
            if not costs[best][0]:
                break
            left.pop(best)
            continue
        pair, needs = left.pop(best)
        spent += costs[best][2]
        new = [need for need in needs if need.key not in taken]
        taken |= {need.key for need in new}
        found.append((pair, new))
    return found


def _cost(needs: Sequence[Need], taken: set[str]) -> tuple[int, int, int]:
    """(downloads of unknown size, resources brought by hand, bytes to download) of the needs that are not yet taken."""
    new = [need for need in needs if need.key not in taken]
    fetched = [need for need in new if need.is_fetched]
    unknown = sum(need.size is None for need in fetched)
    return unknown, len(new) - len(fetched), sum(need.size or 0 for need in fetched)


def licence_of(need: Need) -> str:
    """The licence, or 'not stated'."""
    return need.licence or 'not stated'
