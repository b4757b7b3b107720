"""`python -m pyserini_repbert COMMAND …`: our commands, and any module of Pyserini with Java and
this plugin.
"""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import traceback
from pathlib import Path
from typing import Any
from urllib.error import URLError

from pyserini_repbert import __version__
from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.commands.command import EXIT_ERROR
from pyserini_repbert.errors import (
    InputError,
    MissingResourceError,
    PyseriniRepbertError,
    UnknownNameError,
)
from pyserini_repbert.extension import commands_below
from pyserini_repbert.extension_words import refuse_missing_command

PROGRAM = 'python -m pyserini_repbert'
COMMANDS = {
    'encode': 'build an index of vectors from a corpus',
    'index': 'keep a collection up to date; build, check and export indexes',
    'search': 'answer questions, or a file of topics',
    'fusion': 'fuse run files: interleave, RRF, interpolation',
    'rerank': 'rerank a run with monoBERT, duoBERT, EPIC or CEDR',
    'explain': 'say why a hit ranks where it does',
    'train': 'train a model from a recipe',
    'evaluate': 'score run files with judgments; tables and plots',
    'regression': 'check published figures',
    'adapt': 'learn from your judgments, in seconds',
    'doctor': 'check this machine, and say how to add what is missing',
}
_HELP = f"""\
usage: {PROGRAM} COMMAND [ARGUMENTS]
       {PROGRAM} pyserini.MODULE [ARGUMENTS]

commands (each has --help):
{{}}

pyserini.MODULE runs a module of Pyserini, such as pyserini.search.faiss. It finds Java, and
has RepBERT among its encoders and indexes."""
# Modules of Pyserini that choose encoders or indexes by name. The others start without torch.
_NEED_PLUGIN = ('pyserini.encode', 'pyserini.search', 'pyserini.2cr', 'pyserini.server')


def main(arguments: list[str]) -> int:
    """Run the command, or the module of Pyserini, that the first argument names.

    Returns its exit status.
    """
    if not arguments:
        print(_help(), file=sys.stderr)
        return EXIT_ERROR
    name, *rest = arguments
    if name in ('-h', '--help', 'help'):
        print(_help())
        return 0
    if name == '--version':
        print(f'pyserini_repbert {__version__}')
        return 0
    if name in COMMANDS:
        command: Any = importlib.import_module(f'pyserini_repbert.commands.{name}')
        return int(command.main(rest) or 0)
    of_extensions = commands_below()
    if name in of_extensions:
        return of_extensions[name].run(rest)
    if name.split('.')[0] == 'pyserini':
        return _run_pyserini(name, rest)
    refuse_missing_command(name)
    raise UnknownNameError(
        f"'{name}' is not a command{did_you_mean(name, help_texts())}: see {PROGRAM} --help"
    )


def help_texts() -> dict[str, str]:
    """What each command does, in a line, by its name: ours, then extensions'."""
    of_extensions = commands_below().items()
    return {**COMMANDS, **{name: found.command.help for name, found in of_extensions}}


def _help() -> str:
    """The help, with a line for each command."""
    texts = help_texts()
    width = max(map(len, texts))
    return _HELP.format('\n'.join(f'  {name:<{width}}  {text}' for name, text in texts.items()))


def _run_pyserini(module: str, arguments: list[str]) -> int:
    """Run a module of Pyserini as `python -m` would.

    What a user can correct becomes one line; other failures keep their traceback. Its exit status
    is passed on.
    """
    from pyserini_repbert.interop import pyserini
    from pyserini_repbert.lucene import compat, jvm

    modules = compat.runnable_modules()
    if module not in modules:
        raise UnknownNameError(
            f'Pyserini {compat.pyserini_version()} has no module '
            f"'{module}'{did_you_mean(module, modules)}"
        )
    jvm.start_jvm()
    _add_java_to_path()
    if module.startswith(_NEED_PLUGIN):
        pyserini.register()
        for encoder in _encoders(arguments):
            pyserini.claim(encoder)
    if module.startswith('pyserini.server'):
        pyserini.register_with_server()
    sys.argv = [module, *arguments]
    return _run_module(module)


def _add_java_to_path() -> None:
    """Let programs that Pyserini starts find Java."""
    java = Path(os.environ['JAVA_HOME']) / 'bin'
    os.environ['PATH'] = os.pathsep.join([str(java), os.environ.get('PATH', '')])


def _encoders(arguments: list[str]) -> list[str]:
    """The values of --encoder: '--encoder NAME' and '--encoder=NAME'."""
    encoders = []
    for word, following in itertools.zip_longest(arguments, arguments[1:], fillvalue=''):
        flag, equals, value = word.partition('=')
        if flag == '--encoder':
            encoders.append(value if equals else following)
    return [encoder for encoder in encoders if encoder]


def _run_module(module: str) -> int:
    """Run a module of Pyserini, with its tables and without a key of OpenAI's; returns its exit
    status.
    """
    import runpy

    from pyserini_repbert.lucene import compat, tables

    try:
        tables.keep_tables()
        with compat.placeholder_openai_key():
            runpy.run_module(module, run_name='__main__', alter_sys=True)
    except SystemExit as error:
        if isinstance(error.code, str):
            raise PyseriniRepbertError(error.code) from error
        return error.code or 0
    except URLError as error:
        raise MissingResourceError(
            f'{module} could not download what it needs ({error.reason}): run it once '
            'with a network'
        ) from error
    except Exception as error:
        if _is_understood(error):
            raise
        dimensions = _refused_dimensions(error)
        if dimensions:
            given, expected = dimensions
            raise InputError(
                f'{module}: the encoder gives vectors of {given} dimensions, its index was made '
                f'for {expected}: give --dimension {given} after --encoder'
            ) from error
        # The code is not ours: its traceback says more than a line of ours could.
        traceback.print_exception(error)
        kind = type(error).__name__
        raise PyseriniRepbertError(f'{module}: {kind}: {error}'.removesuffix(': ')) from error
    return 0


def _refused_dimensions(error: Exception) -> tuple[int, int] | None:
    """The dimensions of the vectors and of the FAISS index that refused them; None for others.

    FAISS asserts that they are equal, without a word, in a function whose names say them.
    """
    trace = error.__traceback__
    if not isinstance(error, AssertionError) or trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    names = trace.tb_frame.f_locals
    given = names.get('d')
    expected = getattr(names.get('self'), 'd', None)
    if isinstance(given, int) and isinstance(expected, int) and given != expected:
        return given, expected
    return None


def _is_understood(error: Exception) -> bool:
    """Whether an error is ours, or about one of the user's files."""
    if isinstance(error, PyseriniRepbertError):
        return True
    return isinstance(error, OSError) and bool(error.filename)
