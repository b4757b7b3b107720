"""The papers' analyses: fusion tables, consistency, depth, trade-offs, pruning, layers."""
