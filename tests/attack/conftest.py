"""Fixtures of other folders that attacks need, too."""

from tests.pipeline.conftest import world

__all__ = ['world']
