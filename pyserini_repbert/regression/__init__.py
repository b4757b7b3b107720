"""Regressions: the conditions in `regressions/*.yaml`, run, and compared with published scores."""
