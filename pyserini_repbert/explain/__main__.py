"""`python -m pyserini_repbert.explain`: EPIC's weights (also `explain epic`); `explain similarity`: CEDR's matrices."""

from __future__ import annotations

import importlib
import sys

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.command import parser, run
from pyserini_repbert.errors import UnknownNameError

SUBCOMMANDS = {'epic': 'epic_command', 'similarity': 'similarity_command'}


def main(arguments: list[str]) -> int | None:
    """Hand over to the subcommand that the first argument names; without one, explain a score of EPIC."""
    word = arguments[0] if arguments and not arguments[0].startswith('-') else ''
    if word and word not in SUBCOMMANDS:
        near = did_you_mean(word, SUBCOMMANDS)
        raise UnknownNameError(f"'{word}' is not one of explain's subcommands{near}: {', '.join(SUBCOMMANDS)}")
    module = importlib.import_module(f'pyserini_repbert.explain.{SUBCOMMANDS.get(word, "epic_command")}')
    made = parser(f'explain {word}'.strip(), module.DESCRIPTION)
    module.add_arguments(made)
    return module.run(made.parse_args(arguments[1:] if word else arguments))  # type: ignore[no-any-return]


if __name__ == '__main__':
    sys.exit(run(main))
