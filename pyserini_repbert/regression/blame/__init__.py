"""Finds why a score moved: a condition is run again with one factor changed at a time."""
