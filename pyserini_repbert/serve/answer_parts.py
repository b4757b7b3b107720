"""`AnswerPart`: what an extension adds to searches of the service, over HTTP and MCP."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from pyserini_repbert.ranking import Ranking
from pyserini_repbert.serve.added_fields import PoolOrder
from pyserini_repbert.trace import Notes

if TYPE_CHECKING:
    from pyserini_repbert.serve.indexes import ServedIndex
    from pyserini_repbert.serve.requests import Search
    from pyserini_repbert.serve.rerankers import Rerankers


@dataclass(frozen=True)
class AnswerAddition:
    """What a part adds to an answer.

    Attributes
    ----------
    fields : of the answer, by name
    of_hits : the fields of each hit of the ranking, by name; empty for none
    rows : of the hits that stay, in their order; None: all. Hits are never reordered
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    of_hits: Sequence[Mapping[str, Any]] = ()
    rows: Sequence[int] | None = None


class AnswerFollower(ABC):
    """Adds to the answer of one search.

    Attributes
    ----------
    n_hits : how many hits of the search it reads
    n_known : how many hits of each ranking it reads
    """

    n_hits: int = 0
    n_known: int = 0

    @abstractmethod
    def follow(self, ranking: Ranking, notes: Notes) -> AnswerAddition:
        """The additions.

        Parameters
        ----------
        ranking : the hits, at least `n_hits` if there are so many, without texts
        notes : of the first stage, with the run of each of its rankings
        """


class AnswerPart:
    """What an extension adds to searches of the service; each method does nothing unless it is
    replaced.

    Attributes
    ----------
    parameters : of a search: an annotation and a default, by name. An annotation has a `Field`
        with a description; `Search.added` has the values
    pool_orders : by the names that clients give, beside 'random'
    answer_fields, hit_fields, index_fields : the annotations of what it adds to an answer, to a
        hit, and to the description of an index, by name: `NotRequired[…]` if it may be missing
    """

    parameters: ClassVar[Mapping[str, tuple[Any, Any]]] = {}
    pool_orders: ClassVar[Mapping[str, PoolOrder]] = {}
    answer_fields: ClassVar[Mapping[str, Any]] = {}
    hit_fields: ClassVar[Mapping[str, Any]] = {}
    index_fields: ClassVar[Mapping[str, Any]] = {}

    def follower(
        self, search: Search, index: ServedIndex, rerankers: Rerankers
    ) -> AnswerFollower | None:
        """What follows a search; None if nothing is asked of it.

        Parameters
        ----------
        search : as `resolve_search` returns it; its systems are named
        index : is searched; `index.known_to_parts` keeps what other searches of it can use
        rerankers : of the service

        Raises InputError for a search that it cannot follow.
        """
        return None

    def about(self, index: ServedIndex) -> dict[str, Any]:
        """The description of an index: `index_fields` with their values."""
        return {}
