"""What is said where an optional package is missing, or is installed and does not work."""

import sys
from types import ModuleType

import pytest

from pyserini_repbert.errors import MissingDependencyError, needs


def test_a_package_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, 'absent', None)
    with pytest.raises(MissingDependencyError) as caught, needs('absent', 'a plot', 'plots'):
        import absent  # noqa: F401
    assert (
        str(caught.value)
        == "a plot needs the package 'absent': pip install '.[plots]' (in the checkout)"
    )


def test_a_package_of_another_version_is_not_called_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, 'elderly', ModuleType('elderly'))
    with pytest.raises(MissingDependencyError) as caught, needs('elderly', 'a plot'):
        from elderly import Novelty  # noqa: F401
    assert "needs the package 'elderly', and the installed one does not work (cannot import" in str(
        caught.value
    )
    assert str(caught.value).endswith(': pip install elderly')
