"""Keeps test topics and validation topics out of training data."""

from __future__ import annotations

from collections.abc import Iterable

from pyserini_repbert.errors import InputError

TEST_SETS = ('demo',)  # of the catalog


def normal_form(text: str) -> str:
    """A query's text in folded case, its words separated by single spaces."""
    return ' '.join(text.casefold().split())


class Guard:
    """Says which queries may be trained on, by their text, since one qid may name different queries in two collections.

    Parameters
    ----------
    test : texts of test topics; to train on one is an error
    validation : texts of validation topics; these are left out of training
    """

    def __init__(self, test: Iterable[str] = (), validation: Iterable[str] = ()) -> None:
        self._test = {normal_form(text) for text in test}
        self._validation = {normal_form(text) for text in validation}

    def admits(self, text: str, where: str) -> bool:
        """Whether a query may be trained on. Raises InputError, which begins with `where`, for a test topic."""
        known = normal_form(text)
        if known in self._test:
            raise InputError(
                f'{where}: {text[:60]!r} is a test topic: take it out of the training data, '
                'or set allow_test_topics: true'
            )
        return known not in self._validation
