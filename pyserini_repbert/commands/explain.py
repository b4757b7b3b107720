"""`python -m pyserini_repbert.explain`: EPIC's weights (also `explain epic`); `explain similarity`: CEDR's matrices."""

from __future__ import annotations

import importlib

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.commands.command import parser
from pyserini_repbert.commands.output_files import parsed
from pyserini_repbert.errors import UnknownNameError

SUBCOMMANDS = {'epic': 'explain_epic', 'similarity': 'explain_similarity'}


def main(arguments: list[str]) -> int | None:
    """Run the subcommand that the first argument names, or `epic`."""
    word = arguments[0] if arguments and not arguments[0].startswith('-') else ''
    if word and word not in SUBCOMMANDS:
        near = did_you_mean(word, SUBCOMMANDS)
        raise UnknownNameError(f"'{word}' is not one of explain's subcommands{near}: {', '.join(SUBCOMMANDS)}")
    module = importlib.import_module(f'pyserini_repbert.commands.{SUBCOMMANDS.get(word, "explain_epic")}')
    made = parser(f'explain {word}'.strip(), module.DESCRIPTION)
    module.add_arguments(made)
    return module.run(parsed(made, arguments[1:] if word else arguments))  # type: ignore[no-any-return]
