"""A folder that is followed; its service has the fixtures of the service."""

import pytest
from folders import write_files
from room_fixtures import fixtures_of

globals().update(fixtures_of('serve'))


@pytest.fixture
def notes(tmp_path):
    """A folder of three notes."""
    texts = {f'{word}.txt': f'the {word} sat on the mat' for word in ('cat', 'dog', 'fish')}
    return write_files(tmp_path / 'notes', texts)
