"""Checkpoint folders: opened, verified, assembled from adapters."""
