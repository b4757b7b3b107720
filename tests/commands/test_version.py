"""Every command says its version, whatever else it needs."""

import pytest

from pyserini_repbert import __version__
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import help_texts, main


@pytest.mark.parametrize('words', [[name] for name in help_texts()])
def test_every_command_says_its_version(words, capsys):
    with pytest.raises(SystemExit) as ended:
        run(main, [*words, '--version'])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f'pyserini_repbert {__version__}\n'
