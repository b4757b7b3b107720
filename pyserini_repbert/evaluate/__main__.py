"""`python -m pyserini_repbert.evaluate`: measures of run files; with a word in front, one of the analyses."""

from __future__ import annotations

import importlib
import sys

from pyserini_repbert.command import run

SUBCOMMANDS = {  # word -> module of this package and its function
    'measures': ('measures_command', 'main'),
    'fusion-table': ('analyses', 'fusion_table_main'),
    'consistency': ('analyses', 'consistency_main'),
    'recall-depth': ('analyses', 'recall_depth_main'),
    'tune-cutoff': ('cutoff_command', 'main'),
    'epic-values': ('epic_values_command', 'main'),
    'epic-pruning': ('epic_pruning_command', 'main'),
    'rerank-depth': ('analyses', 'rerank_depth_main'),
    'tradeoff': ('tradeoff_command', 'main'),
    'layers': ('layers_command', 'main'),
    'ties': ('ties_command', 'main'),
    'split-folds': ('folds_command', 'split_main'),
    'join-folds': ('folds_command', 'join_main'),
}


def main(arguments: list[str]) -> int | None:
    """Hand over to the subcommand that the first argument names, or to `measures`."""
    word = arguments[0] if arguments and arguments[0] in SUBCOMMANDS else ''
    module, function = SUBCOMMANDS[word or 'measures']
    command = getattr(importlib.import_module(f'pyserini_repbert.evaluate.{module}'), function)
    return command(arguments[1:] if word else arguments)  # type: ignore[no-any-return]


if __name__ == '__main__':
    sys.exit(run(main))
