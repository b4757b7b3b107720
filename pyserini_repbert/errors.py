"""Every error that a user can meet.

A message says what was given, what was expected and what to do, in one line.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_MAKE_ROOM = 'make room, or write to another disk'
# Limits of the system by their number: what an error says, and what to do.
_LIMITS = {
    errno.ENOSPC: ('the disk is full', _MAKE_ROOM),
    errno.EDQUOT: ('the quota of the disk is used up', _MAKE_ROOM),
    errno.EFBIG: (
        "the limit of a file's size is reached",
        'raise it (ulimit -f), or write to another file system',
    ),
    errno.EMFILE: ('this process may not open more files', 'raise the limit (ulimit -n)'),
    errno.ENFILE: ('the system may not open more files', 'end other programs'),
    errno.ENOMEM: (
        'the memory is used up',
        'end other programs, raise the limit (ulimit -v), or use smaller batches',
    ),
}
# What NumPy says where a file does not take all of an array; it has no number.
_SHORT_WRITE = re.compile(r'\d+ requested and \d+ written')
# What libraries say when there is not enough memory to load them, or for their work.
_NO_MEMORY = ('failed to map segment', 'error return without exception set')
_ON_A_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class PyseriniRepbertError(Exception):
    """Base of all errors raised on purpose by this package.

    Commands print it as one line and exit with status 2.

    `parameters` names those that would help ('resume', 'on_error=skip'); a command shows them as
    its flags.
    """

    def __init__(self, message: str = '', *, parameters: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.parameters = tuple(parameters)


class InputError(PyseriniRepbertError):
    """A file or a value that the user gave does not have the expected form."""

    @classmethod
    def at(cls, path: str | os.PathLike[str], line: int, message: str) -> InputError:
        """An error about line `line` (counted from 1) of the file `path`."""
        return cls(f'{path}:{line}: {message}')


class UnknownNameError(PyseriniRepbertError):
    """A name is neither in the catalog nor a path."""


class MissingResourceError(PyseriniRepbertError):
    """Something is missing that has to be downloaded, built or installed first."""


class OtherServerError(MissingResourceError):
    """Another server cannot be reached, fails, refuses, or gives an invalid answer.

    Attributes
    ----------
    server : what it is, for clients of a service; only the operators of the service see its address
    """

    server = 'another server'


class DamagedFileError(PyseriniRepbertError):
    """A file is not the one that its checksum or its manifest describes."""


class ExhaustedError(PyseriniRepbertError):
    """The disk, the memory or another limit of the system is used up."""


class SourceConflictError(InputError):
    """A document of a collection belongs to one source, and another source has it, too."""


class NotBetterError(InputError):
    """What a collection learned is not better than its present search."""


class LostCollectionError(PyseriniRepbertError):
    """The folder of an opened collection now holds another collection, an earlier state, or
    none.
    """


class MismatchError(PyseriniRepbertError):
    """Two things that have to fit each other do not, such as an index and an encoder."""


class BusyError(PyseriniRepbertError):
    """Another process is writing the same output."""


class ClusterError(PyseriniRepbertError):
    """A cluster does not answer, or its machines fail again and again."""


class JavaError(PyseriniRepbertError):
    """No usable Java was found, it could not be started, or Lucene failed in it."""


class MissingDependencyError(PyseriniRepbertError):
    """An optional package is needed; the message carries the command that installs it."""

    @classmethod
    def of(
        cls, package: str, purpose: str, install: str | None = None, why: str = ''
    ) -> MissingDependencyError:
        """An error for a package that is missing, or does not work.

        Parameters
        ----------
        package : its name
        purpose : what needs it
        install : the argument for pip, if not `package`
        why : the problem with the installed one
        """
        wrong = ''
        if why:
            wrong = f', and the installed one does not work ({why})'
        return cls(
            f"{purpose} needs the package '{package}'{wrong}: pip install {install or package}"
        )


@contextmanager
def needs(package: str, purpose: str, extra: str | None = None) -> Iterator[None]:
    """A context for imports. If one fails, MissingDependencyError says what to install.

    That is `package`, or the extra of this package. The message tells a package that is installed
    but lacks a name, or does not load, from one that is missing.
    """
    try:
        yield
    except ImportError as error:
        why = ''
        if not isinstance(error, ModuleNotFoundError):
            why = str(error).partition('\n')[0]
        install = extra_to_install(extra) if extra else None
        raise MissingDependencyError.of(package, purpose, install, why) from error


def extra_to_install(extra: str) -> str:
    """What pip is given to install an extra of this package, which no registry has."""
    return f"'.[{extra}]' (in the checkout)"


def exhausted(
    error: BaseException, path: str | os.PathLike[str] | None = None
) -> ExhaustedError | None:
    """The error to raise instead of `error` where a limit of the system is used up.

    None for any other error. `path` is what could not be written, if `error` does not name it.
    """
    if isinstance(error, ExhaustedError):
        return error
    if isinstance(error, PyseriniRepbertError):
        return None
    limit = _limit_of(error)
    if limit not in _LIMITS:
        return None
    what, advice = _LIMITS[limit]
    target = path or getattr(error, 'filename', None)
    if limit in _ON_A_DISK and target is not None:
        what += f': {os.fsdecode(target)} could not be written'
    return ExhaustedError(f'{what}: {advice}')


def _limit_of(error: BaseException) -> int:
    """The number of the system's error that `error` stands for; 0 for none."""
    message = str(error)
    if isinstance(error, MemoryError) or any(words in message for words in _NO_MEMORY):
        return errno.ENOMEM
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    if _SHORT_WRITE.fullmatch(message):
        return errno.ENOSPC
    # FAISS, PyTorch and Java only have words.
    for number in _LIMITS:
        if os.strerror(number) in message:
            return number
    return 0


@contextmanager
def within_limits(path: str | os.PathLike[str]) -> Iterator[None]:
    """A context in which `path` is written: errors about limits of the system name it.

    They become ExhaustedErrors.
    """
    try:
        yield
    except Exception as error:
        limit = exhausted(error, path)
        if limit is None or limit is error:
            raise
        raise limit from error
