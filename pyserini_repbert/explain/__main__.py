"""`python -m pyserini_repbert.explain`: EPIC's weights; with `similarity` in front, CEDR's similarity matrices."""

from __future__ import annotations

import importlib
import sys

from pyserini_repbert.command import parser, run

SUBCOMMANDS = {'similarity': 'similarity_command'}


def main(arguments: list[str]) -> int | None:
    """Hand over to the subcommand that the first argument names, or explain a score of EPIC."""
    word = arguments[0] if arguments and arguments[0] in SUBCOMMANDS else ''
    module = importlib.import_module(f'pyserini_repbert.explain.{SUBCOMMANDS.get(word, "epic_command")}')
    made = parser(f'explain {word}'.strip(), module.DESCRIPTION)
    module.add_arguments(made)
    return module.run(made.parse_args(arguments[1:] if word else arguments))  # type: ignore[no-any-return]


if __name__ == '__main__':
    sys.exit(run(main))
