"""What every command shares: errors as one line, flags with one meaning, progress that keeps quiet when it should."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from pyserini_repbert.errors import InputError, PyseriniRepbertError

EXIT_ERROR = 2


def run(main: Callable[[list[str]], int | None], arguments: list[str] | None = None) -> int:
    """Run a command; an error on purpose, or a file that cannot be opened, becomes one line on stderr and status 2."""
    logging.basicConfig(format='%(levelname)s: %(message)s', level=logging.WARNING, stream=sys.stderr)
    try:
        return main(sys.argv[1:] if arguments is None else arguments) or 0
    except PyseriniRepbertError as error:
        return _fail(str(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_ERROR
    except OSError as error:
        return _fail(f'{error.filename or "file"}: {error.strerror or error}: check the path and its permissions')
    except KeyboardInterrupt:
        return _fail('interrupted', 130)


def _fail(message: str, status: int = EXIT_ERROR) -> int:
    sys.stdout.flush()
    print(f'error: {" ".join(message.split())}', file=sys.stderr)
    return status


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line, like those of every other error."""

    def error(self, message: str) -> Any:  # argparse declares NoReturn
        raise InputError(f'{message} (see {self.prog} --help)')


def parser(module: str, description: str) -> Parser:
    """A parser for `python -m pyserini_repbert.MODULE`, with `--quiet`."""
    made = Parser(
        prog=f'python -m pyserini_repbert{"." if module else ""}{module}',
        description=description,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    made.add_argument('--quiet', action='store_true', help='no progress bars')
    return made


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Defaults in the help, where there is one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return super()._get_help_string(action) if action.default not in (None, False, []) else action.help


def add_precision_arguments(parser: argparse._ActionsContainer) -> None:
    """--fp16, --bf16 and --fp32, of which one can be given: `options.precision`, None by default."""
    precision = parser.add_mutually_exclusive_group()
    precision.add_argument('--fp16', action='store_const', const='float16', dest='precision', help='half precision')
    precision.add_argument('--bf16', action='store_const', const='bfloat16', dest='precision', help='bfloat16')
    precision.add_argument('--fp32', action='store_const', const='float32', dest='precision', help='single precision')


def positive_int(text: str) -> int:
    """An argparse type: a whole number of at least 1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")
    return value


def plain_text(text: str) -> str:
    """An argparse type: text that UTF-8 can hold. A terminal of another encoding gives bytes that are none."""
    try:
        text.encode('utf-8')
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not valid UTF-8: check the terminal's encoding") from error
    return text


def progress(total: int | None, what: str, unit: str, quiet: bool) -> Any:
    """A tqdm bar on stderr with rate and ETA; silent with `quiet` or when stderr is not a terminal."""
    from tqdm import tqdm

    return tqdm(total=total, desc=what, unit=f' {unit}', disable=True if quiet else None, file=sys.stderr)


def usage(message: str) -> InputError:
    """The error for flags that do not go together."""
    return InputError(f'{message} (see --help)')
