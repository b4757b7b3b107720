"""What every command shares: errors as one line, flags with one meaning, progress that keeps quiet when it should."""

from __future__ import annotations

import argparse
import difflib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.files import disk_full
from pyserini_repbert.identifiers import has_surrogates
from pyserini_repbert.numerals import decimal, integer

EXIT_ERROR = 2
# What other tools call a flag, and ours.
_OTHER_NAMES = {
    '--k': '--hits',
    '--topk': '--hits',
    '--top-k': '--hits',
    '--num-hits': '--hits',
    '--bm25': '--sparse bm25',
    '--model': '--encoder',
    '--out': '--output',
    '--run-tag': '--tag',
    '--batch': '--batch-size',
    '--format': '--output-format',
}

_Number = TypeVar('_Number', int, float)


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
        if full := disk_full(error):
            return _fail(str(full))
        return _fail(f'{error.filename or "file"}: {error.strerror or error}: check the path and its permissions')
    except KeyboardInterrupt:
        return _fail('interrupted', 130)


def _fail(message: str, status: int = EXIT_ERROR) -> int:
    sys.stdout.flush()
    print(f'error: {" ".join(message.split())}', file=sys.stderr)
    return status


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line, like those of every other error."""

    _given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._given = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> Any:  # argparse declares NoReturn
        raise InputError(f'{message}{self._hints()} (see {self.prog} --help)')

    def _hints(self) -> str:
        """'; did you mean '--hits' instead of --k?' for flags that were given and are none."""
        known = {own for own in self._option_string_actions if own.startswith('--')}
        flags = dict.fromkeys(given.partition('=')[0] for given in self._given if given.startswith('--'))
        hints = []
        for flag in flags:
            ours = _OTHER_NAMES.get(flag.lower(), '')
            if flag in known or flag == '--':
                continue
            near = [ours] if ours.partition(' ')[0] in known else difflib.get_close_matches(flag, sorted(known), n=1)
            hints += [f"'{own}' instead of {flag}" for own in near]
        return f'; did you mean {", ".join(hints)}?' if hints else ''


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
    return _parsed(lambda: integer(text, 1))


def zero_or_more(text: str) -> int:
    """An argparse type: a whole number of at least 0."""
    return _parsed(lambda: integer(text, 0))


def whole_number(text: str) -> int:
    """An argparse type: a whole number, negative ones too."""
    return _parsed(lambda: integer(text))


def finite_number(text: str) -> float:
    """An argparse type: a number, neither infinite nor NaN."""
    return _parsed(lambda: decimal(text))


def utf8_text(text: str) -> str:
    """An argparse type: a text in UTF-8 (Python hands over other bytes as halves of surrogate pairs)."""
    if has_surrogates(text):
        raise argparse.ArgumentTypeError(f'{text[:60]!a} is not valid UTF-8: check the encoding of the terminal')
    return text


def _parsed(parse: Callable[[], _Number]) -> _Number:
    try:
        return parse()
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def progress(total: int | None, what: str, unit: str, quiet: bool) -> Any:
    """A tqdm bar on stderr with rate and ETA; silent with `quiet` or when stderr is not a terminal."""
    from tqdm import tqdm

    return tqdm(total=total, desc=what, unit=f' {unit}', disable=True if quiet else None, file=sys.stderr)


def usage(message: str) -> InputError:
    """The error for flags that do not go together."""
    return InputError(f'{message} (see --help)')
