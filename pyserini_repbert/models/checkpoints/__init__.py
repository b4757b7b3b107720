"""Checkpoint folders: opening, verifying, merging adapters, loading weights."""
