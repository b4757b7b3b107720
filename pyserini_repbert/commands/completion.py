"""Completion of commands, flags and catalog names in a shell, by argcomplete (3.7)."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyserini_repbert.errors import InputError, needs

ASKED = '_ARGCOMPLETE'  # argcomplete's own variable: the words of the line before the parser's arguments
SHELLS = ('bash', 'zsh', 'fish')
_PROGRAM = 'pyserini-repbert'
_under_way: list[argparse.ArgumentParser] = []
_KINDS = {  # what the values of these flags are called in the catalog
    'encoder': 'encoders',
    'index': 'indexes',
    'topics': 'topics',
    'qrels': 'qrels',
    'corpus': 'collections',
    'sparse': 'sparse',
    'stages': 'rerankers',
}


def script(arguments: Sequence[str]) -> str:
    """What `--completion SHELL` prints: a shell evaluates it once.

    Raises
    ------
    InputError
        for another shell
    MissingDependencyError
        without argcomplete
    """
    if len(arguments) != 1 or arguments[0] not in SHELLS:
        raise InputError(f'--completion takes one shell, one of {", ".join(SHELLS)}')
    with needs('argcomplete', 'completion', 'terminal'):
        from argcomplete import shellcode
    return str(shellcode([_PROGRAM], shell=arguments[0]))


def complete_command(commands: Mapping[str, str]) -> list[str]:
    """The words behind the program, where they say which command is to complete the last one.

    Else the process ends, with the commands' names as completions.
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
    """Complete what a parser knows, and end the process; nothing where that is under way."""
    import argcomplete

    if _under_way:  # argcomplete parses the line, with this parser and those below it
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
            for own in action.choices.values():
                yield from _actions(own)


def _names(kind: str) -> Callable[..., list[str]]:
    """A completer: the catalog's names, and files."""

    def completer(prefix: str, **given: Any) -> list[str]:
        from argcomplete.completers import FilesCompleter

        from pyserini_repbert import catalog

        at = '@' if kind == 'rerankers' else ''
        return [name + at for name in catalog.entries(kind)] + list(FilesCompleter()(prefix, **given))

    return completer
