"""The words that `evaluate` takes in front: word -> module of this package and its function."""

SUBCOMMANDS = {
    'measures': ('evaluate_measures', 'main'),
    'fusion-table': ('evaluate_depths', 'fusion_table_main'),
    'consistency': ('evaluate_depths', 'consistency_main'),
    'recall-depth': ('evaluate_depths', 'recall_depth_main'),
    'tune-cutoff': ('evaluate_cutoff', 'main'),
    'epic-values': ('evaluate_epic_values', 'main'),
    'epic-pruning': ('evaluate_epic_pruning', 'main'),
    'rerank-depth': ('evaluate_depths', 'rerank_depth_main'),
    'tradeoff': ('evaluate_tradeoff', 'main'),
    'layers': ('evaluate_layers', 'main'),
    'ties': ('evaluate_ties', 'main'),
    'split-folds': ('evaluate_folds', 'split_main'),
    'join-folds': ('evaluate_folds', 'join_main'),
}
