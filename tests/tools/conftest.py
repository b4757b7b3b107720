"""The tool that a test module is about."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def main(request: pytest.FixtureRequest) -> Callable[[list[str]], int | None]:
    """The `main` of tools/NAME.py, where a module has TOOL = 'NAME'."""
    name = request.module.TOOL
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / 'tools' / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main
