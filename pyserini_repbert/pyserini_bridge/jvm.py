"""Starting the Java virtual machine inside this process before Pyserini does, and calling into it.

Pyserini takes a machine that already runs as it is, so that the choice of Java, jar and options is made here, once.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyserini_repbert.errors import JavaError, MissingDependencyError
from pyserini_repbert.pyserini_bridge.java_home import INSTALL_JAVA, VECTOR_MODULE, Java, anserini_jar, find_java

logger = logging.getLogger(__name__)

HEAP_VARIABLE = 'PYSERINI_REPBERT_JAVA_HEAP'
_FEW_QUERIES = ('-XX:+UseSerialGC', '-Xms16m')  # 25 MB less than with the heap that Java begins with on a server
_OPTION_VARIABLES = ('JAVA_TOOL_OPTIONS', '_JAVA_OPTIONS', HEAP_VARIABLE)  # collectors and sizes must not contradict
_starting = threading.Lock()
_calling = threading.RLock()
_thread = threading.local()
_ahead: threading.Thread | None = None


def jvm_runs() -> bool:
    """Whether pyjnius has started a virtual machine in this process."""
    config = sys.modules.get('jnius_config')
    return bool(config is not None and config.vm_running)


def start_jvm(extra_options: Sequence[str] = ()) -> None:
    """Start the virtual machine with Anserini's jar; do nothing when one runs already. Waits for `started_ahead`.

    `-Xrs` leaves Ctrl-C to Python, so that an interrupted command still removes its unfinished files. The heap is
    Java's own choice unless the environment variable PYSERINI_REPBERT_JAVA_HEAP names a size ('4g').

    Parameters
    ----------
    extra_options : further options for the machine ('-Dname=value')

    Raises
    ------
    JavaError
        when there is no usable Java, or it does not start
    """
    if _ahead is not None and _ahead is not threading.current_thread():
        _ahead.join()
    with _starting:
        if jvm_runs():
            return
        java, jar = find_java(), anserini_jar()
        try:
            import jnius_config
        except ImportError as error:
            raise MissingDependencyError.of('pyjnius', "Lucene's indexes") from error
        os.environ['JAVA_HOME'] = str(java.home)
        jnius_config.add_classpath(str(jar))
        jnius_config.add_options(*_options(java), *_log_options(jar), *extra_options)
        logger.info('starting Java %s in %s with %s', java.version, java.home, jar.name)
        said: list[str] = []
        try:
            with _captured_stderr(said):
                import jnius  # noqa: F401
        except Exception as error:
            reason = ' '.join([*said, str(error)]).strip()
            raise JavaError(f'Java {java.version} in {java.home} did not start ({reason}): {INSTALL_JAVA}') from error
        for line in said:
            if 'incubator modules' not in line:  # the machine's notice about a module that we asked for
                print(line, file=sys.stderr)


@contextmanager
def started_ahead(few_queries: bool = False) -> Iterator[None]:
    """Start the virtual machine in a thread meanwhile, and load the classes of every search with Lucene.

    It takes as long as importing PyTorch does. Whoever needs Java waits for the thread, and is told of what went wrong;
    at the latest it is waited for at the end.

    Parameters
    ----------
    few_queries : for a process that ends soon: the heap begins small, with the collector that needs least memory,
        unless the environment has options or a heap size of the user's
    """
    chosen = any(map(os.environ.get, _OPTION_VARIABLES))

    def load() -> None:
        with suppress(Exception):
            if few_queries and not chosen:
                start_jvm(_FEW_QUERIES)
            quiet_java()
            java_class('io.anserini.search.SimpleSearcher')
        _detach()

    global _ahead
    _ahead = thread = threading.Thread(target=load, name='java')
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _options(java: Java) -> list[str]:
    options = ['-Xrs', '--enable-native-access=ALL-UNNAMED', '-Djava.awt.headless=true']
    if java.major >= 24:  # Lucene unmaps its files with it; silences four lines of warnings
        options.append('--sun-misc-unsafe-memory-access=allow')
    if java.has_module(VECTOR_MODULE):
        options.append(f'--add-modules={VECTOR_MODULE}')
    heap = os.environ.get(HEAP_VARIABLE)
    if heap:
        if not re.fullmatch(r'\d+[kmgKMG]?', heap):
            raise JavaError(f"{HEAP_VARIABLE} is '{heap}': expected a size such as 512m or 4g")
        options.append(f'-Xmx{heap}')
    return options


def _log_options(jar: Path) -> list[str]:
    """What Pyserini 2.x gives a machine that it starts itself, so that Lucene and SLF4J only warn; 1.6 gives none."""
    settings = jar.with_name('logging.properties')
    if not settings.is_file():
        return []
    return [f'-Djava.util.logging.config.file={settings}', '-Dslf4j.internal.verbosity=WARN']


@contextmanager
def _captured_stderr(lines: list[str]) -> Iterator[None]:
    """Collect what native code writes to file descriptor 2; the caller decides what is worth showing."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as said:
        own = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(own, 2)
            os.close(own)
            said.seek(0)
            lines.extend(said.read().decode('utf-8', 'replace').splitlines())


def java_class(name: str) -> Any:
    """The Java class `name`, with the virtual machine started. Raises JavaError when it is not in the jar."""
    start_jvm()
    import jnius

    try:
        return jnius.autoclass(name)
    except jnius.JavaException as error:
        raise JavaError(
            f"Java has no class {name}: Anserini's jar is not the one that this version expects, or another program "
            'part started Java without it: call start_jvm() first'
        ) from error


@contextmanager
def java_calls() -> Iterator[None]:
    """Around calls into Java that several threads may make: one thread at a time, detached from Java afterwards.

    pyjnius keeps the receiver and the arguments of a call in objects that all threads share, while it lets other
    threads run; and a thread that ends attached to Java leaves its Java half behind. What Java itself does inside one
    call may use many threads.
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
    """Let go of Java in this thread, which comes back to it with its next call."""
    if jvm_runs():
        import jnius

        jnius.detach()


def java_reason(error: Exception) -> str:
    """The first line of a Java exception, without pyjnius's preface and the stack."""
    return str(error).partition('\n')[0].removeprefix('JVM exception occurred: ')


def quiet_java() -> None:
    """Keep Anserini's log lines below warnings, and Lucene's below errors, off the terminal."""
    level = java_class('org.apache.logging.log4j.Level')
    java_class('org.apache.logging.log4j.core.config.Configurator').setAllLevels('io.anserini', level.WARN)
    severe = java_class('java.util.logging.Level').SEVERE
    java_class('java.util.logging.Logger').getLogger('org.apache.lucene').setLevel(severe)
