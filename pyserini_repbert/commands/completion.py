"""Completion of commands, flags and catalog names in a shell, by argcomplete (3.7)."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyserini_repbert.errors import InputError, needs

ASKED = '_ARGCOMPLETE'  # argcomplete's variable: how many words of the line come before the parser's arguments
SHELLS = ('bash', 'zsh', 'fish')
_PROGRAM = 'pyserini-repbert'
_under_way: list[argparse.ArgumentParser] = []
_KINDS = {  # destination of a flag -> the kind of its catalog names
    'encoder': 'encoders',
    'index': 'indexes',
    'topics': 'topics',
    'qrels': 'qrels',
    'corpus': 'collections',
    'sparse': 'sparse',
    'stages': 'rerankers',
}


def script(arguments: Sequence[str]) -> str:
    """The output of `--completion SHELL`, for the shell to evaluate. Raises InputError for an unknown shell."""
    if len(arguments) != 1 or arguments[0] not in SHELLS:
        raise InputError(f'--completion takes one shell, one of {", ".join(SHELLS)}')
    with needs('argcomplete', 'completion', 'terminal'):
        from argcomplete import shellcode
    return str(shellcode([_PROGRAM], shell=arguments[0]))


def complete_command(commands: Mapping[str, str]) -> list[str]:
    """The words after the program's name if the first of them is a command, which then completes the last one.

    Otherwise completes the names of the commands and ends the process.
    """
    import argcomplete

    line, point = os.environ['COMP_LINE'], int(os.environ['COMP_POINT'])
    words: list[str] = argcomplete.lexers.split_line(line, point)[3]
    if len(words) >= 2 and words[1] in commands:
        return list(words[1:])
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument('command', choices=list(commands))
    parser.add_argument('--version', action='store_true')
    parser.add_argument('--help', action='store_true')
    argcomplete.autocomplete(parser)
    sys.exit(1)


def complete_flags(parser: argparse.ArgumentParser) -> None:
    """Complete flags and values that a parser knows, then end the process; does nothing while that is under way."""
    import argcomplete

    if _under_way:  # argcomplete itself parses the line, with this parser and its subparsers
        return
    _under_way.append(parser)
    os.environ[ASKED] = str(len(parser.prog.split()) - 1)  # 'python -m package.command word' is 'program command word'
    for action in _actions(parser):
        if kind := _KINDS.get(action.dest):
            action.completer = _names(kind)  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, always_complete_options='long')


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for parser_below in action.choices.values():
                yield from _actions(parser_below)


def _names(kind: str) -> Callable[..., list[str]]:
    """A completer that offers the catalog's names of a kind, and files."""

    def completer(prefix: str, **given: Any) -> list[str]:
        from argcomplete.completers import FilesCompleter

        from pyserini_repbert import catalog

        at = '@' if kind == 'rerankers' else ''
        return [name + at for name in catalog.entries(kind)] + list(FilesCompleter()(prefix, **given))

    return completer
