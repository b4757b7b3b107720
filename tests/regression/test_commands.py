"""The command lines of the regression files, against the commands' own parsers."""

import importlib
from pathlib import Path

import pytest

from pyserini_repbert.commands.command import Parser
from pyserini_repbert.regression.jobs import ConditionJob
from pyserini_repbert.regression.regression_files import read_regression
from pyserini_repbert.regression.workspace import Workspace

FILES = sorted((Path(__file__).parents[2] / 'regressions').glob('*.yaml'))


class Parsed(Exception):
    """A command line was read to its end."""


@pytest.fixture
def parse(monkeypatch):
    """parse(words): read a command line with the parser of its command, and run nothing."""
    whole = Parser.parse_args

    def parse_args(parser, arguments=None, namespace=None):
        whole(parser, arguments, namespace)
        raise Parsed

    def parse(words):
        python, flag, module, *arguments = words
        assert (python, flag) == ('python', '-m')
        command = importlib.import_module(module.replace('.', '.commands.', 1))
        with pytest.raises(Parsed):
            command.main(arguments)

    monkeypatch.setattr(Parser, 'parse_args', parse_args)
    return parse


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
def test_every_command_line_is_one_that_its_command_takes(path, parse, tmp_path):
    regression = read_regression(str(path))
    workspace = Workspace(regression, tmp_path, str(tmp_path), 'test')
    lines = set()
    for condition in regression.conditions:
        lines.update(workspace.commands(condition))
        lines.update(ConditionJob(condition, workspace).evaluation())
    assert lines
    for line in sorted(lines):
        parse(workspace.run_words(line))


@pytest.mark.parametrize(
    ('line', 'replaces'),
    [
        ('rerank --run a --output b', True),
        ('rerank --run a --output b --resume', False),
        ('evaluate join-folds --folds f --runs a --output b', True),
        ('evaluate recall-depth --runs a --qrels q --csv t.csv', True),
        ('evaluate split-folds --folds f --topics t --output folder', True),
        ('evaluate --qrels q a', False),
        ('encode --corpus c --encoder e --output b', False),
    ],
)
def test_a_file_that_an_earlier_try_left_is_replaced(line, replaces, tmp_path):
    workspace = Workspace(read_regression(str(FILES[0])), tmp_path, str(tmp_path), 'test')
    command = f'python -m pyserini_repbert.{line}'
    added = ['--overwrite'] if replaces else []
    assert workspace.run_words(command) == [*command.split(), *added]
