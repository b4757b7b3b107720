"""`Generations`: what a service asks of an index whose documents change."""

from __future__ import annotations

from typing import Any


class Generations:
    """One generation of an index; the defaults are for an index whose documents never change."""

    @property
    def generation_number(self) -> int | None:
        """Which of its generations it is; None if there is only one generation."""
        return None

    @property
    def known(self) -> Any:
        """The collection whose generation it is; None if documents never change."""
        return None

    def has_newer(self) -> bool:
        """Whether another generation is published.

        Raises LostCollectionError if its folder no longer holds it.
        """
        return False

    def check_successor(self, newer: Generations) -> None:
        """Raises LostCollectionError if another index is not a later generation of this one."""

    def why_learn_again(self, learning: Any) -> str | None:
        """A sentence that says what has changed since a learning; None if that is little."""
        return None
