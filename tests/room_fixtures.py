"""Fixtures of one room of tests, for another."""

import importlib.util
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def fixtures_of(room):
    """The names in the conftest of a room, whose helpers tests may import."""
    sys.path.append(str(TESTS / room))
    spec = importlib.util.spec_from_file_location(
        f'fixtures_of_{room}', TESTS / room / 'conftest.py'
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: value for name, value in vars(module).items() if not name.startswith('__')}
