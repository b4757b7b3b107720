"""What has to be obtained before a condition can run, and how many conditions need it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from pyserini_repbert import catalog
from pyserini_repbert.regression.resources import entry_of
from pyserini_repbert.regression.schema import Resource, ResourceOrigin

_SHIPPED = '{here}/'


class Need(StrEnum):
    """What a condition needs, the easiest first; its value says so after 'N conditions need'.

    A condition that needs several counts under the last of them.
    """

    NOTHING = 'nothing that is not here'
    DOWNLOAD = 'downloads'
    BY_HAND = 'files by hand from a web page'
    AGREEMENT = 'a licence'
    TRAINING = 'weights that nobody has published, to be trained'
    OTHER_SYSTEM = 'a system of others that this package does not have'
    UNPUBLISHED = 'something that was never published'


# What a reader can run without asking anybody, and without training a model.
RUNNABLE = (Need.NOTHING, Need.DOWNLOAD)
_EASIEST_FIRST = list(Need)
_NEEDS = {
    ResourceOrigin.ADDRESS: Need.DOWNLOAD,
    ResourceOrigin.PAGE: Need.BY_HAND,
    ResourceOrigin.GET: Need.BY_HAND,
    ResourceOrigin.AGREEMENT: Need.AGREEMENT,
    ResourceOrigin.RECIPE: Need.TRAINING,
    ResourceOrigin.OTHER_SYSTEM: Need.OTHER_SYSTEM,
    ResourceOrigin.UNPUBLISHED: Need.UNPUBLISHED,
}


def need_of(resource: Resource) -> Need:
    """What a resource needs in a new checkout with the extra `demo`."""
    if resource.origin is ResourceOrigin.CATALOG:
        return Need.DOWNLOAD if _is_downloaded(entry_of(resource)) else Need.NOTHING
    if resource.path.startswith(_SHIPPED):
        return Need.NOTHING
    return _NEEDS[resource.origin]


def hardest_need(resources: Iterable[Resource]) -> Need:
    """What a condition needs that needs all these resources."""
    needs = [need_of(resource) for resource in resources]
    return max(needs, key=_EASIEST_FIRST.index, default=Need.NOTHING)


def count_needs(needs: Iterable[Need]) -> dict[Need, int]:
    """Conditions by their needs, the easiest first; unused needs are left out."""
    counts = Counter(needs)
    return {need: counts[need] for need in Need if counts[need]}


def _is_downloaded(entry: catalog.Entry) -> bool:
    """Whether a catalog entry, or its base, is neither shipped nor a package."""
    if 'resource' not in entry.values and 'package' not in entry.values:
        return True
    base = catalog.base(entry)
    return base is not None and _is_downloaded(base)
