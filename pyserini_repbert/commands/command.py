"""What all commands share: errors as one line, flags with one meaning, progress bars that can be
silenced.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import io
import itertools
import logging
import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from pyserini_repbert import __version__
from pyserini_repbert.commands.console import printable, safe_output
from pyserini_repbert.commands.outputs import check_outputs_outside
from pyserini_repbert.data.values import MAX_THREADS, decimal, has_surrogates, integer, share
from pyserini_repbert.errors import InputError, PyseriniRepbertError, exhausted
from pyserini_repbert.extension_words import missing_extension

EXIT_ERROR = 2
EXIT_UNREAD = 3  # a file could not be read; all else was done
EXIT_WORSE = 4  # the judged questions are answered worse; all was done
EXIT_INTERRUPTED = 130

# What other tools call our flags.
_OTHER_NAMES = {
    '--k': '--hits',
    '--topk': '--hits',
    '--top-k': '--hits',
    '--num-hits': '--hits',
    '--bm25': '--sparse bm25@INDEX',
    '--model': '--encoder',
    '--out': '--output',
    '--run-tag': '--tag',
    '--batch': '--batch-size',
    '--format': '--output-format',
    '--fp32': '--precision float32',
}
# Flags of a command that left it, and what to do instead.
_LEFT = {
    ('search', '--interactive'): 'leave it out: without a question, search asks at a prompt',
    ('search', '--pairs'): 'write a run with --output, and give it to `rerank --run RUN --pairs`',
    ('search', '--replay-k0'): 'write a run with --output, and give it to `rerank --run RUN`',
    ('search', '--batch-tokens'): 'leave it out: batches that do not fit in memory are halved',
    ('index', '--batch-tokens'): 'leave it out: batches that do not fit in memory are halved',
}

_Value = TypeVar('_Value')


def run(main: Callable[[list[str]], int | None], arguments: list[str] | None = None) -> int:
    """Run a command and return its exit status.

    An error of this package, of a file, of a limit of the system or of a broken installation
    becomes one line on stderr and status 2; Ctrl-C gives status 130. Printed text is safe for a
    terminal.
    """
    _prepare_streams()
    with safe_output():
        _prepare_process()
        return _run(main, sys.argv[1:] if arguments is None else arguments)


def _run(main: Callable[[list[str]], int | None], arguments: list[str]) -> int:
    try:
        return main(arguments) or 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_ERROR
    except KeyboardInterrupt:
        message = 'interrupted'
        if left_work(Parser.resumable):
            message += ': to continue, run it again with --resume'
        status = EXIT_INTERRUPTED
    except Exception as error:
        message = error_message(error)
        status = EXIT_ERROR
        if not message:
            raise
    sys.stdout.flush()
    print(f'error: {printable(message)}', file=sys.stderr)
    return status


def _prepare_streams() -> None:
    """Open closed streams, and print each line when it is there.

    With `> log 2>&1`, stdout and stderr are then in the order in which they were printed.
    """
    for name in ('stdout', 'stderr'):
        # The caller can close them: `>&-`.
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, 'w', encoding='utf-8'))  # noqa: SIM115 - until the process ends
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
        if sys.stdout.errors == 'strict':
            # As on stderr: a terminal or a path that is not UTF-8 is not an error.
            sys.stdout.reconfigure(errors='backslashreplace')


def _prepare_process() -> None:
    """Set what libraries read when they are loaded, and log to stderr."""
    # Read when PyTorch or FAISS is loaded: docs/environment.md.
    if 'OMP_WAIT_POLICY' not in os.environ:
        os.environ.setdefault('GOMP_SPINCOUNT', '10000')
    # One for each shape of a batch; the default is 1,024.
    os.environ.setdefault('ONEDNN_PRIMITIVE_CACHE_CAPACITY', '64')
    logging.basicConfig(
        format='%(levelname)s: %(message)s', level=logging.WARNING, stream=sys.stderr
    )


def error_message(error: Exception) -> str:
    """What to tell the user; '' for an unexpected error.

    An error is explained by the system's limit that caused it.
    """
    for cause in _causes(error):
        limit = exhausted(cause)
        if limit:
            return str(limit)
    if isinstance(error, PyseriniRepbertError):
        flags = ', '.join(map(_flag, error.parameters))
        return f'{error} ({flags})' if flags else str(error)
    if isinstance(error, OSError):
        if error.filename is None:
            return str(error)
        return f'{error.filename}: {error.strerror or error}: check the path and its permissions'
    loop = error.__context__
    # `Path.resolve` raises a RuntimeError about it up to Python 3.12.
    if isinstance(loop, OSError) and loop.errno == errno.ELOOP:
        return f'{loop.filename} is a link that leads back to itself: check the path'
    if isinstance(error, ImportError):
        return f'{error}: `python -m pyserini_repbert.doctor` names the package to install again'
    return ''


def _causes(error: BaseException) -> list[BaseException]:
    """The error, its cause, the cause of that, and so on; two errors can name each other."""
    causes = [error]
    cause = error.__cause__
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__
    return causes


def _flag(parameter: str) -> str:
    """The flag of a parameter: 'on_error=skip' is '--on-error skip'."""
    name, equals, value = parameter.partition('=')
    flag = '--' + name.replace('_', '-')
    return f'{flag} {shlex.quote(value)}' if equals else flag


def left_work(output: str | None) -> bool:
    """Whether a stopped command left a begun index, reranked batches or a training's state.

    `encode`, `rerank` and `train` know these names. Nothing is imported for them here, because the
    interrupt may have come during an import.
    """
    if output is None:
        return False
    folder = Path(output)
    is_reranked = Path(f'{output}.part').is_file()
    is_trained = Path(f'{output}.training', 'recipe.yaml').is_file()
    has_folds = any(folder.glob('seed-*/fold-*'))
    # The folder of an index that replaces the one in `folder`.
    is_replaced = (folder / 'part-0-of-1').is_dir()
    is_encoded = any(map(_is_begun_index, [folder, *folder.glob('part-*')]))
    return is_reranked or is_trained or has_folds or is_replaced or is_encoded


def _is_begun_index(folder: Path) -> bool:
    return (folder / 'encoding.json').is_file() and not (folder / 'manifest.json').is_file()


class Parser(argparse.ArgumentParser):
    """An argument parser that raises InputError, so that its errors are one line as all others;
    it obeys --offline.
    """

    # The output of the running command, if the command can resume one.
    resumable: ClassVar[str | None] = None
    _given: Sequence[str] = ()

    def __init__(self, **options: Any) -> None:
        # Set here, because argparse passes neither on to the parsers of actions.
        defaults: dict[str, Any] = {'formatter_class': _Help, 'allow_abbrev': False}
        super().__init__(**defaults | options)
        self.values: dict[str, Any] = {}  # of the options that were read so far
        for action in (None, 'store'):
            self.register('action', action, _StoreOnce)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._given = sys.argv[1:] if args is None else list(args)
        self.values = {}
        options, rest = super().parse_known_args(args, namespace)
        if rest:
            # Refused here, because argparse leaves the rest of an action to the parser above it.
            advice = self._advice_on_question(options, rest)
            self.error(f'unrecognized arguments: {" ".join(rest)}{advice}')
        check_outputs_outside(options)
        options.command = [*self.prog.split(), *self._given]
        Parser.resumable = options.output if hasattr(options, 'resume') else None
        if getattr(options, 'offline', False):
            from pyserini_repbert.offline import forbid_downloads

            forbid_downloads(True)
        return options, rest

    def error(self, message: str) -> Any:  # argparse declares NoReturn
        message += self._advice_on_dashes(message) + _advice_on_choice(message)
        known = {flag for flag in self._option_string_actions if flag.startswith('--')}
        hint = ''
        for word in self._given:
            flag = word.partition('=')[0]
            if flag.startswith('--') and flag != '--' and flag not in known:
                advice = missing_extension(f'{self.prog.rpartition(".")[2]} {flag}')
                if advice:
                    # With it, all else may be right.
                    message = f'unrecognized arguments: {flag}{advice}'
                    break
                hint = _hint(self.prog, flag, known)
                break
        raise InputError(f'{message}{hint} (see {self.prog} --help)')

    def _advice_on_question(self, options: argparse.Namespace, rest: Sequence[str]) -> str:
        """How to give words without a flag as the question; '' if they are none.

        Parameters
        ----------
        options : what was read; `query` has the first word of a question without quotes
        rest : the words that belong to no flag
        """
        if '--query' not in self._option_string_actions or any(map(_is_flag, rest)):
            return ''
        if options.query:
            return "; put a question of several words in quotes: --query 'who fixes it'"
        return f'; give the question as --query {shlex.quote(" ".join(rest))}'

    def _advice_on_dashes(self, message: str) -> str:
        """How to give a value that begins with a dash, which argparse takes for a flag; '' if none
        follows the flag that lacks its value.
        """
        for flag, value in itertools.pairwise(self._given):
            is_lacking = message.startswith(f'argument {flag}: expected')
            # What begins with two dashes is rather a flag that is spelt otherwise.
            is_value = value.startswith('-') and not value.startswith('--')
            if is_lacking and is_value and value not in self._option_string_actions:
                return f'; a value that begins with - follows an equals sign: {flag}={value[:60]}'
        return ''


def _is_flag(word: str) -> bool:
    return word.startswith('-')


def _advice_on_choice(message: str) -> str:
    """Which choice is near one that does not exist; '' if none is."""
    _, _, rest = message.partition('invalid choice: ')
    unknown, _, choices = rest.partition(' (choose from ')
    near = difflib.get_close_matches(unknown.strip("'"), re.findall(r'[\w-]+', choices), n=1)
    return f"; did you mean '{near[0]}'?" if near else ''


def _hint(program: str, unknown: str, known: Collection[str]) -> str:
    """What to give instead of an unknown flag of a program; '' if nothing is near."""
    action = program.rpartition('.')[2]
    command = action.split()[0]
    if (command, unknown) in _LEFT:
        return f'; {_LEFT[command, unknown]}'
    meant = _OTHER_NAMES.get(unknown.lower(), '')
    if meant.partition(' ')[0] not in known:
        meant = ''.join(difflib.get_close_matches(unknown, sorted(known), n=1))
    return f"; did you mean '{meant}' instead of {unknown}?" if meant else ''


class _StoreOnce(argparse._StoreAction):
    """Stores an option's value; refuses a second one that differs."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        assert isinstance(parser, Parser)
        before = parser.values.setdefault(self.dest, values)
        if option_string and before != values:
            first = _words(before)
            second = _words(values)
            raise argparse.ArgumentError(self, f"'{first}' and '{second}' were given: give one")
        super().__call__(parser, namespace, values, option_string)


def _words(value: Any) -> str:
    """An option's value, as typed."""
    return ' '.join(map(str, value)) if isinstance(value, list) else str(value)


@dataclass(frozen=True)
class Action:
    """What the first argument names: its help, its flags, and its work.

    `act` returns the exit status; None is 0.
    """

    help: str
    add_flags: Callable[[argparse.ArgumentParser], None]
    act: Callable[[argparse.Namespace], int | None]


def parser(module: str, description: str) -> Parser:
    """A parser for `python -m pyserini_repbert.MODULE`, with `--version` and `--quiet`."""
    flags = Parser(prog=f'python -m pyserini_repbert.{module}', description=description)
    flags.add_argument(
        '--version',
        action='version',
        version=f'pyserini_repbert {__version__}',
        help='show the version, and exit',
    )
    flags.add_argument('--quiet', action='store_true', help='no progress bars')
    return flags


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Help that shows defaults that are not empty, and keeps lines of commands."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if '\n' in text else super()._fill_text(text, width, indent)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default in (None, False, [], ''):
            return action.help
        if isinstance(action.default, (list, tuple)):
            return f'{action.help} (default: {_words(list(action.default))})'
        return super()._get_help_string(action)


def argument_type(parse: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """An argparse type that returns what `parse` returns; the message of a ValueError is the
    parser's.
    """

    def convert(text: str) -> _Value:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


positive_int = argument_type(lambda text: integer(text, 1))
zero_or_more = argument_type(lambda text: integer(text, 0))
whole_number = argument_type(integer)
# How many weights of a vector are kept.
pruned_to = argument_type(lambda text: 0 if text == 'all' else integer(text, 0))
threads = argument_type(lambda text: integer(text, 1, MAX_THREADS))
threads_or_auto = argument_type(
    lambda text: text if text == 'auto' else integer(text, 1, MAX_THREADS)
)
finite_number = argument_type(decimal)
probability = argument_type(share)


@argument_type
def utf8_text(text: str) -> str:
    """A text in UTF-8; Python passes other bytes as lone surrogates."""
    if has_surrogates(text):
        raise ValueError(f'{text[:60]!a} is not valid UTF-8: check the encoding of the terminal')
    return text


def use_threads(number: int | None) -> None:
    """Let models, FAISS and tokenizers use `number` threads from now on; None leaves this to the
    environment.

    Libraries that are loaded later, here or in processes started later, read the number from the
    environment.
    """
    if number is None:
        return
    os.environ |= {'OMP_NUM_THREADS': str(number), 'RAYON_NUM_THREADS': str(number)}
    if torch := sys.modules.get('torch'):
        torch.set_num_threads(number)
    if faiss := sys.modules.get('faiss'):
        faiss.omp_set_num_threads(number)


def use_fastest_threads(processes: int = 1) -> None:
    """Let models use as many threads as compute one question fastest, as `use_threads` does.

    `processes` of this command share the threads.
    """
    import torch

    from pyserini_repbert.models.question_threads import question_threads

    threads = question_threads().threads
    if processes > 1:
        threads = min(torch.get_num_threads(), processes * threads)
    use_threads(threads)


def progress(total: int | None, what: str, unit: str, quiet: bool) -> Any:
    """A tqdm bar on stderr with rate and remaining time; silent if stderr is not a terminal.

    Parameters
    ----------
    total : how many units there are; None if that is not known
    what : the step, before the bar
    unit : of the counts: 'passages'
    quiet : no bar at all
    """
    if quiet or not sys.stderr.isatty():
        return _NoBar()
    from tqdm import tqdm

    return tqdm(total=total, desc=what, unit=f' {unit}', file=sys.stderr)


class _NoBar:
    """Instead of a bar of tqdm, which is imported where somebody sees it."""

    disable = True
    smoothing = 0.0

    def update(self, n: int = 1) -> None:
        """Count n units."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def count_text(number: int, what: str) -> str:
    """'1 shard', '3 shards'."""
    return f'{number} {what}{"" if number == 1 else "s"}'


def refuse(unfit: object, message: str) -> None:
    """Raise the error for flags that do not go together, if `unfit` is true."""
    if unfit:
        raise InputError(f'{message} (see --help)')


def pick_options(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Some of the options, as keyword arguments."""
    return {name: getattr(options, name) for name in names}
