"""The parsers of all commands and of their actions, as they are made when a command runs."""

import importlib
from unittest.mock import patch

from pyserini_repbert.commands.command import Parser
from pyserini_repbert.commands.dispatcher import COMMANDS
from pyserini_repbert.commands.evaluate import _ANALYSES
from pyserini_repbert.commands.index import all_actions
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import commands_below

# Words with which a command makes parsers and flags that it leaves out otherwise. `index` has the
# flags of all actions that the words name.
WORDS = {
    'fusion': [('tune',)],
    'evaluate': [(analysis,) for analysis in [*_ANALYSES, *commands_below('evaluate')]],
    'index': [tuple(all_actions())],
}


def all_parsers():
    """The parser of each command and action, by its program: 'index sync'."""
    made = []

    class Recorded(Parser):
        def __init__(self, **options):
            super().__init__(**options)
            made.append(self)

    mains = {}
    for name in COMMANDS:
        mains[name] = importlib.import_module(f'pyserini_repbert.commands.{name}').main
    for name, found in commands_below().items():
        mains[name] = found.run
    for name, main in mains.items():
        with patch('pyserini_repbert.commands.command.Parser', Recorded):
            make_parser(main)
            for words in WORDS.get(name, ()):
                make_parser(main, *words)
    return {parser.prog.removeprefix('python -m pyserini_repbert.'): parser for parser in made}


def make_parser(main, *words):
    """Let a command make its parser: a flag that none has ends it."""
    try:
        main([*words, '--no-such-flag'])
    except InputError:
        return
    raise AssertionError(f'{main} takes any flag')
