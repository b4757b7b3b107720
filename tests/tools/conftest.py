"""The tool that a test module is about."""

import importlib.util
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / 'tools'


@pytest.fixture
def imported(monkeypatch):
    """imported(NAME, …): these tools, imported anew from tools/; the last one."""

    def anew(*names):
        monkeypatch.syspath_prepend(str(TOOLS))
        for name in names:
            monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(names[-1])

    return anew


@pytest.fixture
def main(request):
    """The `main` of tools/NAME.py, where a module has TOOL = 'NAME'."""
    name = request.module.TOOL
    spec = importlib.util.spec_from_file_location(name, TOOLS / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main
