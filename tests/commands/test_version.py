"""Every command says its version, whatever else it needs."""

import importlib

import pytest

from pyserini_repbert import __version__
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import COMMANDS


@pytest.mark.parametrize('words', [[name] for name in COMMANDS] + [['index', 'sync']])
def test_every_command_says_its_version(words, capsys):
    module = importlib.import_module(f'pyserini_repbert.commands.{words[0]}')
    with pytest.raises(SystemExit) as ended:
        run(module.main, [*words[1:], '--version'])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f'pyserini_repbert {__version__}\n'
