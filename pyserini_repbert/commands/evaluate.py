"""`python -m pyserini_repbert.evaluate`: measures of run files; with a word in front, one of the analyses."""

from __future__ import annotations

import importlib

from pyserini_repbert.commands.evaluate_words import SUBCOMMANDS


def main(arguments: list[str]) -> int | None:
    """Hand over to the subcommand that the first argument names, or to `measures`."""
    word = arguments[0] if arguments and arguments[0] in SUBCOMMANDS else ''
    module, function = SUBCOMMANDS[word or 'measures']
    command = getattr(importlib.import_module(f'pyserini_repbert.commands.{module}'), function)
    return command(arguments[1:] if word else arguments)  # type: ignore[no-any-return]
