"""Every error that a user can meet. A message says what was given, what was expected and what to do, in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike


class PyseriniRepbertError(Exception):
    """Base of all errors raised on purpose by this package; commands print it as one line and exit with status 2.

    Parameters
    ----------
    message : what was given, what was expected, what to do
    parameters : names of the parameters that would help ('resume', 'overwrite'); a command shows them as its flags
    """

    def __init__(self, message: str = '', *, parameters: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.parameters = tuple(parameters)


class InputError(PyseriniRepbertError):
    """A file or a value that the user gave does not have the expected form."""

    @classmethod
    def at(cls, path: str | PathLike[str], line: int, message: str) -> InputError:
        """An error about line `line` (counted from 1) of the file `path`."""
        return cls(f'{path}:{line}: {message}')


class UnknownNameError(PyseriniRepbertError):
    """A name is neither in the catalog nor a path."""


class MissingResourceError(PyseriniRepbertError):
    """Something that has to be downloaded, built or installed first is not here."""


class DamagedFileError(PyseriniRepbertError):
    """A file is not the one that its checksum or its manifest describes."""


class DiskFullError(PyseriniRepbertError):
    """There is no space left where something has to be written."""


class MismatchError(PyseriniRepbertError):
    """Two things that have to fit each other do not: an index and an encoder, say."""


class BusyError(PyseriniRepbertError):
    """Another process is writing the same output."""


class ClusterError(PyseriniRepbertError):
    """A cluster does not answer, or its machines fail again and again."""


class JavaError(PyseriniRepbertError):
    """No usable Java was found, the virtual machine could not be started, or Lucene failed in it."""


class MissingDependencyError(PyseriniRepbertError):
    """An optional package is needed; the message carries the command that installs it."""

    @classmethod
    def of(cls, package: str, purpose: str, install: str | None = None, why: str = '') -> MissingDependencyError:
        """An error for `package`, needed for `purpose`.

        `install` is what pip has to be given, if not `package`; `why` says what is wrong with the installed one.
        """
        wrong = f', and the one that is installed does not do ({why})' if why else ''
        return cls(f"{purpose} needs the package '{package}'{wrong}: pip install {install or package}")


@contextmanager
def needs(package: str, purpose: str, extra: str | None = None) -> Iterator[None]:
    """A context for imports: where one fails, MissingDependencyError says to install `package`, or our `extra`.

    The message tells a package that is installed, but lacks a name or does not load, from one that is missing.
    """
    try:
        yield
    except ImportError as error:
        install = f"'pyserini-repbert[{extra}]'" if extra else None
        why = '' if isinstance(error, ModuleNotFoundError) else (str(error).splitlines() or [''])[0]
        raise MissingDependencyError.of(package, purpose, install, why) from error
