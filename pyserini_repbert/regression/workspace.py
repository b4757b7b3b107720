"""Runs commands, makes builds once, and remembers results by a hash of all that they depend on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.files import CACHE_ERRORS, atomic_file
from pyserini_repbert.regression import resources
from pyserini_repbert.regression.placeholders import BUILD_FOLDERS, fill
from pyserini_repbert.regression.schema import Build, Condition, Regression, Resource

LAST_LINES = 5  # of a failed command's output, in errors

# Commands that refuse to replace a file, and their options that name one.
_WRITERS = {f'pyserini_repbert.{name}' for name in ('search', 'fusion', 'rerank', 'evaluate')}
_OUTPUTS = {'--output', '--csv', '--plot', '--per-query'}
# A build's path -> its lock: conditions, also of other files, wait until it is made.
_locks: dict[str, threading.Lock] = {}


class CommandFailedError(PyseriniRepbertError):
    """A command of a condition, or of a build that it needs, ended with an error."""


class Workspace:
    """Where a regression's commands run: a separate folder, named after it, in the work folder.

    `data` is the user's folder of collections and run files; `version` the hash of code and
    packages (`environment.cache_version`): results of another one are not used.

    Attributes
    ----------
    paths : name in braces -> folder, location of a resource, or path of a build
    """

    def __init__(self, regression: Regression, folder: Path, data: str, version: str) -> None:
        from pyserini_repbert.offline import downloads_folder

        self.regression = regression
        self.folder = folder / regression.name
        self._version = version
        self._failed: dict[str, str] = {}
        pyserini = os.environ.get('PYSERINI_CACHE') or os.path.expanduser('~/.cache/pyserini')
        self.paths = {
            'data': data,
            'downloads': str(downloads_folder()),
            'pyserini': pyserini,
            'here': str(Path(regression.path).parent),
            'out': str(self.folder),
            'shared': str(folder / 'shared'),
        }
        for name, resource in regression.resources.items():
            self.paths[name] = resources.location(resource, self.paths)
        for name, build in regression.builds.items():
            self.paths[name] = fill(build.path, self.paths)

    def needed(self, needs: Sequence[str]) -> list[Resource]:
        """All resources that these needs take, also through builds, in order."""
        resource_by_name: dict[str, Resource] = {}
        builds_seen = set()
        pending = list(reversed(needs))
        while pending:
            name = pending.pop()
            build = self.regression.builds.get(name)
            if build is None:
                resource_by_name[name] = self.regression.resources[name]
            elif name not in builds_seen:
                builds_seen.add(name)
                pending += reversed(build.needs)
        return list(resource_by_name.values())

    def builds(self, needs: Sequence[str]) -> list[Build]:
        """All builds that these needs take, each after those that it needs."""
        needed = set(needs)
        builds = []
        # A file declares a build after those that it needs.
        for build in reversed(list(self.regression.builds.values())):
            if build.name in needed:
                needed.update(build.needs)
                builds.append(build)
        return builds[::-1]

    def commands(self, condition: Condition) -> list[str]:
        """The commands of a condition, after the commands of the builds that it needs."""
        commands: list[str] = []
        for build in self.builds(condition.needs):
            commands += build.commands
        return [*commands, *condition.commands]

    def key(self, commands: Sequence[str], needs: Sequence[str]) -> str:
        """The hash of commands, the version, and all builds and resources that they need."""
        key_by_name: dict[str, str] = {}
        for build in self.builds(needs):
            key_by_name[build.name] = self._hash(build.commands, build.needs, key_by_name)
        return self._hash(commands, needs, key_by_name)

    def _hash(
        self, commands: Sequence[str], needs: Sequence[str], key_by_name: Mapping[str, str]
    ) -> str:
        """`key`, where `key_by_name` has the keys of all builds among the needs."""
        parts = [self._version, *commands]
        for name in needs:
            if name in key_by_name:
                parts.append(key_by_name[name])
            else:
                parts.append(resources.fingerprint(self.regression.resources[name], self.paths))
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def build(self, build: Build) -> None:
        """Make a build, unless it is there with the same hash.

        The builds that it needs have to be there. Raises CommandFailedError, also if the build has
        failed before, and InputError if something is in its place that no build made.
        """
        target = Path(self.paths[build.name])
        self._check_place(target)
        with _locks.setdefault(str(target), threading.Lock()):
            if build.name in self._failed:
                raise CommandFailedError(self._failed[build.name])
            key = self.key(build.commands, build.needs)
            note = target.parent / '.builds' / f'{build.name}.json'
            target.parent.mkdir(parents=True, exist_ok=True)
            if read_note(note) == {'key': key} and target.exists():
                return
            if os.path.lexists(target) and not note.exists():
                raise InputError(
                    f"{target} is in the place of build '{build.name}', which did not make it: "
                    'move it, or name another folder for results',
                    parameters=('work',),
                )
            # What an interrupted build leaves is the build's own.
            write_note(note, {})
            _remove(target)
            try:
                self._run_build(build, target)
            except CommandFailedError as error:
                self._failed[build.name] = str(error)
                raise
            write_note(note, {'key': key})

    def _check_place(self, target: Path) -> None:
        """Raise InputError if a link leads out of the folders in which builds are made."""
        folders = [Path(self.paths[name]).resolve() for name in BUILD_FOLDERS]
        parent = target.parent.resolve()
        if not any(parent.is_relative_to(folder) for folder in folders):
            raise InputError(f'{target} leads to {parent}, out of {self.folder}: remove the link')

    def _run_build(self, build: Build, target: Path) -> None:
        for command in build.commands:
            self.run(command)
        if not target.exists():
            raise CommandFailedError(
                f"'{build.commands[-1]}' ended well but did not write {target}"
            )

    def run(self, command: str) -> str:
        """Run a command; returns its output.

        Raises CommandFailedError with the last lines of its errors.
        """
        words = self.run_words(command)
        package_root = str(Path(__file__).resolve().parents[2])
        folders = [package_root, os.environ.get('PYTHONPATH')]
        python_path = os.pathsep.join(folder for folder in folders if folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        process = subprocess.run(
            [sys.executable, *words[1:]],
            text=True,
            capture_output=True,
            env={**os.environ, 'PYTHONPATH': python_path},
        )
        if process.returncode:
            output = process.stderr.strip() or process.stdout.strip()
            last_lines = ' | '.join(output.splitlines()[-LAST_LINES:])
            raise CommandFailedError(
                f"'{shlex.join(words)}' ended with status {process.returncode}: {last_lines}"
            )
        return process.stdout

    def run_words(self, command: str) -> list[str]:
        """A command's words, ready to run: a file left by an earlier try is replaced."""
        words = self.words(command)
        writes = not _WRITERS.isdisjoint(words) and not _OUTPUTS.isdisjoint(words)
        goes_on = '--resume' in words or '--overwrite' in words
        if writes and not goes_on:
            words.append('--overwrite')
        return words

    def words(self, command: str) -> list[str]:
        """A command's words, with every name in braces replaced."""
        return [fill(word, self.paths) for word in shlex.split(command)]


def _remove(target: Path) -> None:
    """Remove what an earlier try left; of a link, only the link."""
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)


def read_note(note: Path) -> Any:
    """The content of a JSON file; None if it is absent, unreadable or not JSON."""
    try:
        return json.loads(note.read_text(encoding='utf-8'))
    except (OSError, ValueError):
        return None


def write_note(note: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file if its folder can be written.

    If it cannot, the result is computed again next time.
    """
    with contextlib.suppress(*CACHE_ERRORS), atomic_file(note) as stream:
        json.dump(value, stream)
