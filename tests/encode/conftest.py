"""An index that is planned, and the same made in one go."""

from __future__ import annotations

import pytest
from folders import tree

from pyserini_repbert.commands import command, encode, index

MAIN = {'encode': encode.main, 'epic': index.main}


@pytest.fixture
def call(capsys):
    """call(*arguments, kind='encode') -> status, what it printed, its error."""

    def run(*arguments, kind='encode'):
        given = [str(argument) for argument in arguments]
        status = command.run(MAIN[kind], [*(['epic'] if kind == 'epic' else []), *given, '--quiet'])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


@pytest.fixture
def made(tiny_checkpoint, corpus_file, tmp_path):
    """Arguments that make an index of 11 passages in shards of 4."""
    given = ['--corpus', corpus_file(11), '--encoder', tiny_checkpoint(), '--shard-size', 4, '--store-text']
    return [*given, '--batch-tokens', 60]


@pytest.fixture
def planned(made, call, tmp_path):
    """The folder of a plan."""
    assert call(*made, '--output', tmp_path / 'planned', '--plan')[0] == 0
    return tmp_path / 'planned'


@pytest.fixture
def whole(made, call, tmp_path):
    """The bytes of the index made in one go."""
    assert call(*made, '--output', tmp_path / 'whole')[0] == 0
    return tree(tmp_path / 'whole')
