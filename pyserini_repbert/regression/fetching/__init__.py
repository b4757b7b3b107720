"""Fetches what the conditions of regressions need: downloads, unpacks archives, records checksums."""
