"""Archives of the Java classes that a search loads: Java maps one, and reads no jar.

This is Java's class data sharing (https://openjdk.org/jeps/310). Java itself compares an archive
with its own version, its modules and the jar, and does without an archive that does not fit. Java
itself writes no archive here (`-XX:+AutoCreateSharedArchive`, `-XX:AOTCacheOutput`): it refuses to
where a folder is in the class path, and pyjnius puts one there.

There are two archives. A process that ends soon reads the one whose classes are also linked
(https://openjdk.org/jeps/483): a question and a small update take a quarter less processor time in
Java. Java refuses this one where a module is added, as in a process that goes on.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pyserini_repbert.checksums import digest, remembered_digest
from pyserini_repbert.files import cache_folder
from pyserini_repbert.lucene.java_home import Java

logger = logging.getLogger(__name__)

# In a separate process, which lists the classes that two indexes and two searches load. Lucene
# reads an index of one document, or a list of fewer than 128, with other classes than longer ones.
_LIST_CLASSES = """
import sys
from pathlib import Path
from pyserini_repbert.lucene import jvm
from pyserini_repbert.lucene.indexer import LuceneWriter
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.updating import LuceneUpdate
words, documents, names = Path(sys.argv[1], 'words'), Path(sys.argv[1], 'documents'), sys.argv[2]
with jvm.started_ahead(few_queries=True, more_options=[f'-XX:DumpLoadedClassList={names}']):
    with LuceneWriter(words) as writer:
        writer.add(['{"id": "d1", "contents": "one passage of some words"}'])
    for step in range(2):
        with LuceneUpdate(documents, 'en') as update:
            update.delete(['d0', 'd1'])
            texts = ['one passage of some words' + ' word' * (n % 9) for n in range(1_000)]
            update.add([(f'd{step}-{n}', text) for n, text in enumerate(texts)])
            update.finish(most_dead=0.2)
    for folder in (words, documents):
        searcher = LuceneSparseSearcher(folder)
        searcher.search('some words', 10)
        searcher.close()
    jvm.java_class('java.lang.System').exit(0)
"""
# The options of `make_archives` are part of an archive's name: who changes them, or the list above,
# changes this number.
_EDITION = 7
_LINKED = '-XX:+AOTClassLinking'
# The first Java that links the classes of an archive.
_LINKING_JAVA = 24
# By default, Java maps the archive at a random address, and corrects all pointers in it.
_AT_ITS_ADDRESS = ('-XX:+UnlockDiagnosticVMOptions', '-XX:ArchiveRelocationMode=0')
# Java reads the whole archive and compares checksums, since a damaged one would end the process.
_VERIFIED = '-XX:+VerifySharedSpaces'
# Java says on standard output that an archive does not fit.
_SILENT = '-Xlog:disable'
# Of each process that makes the archives.
_MOST_SECONDS = 120
# In a process that outlives the search which begins it, and leaves the processor to others.
_MAKE = """
import os
from pyserini_repbert.lucene import jvm
if hasattr(os, 'nice'):
    os.nice(19)
jvm.prepare_classes()
"""
# A process that was to make an archive, and did not in so many seconds, is replaced by another.
_GIVEN_UP = 24 * 3600


def archive_path(java: Java, jar: Path, *, ends_soon: bool) -> Path:
    """The archive for a Java and a jar, in the cache folder.

    Its name depends on the present state of both.

    Parameters
    ----------
    java, jar : that the archive is for
    ends_soon : whether the process that reads it ends soon
    """
    status = jar.stat()
    of_jar = (str(jar), status.st_size, status.st_mtime_ns)
    identity = (_EDITION, str(java.home), java.version, *of_jar)
    state = hashlib.sha256(repr(identity).encode()).hexdigest()
    is_linked = ends_soon and java.major >= _LINKING_JAVA
    name = 'linked' if is_linked else 'classes'
    return cache_folder() / 'java' / f'{name}-{state[:16]}.jsa'


def archive_options(java: Java, jar: Path, *, ends_soon: bool) -> list[str]:
    """Options of Java that read the archive of `archive_path`; none if it was not made."""
    path = archive_path(java, jar, ends_soon=ends_soon)
    # False also where the cache may not be read.
    if not os.path.isfile(path):
        return []
    options = [f'-XX:SharedArchiveFile={path}', '-Xshare:auto', *_AT_ITS_ADDRESS, _SILENT]
    if not _is_as_made(path):
        options.append(_VERIFIED)
    return options


def _is_as_made(path: Path) -> bool:
    """Whether an archive has the checksum that was written beside it."""
    try:
        return _checksum_path(path).read_text(encoding='ascii') == remembered_digest(path)
    except (OSError, ValueError):
        return False


def _checksum_path(archive: Path) -> Path:
    return archive.with_suffix('.sha256')


def make_archives(java: Java, jar: Path, options: Sequence[str]) -> Path | None:
    """Make the archives that are missing; takes some seven seconds of processor time.

    Parameters
    ----------
    java, jar : that the archives are for
    options : of Java, as it will be started

    Returns the path of the one that a search reads; None if Java cannot make them, or the cache
    folder is not writable.
    """
    plain = archive_path(java, jar, ends_soon=False)
    linked = archive_path(java, jar, ends_soon=True)
    try:
        if plain.is_file() and linked.is_file():
            return linked
        linked.parent.mkdir(parents=True, exist_ok=True)
        # Java writes a new file, which other processes see when it is whole.
        with tempfile.TemporaryDirectory(dir=linked.parent) as made:
            folder = Path(made)
            names = folder / 'names'
            listed = [sys.executable, '-c', _LIST_CLASSES, str(folder / 'index'), str(names)]
            _run(listed, {**os.environ, 'JAVA_HOME': str(java.home)})
            dump = [str(java.home / 'bin' / 'java'), '-Xshare:dump', _SILENT, *options]
            dump += [f'-XX:SharedClassListFile={names}', '-cp', str(jar)]
            _dump(dump, plain, folder)
            if linked != plain:
                _dump([*dump, _LINKED], linked, folder)
    except (OSError, subprocess.SubprocessError) as error:
        logger.info('no archive of classes was made: %s', getattr(error, 'stderr', None) or error)
        return None
    return linked


def _dump(words: Sequence[str], path: Path, folder: Path) -> None:
    """Make an archive by a command of Java, in a folder that may have half of it."""
    archive = folder / path.name
    _run([*words, f'-XX:SharedArchiveFile={archive}'], dict(os.environ))
    _checksum_path(path).write_text(digest(archive), encoding='ascii')
    archive.replace(path)


def make_in_background(java: Java, jar: Path) -> None:
    """Begin to make an archive that does not exist, in a process that this one does not wait for.

    A file beside the archive says that a process was begun: of several searches at a time, one
    begins it, and none does where the cache is not writable, or where Java could not make the
    archive today.
    """
    path = archive_path(java, jar, ends_soon=True)
    begun = path.with_suffix('.begun')
    try:
        if os.path.isfile(path):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            if time.time() - begun.stat().st_mtime > _GIVEN_UP:
                begun.unlink()
        begun.touch(exist_ok=False)
        subprocess.Popen(
            [sys.executable, '-c', _MAKE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        logger.info('no process makes the archive of classes %s', path)


def _run(words: Sequence[str], environment: dict[str, str]) -> None:
    subprocess.run(
        words,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=_MOST_SECONDS,
    )
