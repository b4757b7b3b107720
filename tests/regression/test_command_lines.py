"""Every command line of regressions/ is one that its command still takes."""

import argparse
import importlib
from pathlib import Path

import pytest

from pyserini_repbert.commands.command import Parser
from pyserini_repbert.errors import InputError
from pyserini_repbert.regression.reading import read_regression
from pyserini_repbert.regression.workspace import Workspace

FILES = sorted((Path(__file__).parents[2] / 'regressions').glob('*.yaml'))


class Parsed(Exception):
    """A command has read its flags; nothing more of it is run."""


@pytest.fixture
def parse(monkeypatch):
    """parse(words): raises InputError for the words of a command that it does not take."""

    def stop(parser, arguments=None, namespace=None):
        argparse.ArgumentParser.parse_args(parser, arguments, namespace)
        raise Parsed

    monkeypatch.setattr(Parser, 'parse_args', stop)

    def parse(words):
        module = importlib.import_module(words[2].replace('.', '.commands.', 1))
        with pytest.raises(Parsed):
            module.main(words[3:])

    return parse


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
def test_every_command_line_parses(path, parse, tmp_path):
    regression = read_regression(path)
    workspace = Workspace(regression, tmp_path, 'data', 'version')
    commands = dict.fromkeys(
        command for condition in regression.conditions for command in workspace.commands(condition)
    )
    for command in commands:
        try:
            parse(workspace.words(command))
        except InputError as error:
            pytest.fail(f'{error}: {command}')


@pytest.mark.parametrize('words', ['--prune some', '--no-such-flag', '--colour red --prune 0'])
def test_what_a_command_does_not_take_is_found(words, parse):
    given = 'python -m pyserini_repbert.evaluate epic-pruning --model m --corpus c --topics t'
    given += f' --qrels q --run r {words}'
    with pytest.raises(InputError):
        parse(given.split())
