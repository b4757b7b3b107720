"""The papers' analyses: fusion, consistency, depths, trade-offs, EPIC's values and pruning."""
