"""`serve` warns of an address that others reach without keys."""

import pytest

from pyserini_repbert.serve.command import open_address_warning
from pyserini_repbert.serve.settings import ServeSettings

READ = {'api_keys': ['reader']}
WRITE = {'write_keys': ['writer']}


@pytest.mark.parametrize('host', ['127.0.0.1', '127.0.0.2', '::1'])
def test_this_machine_alone_needs_no_keys(host):
    assert open_address_warning(host, ServeSettings()) == ''


@pytest.mark.parametrize('host', ['0.0.0.0', '192.168.1.7', '::'])
@pytest.mark.parametrize(
    ('keys', 'may', 'advice'),
    [
        ({}, 'anyone may search, judge and learn', 'give --api-keys and --write-keys'),
        (WRITE, 'anyone may search', 'give --api-keys'),
        (READ, 'any key may judge and learn', 'give --write-keys'),
    ],
)
def test_an_address_beyond_this_machine_without_keys(host, keys, may, advice):
    warning = open_address_warning(host, ServeSettings(**keys))
    assert warning.startswith('open to the network')
    assert f'{may}: {advice}' in warning


def test_an_address_beyond_this_machine_with_keys():
    assert open_address_warning('0.0.0.0', ServeSettings(**READ, **WRITE)) == ''
