"""What tests of approximate search share."""

import pytest


@pytest.fixture(scope='module')
def shared(tmp_path_factory):
    """A folder of all tests of a module."""
    return tmp_path_factory.mktemp('shared')
