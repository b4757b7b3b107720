"""What conditions lack, with the conditions that need the least first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyserini_repbert.regression import resources
from pyserini_repbert.regression.layout import Origin
from pyserini_repbert.regression.resources import NeededResource
from pyserini_repbert.regression.schema import Condition
from pyserini_repbert.regression.workspace import Workspace

Pair = tuple[Condition, Workspace]
_FUSION = 'pyserini_repbert.fusion'  # the only command, besides the evaluation, on published runs


def missing_of(condition: Condition, workspace: Workspace) -> list[NeededResource]:
    """The resources that a condition lacks."""
    absent = (
        resources.missing(resource, workspace.places)
        for resource in workspace.needed(condition.needs)
    )
    return [one for one in absent if one is not None]


def is_out_of_reach(absent: Iterable[NeededResource]) -> bool:
    """Whether a resource was never published, so that the condition cannot be run, whatever is
    fetched.
    """
    return any(one.resource.origin is Origin.UNPUBLISHED for one in absent)


def is_of_published_runs(condition: Condition, workspace: Workspace) -> bool:
    """Whether published files are all that a condition needs: no model, no collection, nothing
    by hand, no Java.
    """
    resources_needed = workspace.needed(condition.needs)
    return (
        bool(condition.expected and resources_needed)
        and all(one.origin is Origin.ADDRESS for one in resources_needed)
        and all(command.split()[2] == _FUSION for command in workspace.commands(condition))
    )


def cheapest_first(
    work: Sequence[Pair], budget: int | None = None
) -> list[tuple[Pair, list[NeededResource]]]:
    """Conditions whose needs can be had, each with what it lacks beyond those before it.

    The next one is always the one that needs the least then: the fewest downloads of unknown size,
    then the fewest resources brought by hand, then the fewest bytes. With a `budget`, in bytes, a
    condition that would exceed it, or is of unknown size, is left out.
    """
    left = [(pair, missing_of(*pair)) for pair in work if pair[0].expected]
    left = [(pair, absent) for pair, absent in left if not is_out_of_reach(absent)]
    taken: set[str] = set()
    spent = 0
    chosen: list[tuple[Pair, list[NeededResource]]] = []
    while left:
        costs = [_cost(absent, taken) for _, absent in left]
        best = min(range(len(left)), key=costs.__getitem__)
        pair, absent = left.pop(best)
        unknown, _, n_bytes = costs[best]
        if budget is not None and (unknown or spent + n_bytes > budget):
            continue
        spent += n_bytes
        chosen.append((pair, [one for one in absent if one.key not in taken]))
        taken |= {one.key for one in absent}
    return chosen


def _cost(absent: Sequence[NeededResource], taken: set[str]) -> tuple[int, int, int]:
    """(downloads of unknown size, resources brought by hand, bytes to download) of what is not
    yet taken.
    """
    new = [one for one in absent if one.key not in taken]
    sizes = [one.n_bytes for one in new if one.is_fetched]
    return (
        sum(size is None for size in sizes),
        len(new) - len(sizes),
        sum(size or 0 for size in sizes),
    )
