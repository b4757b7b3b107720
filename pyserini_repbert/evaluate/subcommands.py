"""The words that `evaluate` takes in front: word -> module of this package and its function."""

SUBCOMMANDS = {
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
