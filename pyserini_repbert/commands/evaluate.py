"""`python -m pyserini_repbert.evaluate`: measures of run files, or the analysis that the first word names."""

from __future__ import annotations

import importlib

SUBCOMMANDS = {  # the first word -> the module and the function of its command
    'measures': ('evaluate_measures', 'main'),
    'fusion-table': ('evaluate_depths', 'fusion_table_main'),
    'consistency': ('evaluate_depths', 'consistency_main'),
    'recall-depth': ('evaluate_depths', 'recall_depth_main'),
    'tune-cutoff': ('evaluate_depths', 'tune_cutoff_main'),
    'epic-values': ('evaluate_epic', 'values_main'),
    'epic-pruning': ('evaluate_epic', 'pruning_main'),
    'rerank-depth': ('evaluate_depths', 'rerank_depth_main'),
    'tradeoff': ('evaluate_tradeoff', 'main'),
    'ties': ('evaluate_ties', 'main'),
    'split-folds': ('evaluate_folds', 'split_main'),
    'join-folds': ('evaluate_folds', 'join_main'),
}


def main(arguments: list[str]) -> int | None:
    """Run the subcommand that the first argument names, or `measures`."""
    word = arguments[0] if arguments and arguments[0] in SUBCOMMANDS else ''
    module, function = SUBCOMMANDS[word or 'measures']
    command = getattr(importlib.import_module(f'pyserini_repbert.commands.{module}'), function)
    return command(arguments[1:] if word else arguments)  # type: ignore[no-any-return]
