"""Starting the Java virtual machine inside this process before Pyserini does, and calling into it.

Pyserini uses a virtual machine that is already running, so Java, jar and options are chosen here,
once.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyserini_repbert.catalog import RESOURCES
from pyserini_repbert.data.values import MAX_COUNT
from pyserini_repbert.errors import (
    ExhaustedError,
    JavaError,
    MismatchError,
    PyseriniRepbertError,
    exhausted,
    needs,
)
from pyserini_repbert.lucene.class_archive import archive_options, make_archives, make_in_background
from pyserini_repbert.lucene.java_home import (
    INSTALL_JAVA,
    VECTOR_MODULE,
    Java,
    anserini_jar,
    find_java,
)
from pyserini_repbert.processes import is_to_end_soon

logger = logging.getLogger(__name__)

_LOCALE = 'LC_ALL'
HEAP_VARIABLE = 'PYSERINI_REPBERT_JAVA_HEAP'
# The collector of one thread. Java's default on a server takes up to six times the memory, and more
# where the machine has more; it is faster where several threads write an index.
_ONE_THREAD = '-XX:+UseSerialGC'
_SEVERAL_THREADS = '-XX:+UseG1GC'
# Java would change this process's folder for a moment, to tidy what `jps` reads: a thread that then
# opens a file by its relative path does not find it.
_NO_PERF_DATA = '-XX:-UsePerfData'
# By default, Java begins with a 64th of the machine's memory.
_FIRST_HEAP = '-Xms64m'
# Lucene 9 reads files into buffers if it may not unmap them: to prepare that takes 20 ms. Lucene 10
# has no such property.
_UNMAPPED = '-Dorg.apache.lucene.store.MMapDirectory.enableUnmapHack=false'
# A process that ends soon takes 25 MB less with such a heap. The second compiler would take longer
# than it saves: to index 300 to 20,000 documents of 150 words takes a quarter to a half less
# processor time without it. The first one compiles what runs five times as often as usual: that
# takes 4% less for a question, and 8% less to index 30,000 documents.
_SHORT_LIFE = ('-Xms16m', '-XX:TieredStopAtLevel=1', '-XX:CompileThresholdScaling=5', _UNMAPPED)
# Log4j writes warnings to stderr. To read its configuration takes half of the time in which Java
# starts.
_LOGGING = 'log4j2.loggerContextFactory'
_LUCENE_LOGGING = RESOURCES / 'java_logging.properties'
_PLAIN_LOGGING = (
    f'-D{_LOGGING}=org.apache.logging.log4j.simple.SimpleLoggerContextFactory',
    '-Dorg.apache.logging.log4j.simplelog.level=WARN',
    f'-Djava.util.logging.config.file={_LUCENE_LOGGING}',
)
# The user's options of Java, which ours could contradict.
_OPTION_VARIABLES = ('JAVA_TOOL_OPTIONS', '_JAVA_OPTIONS')
# To load it takes longest.
_SEARCHER = 'io.anserini.search.SimpleSearcher'
# Lucene's messages about an index that a newer or a much older Lucene wrote.
_OTHER_LUCENE = (
    'indexCreatedVersionMajor is in the future',
    'IndexFormatTooNewException',
    'IndexFormatTooOldException',
    'org.apache.lucene.codecs.Codec with name',
)
_starting = threading.Lock()
_calling = threading.RLock()
_thread = threading.local()
_ahead: threading.Thread | None = None
# Of the virtual machine that this process started; None before, and where a user sets options.
_has_archive: bool | None = None
# Whether this process started it with `_PLAIN_LOGGING`.
_logs_plainly = False


def jvm_runs() -> bool:
    """Whether pyjnius has started a virtual machine in this process."""
    config = sys.modules.get('jnius_config')
    # While another thread imports it, the module is there without its names.
    return bool(getattr(config, 'vm_running', False))


def start_jvm(extra_options: Sequence[str] = ()) -> None:
    """Start the virtual machine with Anserini's jar, unless one is running.

    Waits for the thread of `started_ahead`. `-Xrs` leaves Ctrl-C to Python, so that an interrupted
    command still removes its unfinished files. The maximum heap is Java's default unless the
    environment variable PYSERINI_REPBERT_JAVA_HEAP gives a size ('4g'). If the user sets no Java
    options, Java takes little memory, and reads the archive of `prepare_classes`, if there is one.
    Raises JavaError if no Java starts.
    """
    _start(_ONE_THREAD, extra_options)


def start_for_several_threads() -> None:
    """Start the virtual machine for a process in which several threads write an index.

    As `start_jvm`, except for its garbage: several threads collect it.
    """
    _start(_SEVERAL_THREADS, _PLAIN_LOGGING)


def _start(collector: str, extra_options: Sequence[str], *, ends_soon: bool = False) -> None:
    """Start the virtual machine.

    Parameters
    ----------
    collector : of garbage; the user's own options of Java replace it
    extra_options : follow the others
    ends_soon : whether this process answers few questions; the user's options replace what this
        means for Java
    """
    global _has_archive, _logs_plainly
    if _ahead is not None and _ahead is not threading.current_thread():
        _ahead.join()
    with _starting:
        if jvm_runs():
            return
        java = find_java()
        jar = anserini_jar()
        with needs('pyjnius', "Lucene's indexes"):
            import jnius_config
        if _has_users_options() or jnius_config.get_options():
            options = _options(java, jar)
        else:
            ends_soon = ends_soon or is_to_end_soon()
            # Java refuses linked classes where the heap is too large for its short pointers.
            is_default_heap = not os.environ.get(HEAP_VARIABLE)
            archive = archive_options(java, jar, ends_soon=ends_soon and is_default_heap)
            _has_archive = bool(archive)
            options = _options(java, jar, ends_soon=ends_soon)
            options += [*archive, *_memory_options(collector)]
            if ends_soon:
                options += _SHORT_LIFE
        options += extra_options
        os.environ['JAVA_HOME'] = str(java.home)
        jnius_config.add_classpath(str(jar))
        jnius_config.add_options(*options)
        logger.info('starting Java %s in %s with %s', java.version, java.home, jar.name)
        _check_memory(java, options)
        messages: list[str] = []
        try:
            with _captured_stderr(messages), _locale_of_paths():
                import jnius  # noqa: F401
        except Exception as error:
            reason = ' '.join([*messages, str(error)]).strip()
            raise JavaError(
                f'Java {java.version} in {java.home} did not start ({reason}): {INSTALL_JAVA}'
            ) from error
        _logs_plainly = set(_PLAIN_LOGGING) <= set(options)
        for line in messages:
            # That is Java's notice about a module that we asked for.
            if 'incubator modules' not in line:
                print(line, file=sys.stderr)


def _check_memory(java: Java, options: Sequence[str]) -> None:
    """Raises ExhaustedError if the memory of this process is limited, and too small for Java.

    `ulimit -v` limits it. A virtual machine that cannot get its memory ends the process that starts
    it, so another process tries it first.
    """
    if sys.platform != 'linux':
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    n_pages, *_ = Path('/proc/self/statm').read_text(encoding='ascii').split()
    taken = int(n_pages) * resource.getpagesize()
    left = max(0, limit - taken)
    trial = subprocess.run(
        [java.home / 'bin' / 'java', *options, '-version'],
        capture_output=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (left, left)),
    )
    if trial.returncode:
        raise ExhaustedError(
            f'the memory that this process may take is too small for Java ({left // 10**6} MB are '
            f'left): raise the limit (ulimit -v), or set {HEAP_VARIABLE} to a size such as 512m'
        )


@contextmanager
def started_ahead(few_queries: bool = False, more_options: Sequence[str] = ()) -> Iterator[None]:
    """A context in which a thread starts the virtual machine and loads Lucene's classes.

    That takes as long as importing PyTorch does. A caller that needs Java waits for the thread, and
    gets the error if the start failed. Leaving the context also waits for the thread. With
    `few_queries`, for a process that ends soon, Java gets the smallest initial heap and the
    compiler that takes least time. The user's own options of Java replace these. If there is no
    archive of classes, one is made in the background, so the next such process starts Java sooner.
    `more_options` follow them.
    """

    def load() -> None:
        with suppress(Exception):
            if few_queries and not _has_users_options():
                _start(_ONE_THREAD, (*_PLAIN_LOGGING, *more_options), ends_soon=True)
            quiet_java()
            # Python continues while a method of Java loads the classes of a search. While pyjnius
            # finds a class, it waits.
            java_class('java.lang.Class').forName(_SEARCHER)
            java_class(_SEARCHER)
        _detach()

    global _ahead
    thread = threading.Thread(target=load, name='java')
    _ahead = thread
    thread.start()
    try:
        yield
    finally:
        thread.join()
        if few_queries and _has_archive is False and not more_options:
            make_in_background(find_java(), anserini_jar())


def _has_users_options() -> bool:
    return any(os.environ.get(name) for name in _OPTION_VARIABLES)


def prepare_classes() -> Path | None:
    """Make the archives of classes with which Java starts, unless they are there.

    Returns the path of the one that a search reads; None if they cannot be made. Raises JavaError
    if there is no Java.
    """
    java = find_java()
    jar = anserini_jar()
    # With this collector, Java also archives objects; others can read them.
    memory = _memory_options(_SEVERAL_THREADS)
    options = [*_options(java, jar, ends_soon=True), *memory, *_SHORT_LIFE, *_PLAIN_LOGGING]
    return make_archives(java, jar, options)


def _memory_options(collector: str) -> list[str]:
    """A collector, and how the heap begins; a greatest heap of the user's may be smaller."""
    if os.environ.get(HEAP_VARIABLE):
        return [collector]
    return [collector, _FIRST_HEAP]


def _options(java: Java, jar: Path, *, ends_soon: bool = False) -> list[str]:
    """The options that the virtual machine gets; one that ends soon opens no further module."""
    options = ['-Xrs', '--enable-native-access=ALL-UNNAMED', '-Djava.awt.headless=true']
    options.append(_NO_PERF_DATA)
    if java.major >= 24:
        # Lucene unmaps its files with it; this silences four lines of warnings.
        options.append('--sun-misc-unsafe-memory-access=allow')
    if not ends_soon and java.has_module(VECTOR_MODULE):
        options.append(f'--add-modules={VECTOR_MODULE}')
    heap = os.environ.get(HEAP_VARIABLE)
    if heap:
        if not re.fullmatch(r'\d+[kmgKMG]?', heap):
            raise JavaError(f"{HEAP_VARIABLE} is '{heap}': expected a size such as 512m or 4g")
        options.append(f'-Xmx{heap}')
    # Pyserini 2.x has this file; with it, Lucene and SLF4J only warn.
    log_settings = jar.with_name('logging.properties')
    if log_settings.is_file():
        options += [
            f'-Djava.util.logging.config.file={log_settings}',
            '-Dslf4j.internal.verbosity=WARN',
        ]
    return options


@contextmanager
def _locale_of_paths() -> Iterator[None]:
    """A context in which Java starts so that it names files as Python does.

    Java reads the locale once. Under LC_ALL=C, it could open no folder such as Größe.
    """
    before = os.environ.get(_LOCALE)
    reads_utf8 = sys.getfilesystemencoding() == 'utf-8'
    if before not in ('C', 'POSIX') or not reads_utf8:
        yield
        return
    os.environ[_LOCALE] = 'C.UTF-8'
    try:
        yield
    finally:
        os.environ[_LOCALE] = before


@contextmanager
def _captured_stderr(lines: list[str]) -> Iterator[None]:
    """Collect in `lines` everything that is written to file descriptor 2, even by native code.

    The caller decides what to show.
    """
    sys.stderr.flush()
    with tempfile.TemporaryFile() as captured:
        saved = os.dup(2)
        os.dup2(captured.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            captured.seek(0)
            lines.extend(captured.read().decode('utf-8', 'replace').splitlines())


def java_class(name: str) -> Any:
    """The Java class `name`; starts the virtual machine.

    Raises JavaError when the class is not in the jar.
    """
    start_jvm()
    import jnius

    try:
        return jnius.autoclass(name)
    except jnius.JavaException as error:
        raise JavaError(
            f"Java has no class {name}: Anserini's jar is not the one that this version expects, "
            'or another program part started Java without it: call start_jvm() first'
        ) from error


@contextmanager
def java_calls() -> Iterator[None]:
    """A context for calls into Java: one thread at a time.

    A thread is detached from Java afterwards, except for the main thread. pyjnius keeps a call's
    receiver and arguments in objects that all threads share, and lets other threads run meanwhile;
    a thread that ends while attached to Java leaks its Java thread. Inside one call, Java itself
    may use many threads.
    """
    with _calling:
        depth = getattr(_thread, 'depth', 0)
        _thread.depth = depth + 1
        try:
            yield
        finally:
            _thread.depth = depth
            if depth == 0 and threading.current_thread() is not threading.main_thread():
                _detach()


def _detach() -> None:
    """Detach this thread from Java; its next call attaches it again."""
    if jvm_runs():
        import jnius

        jnius.detach()


def java_reason(error: Exception) -> str:
    """The first line of a Java exception, without pyjnius's preface and the stack."""
    return str(error).partition('\n')[0].removeprefix('JVM exception occurred: ')


def failed_indexing(reason: str, folder: Path) -> PyseriniRepbertError:
    """The error of a Lucene index below a folder that cannot be written, for a reason of Java."""
    limit = exhausted(RuntimeError(reason), folder)
    return limit or JavaError(
        f'Lucene could not index ({reason}): free memory or disk, and start again'
    )


def quiet_java() -> None:
    """Show only warnings and errors of Anserini, and only errors of Lucene.

    Starts the virtual machine, unless one is running.
    """
    start_jvm(_PLAIN_LOGGING)
    # To ask Java about a class takes milliseconds.
    if _logs_plainly:
        return
    if java_class('java.lang.System').getProperty(_LOGGING) is None:
        # Other code has started Java.
        level = java_class('org.apache.logging.log4j.Level')
        configurator = java_class('org.apache.logging.log4j.core.config.Configurator')
        configurator.setAllLevels('io.anserini', level.WARN)
    severe = java_class('java.util.logging.Level').SEVERE
    logger_class = java_class('java.util.logging.Logger')
    logger_class.getLogger('org.apache.lucene').setLevel(severe)


def lift_clause_limit() -> None:
    """Let a query of Lucene have any number of clauses; by default, Lucene refuses more than 1,024.

    Each different word of a question is a clause.
    """
    java_class('org.apache.lucene.search.IndexSearcher').setMaxClauseCount(MAX_COUNT)


def lucene_major() -> int:
    """The major version of the Lucene in Anserini's jar: 9 with Pyserini 1.6, 10 with 2.x."""
    with java_calls():
        return int(java_class('org.apache.lucene.util.Version').LATEST.major)


def calling(method: Any, *arguments: Any) -> Any:
    """The result of a Java method or constructor.

    Its exceptions are raised as JavaError or MismatchError of one line.
    """
    import jnius

    try:
        return method(*arguments)
    except jnius.JavaException as error:
        raise _translated(error) from error


def _translated(error: Any) -> PyseriniRepbertError:
    reason = java_reason(error)
    if any(phrase in reason for phrase in _OTHER_LUCENE):
        return MismatchError(
            f'the index was not built by the Lucene {lucene_major()} of the installed '
            f'Pyserini ({reason}): build it again, or search it with the Pyserini that it was '
            'built with (1.6 has Lucene 9, 2.x has 10)'
        )
    if 'without position data' in reason:
        return MismatchError(
            f'the index has no positions, which SDM needs ({reason}): build it with `index lucene`'
        )
    if error.classname == 'java.lang.OutOfMemoryError':
        return JavaError(
            f'Java ran out of memory ({reason}): set PYSERINI_REPBERT_JAVA_HEAP, for example to 8g'
        )
    return JavaError(f'Lucene failed ({reason}): check the index with `doctor` or build it again')
