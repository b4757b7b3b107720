"""A process that works for this one ends with it, and never blocks it."""

import os
import signal
import subprocess
import sys

import pytest
from folders import HANGS

from pyserini_repbert.errors import InputError
from pyserini_repbert.serve import child
from pyserini_repbert.serve.child import ChildProcess, LostProcessError, OverdueError

HELD = """
import sys, time
from pyserini_repbert.serve.child import ChildProcess
if __name__ == '__main__':
    started = ChildProcess()
    started.call(len, 'warm', seconds=60)
    print(started.pid, flush=True)
    WAIT
"""
IDLE = 'time.sleep(600)'
BUSY = 'started.call(time.sleep, 600, seconds=600)'


def refuse(name):
    raise InputError(f'{name} is refused', parameters=('name',))


def stop_this_process():
    os.kill(os.getpid(), signal.SIGSTOP)


@pytest.fixture
def beating(monkeypatch):
    """A process that is given time to start."""
    started = ChildProcess()
    started.call(len, 'abc', seconds=60)
    started._quiet_seconds = 1.5
    yield started
    started.stop()


def test_a_process_answers_and_raises(beating):
    first = beating.pid
    assert beating.call(len, 'abcd', seconds=20) == 4
    with pytest.raises(InputError, match='cat is refused') as error:
        beating.call(refuse, 'cat', seconds=20)
    assert error.value.parameters == ('name',)
    assert beating.pid == first != os.getpid()


def test_a_stopped_process_is_ended_and_the_next_call_starts_another(beating):
    first = beating.pid
    with pytest.raises(LostProcessError, match='no sign of life for 2 s'):
        beating.call(stop_this_process, seconds=60)
    assert beating.pid is None
    beating._quiet_seconds = child.QUIET_SECONDS
    beating.call(len, 'abc', seconds=60)
    # One that was stopped while it had nothing to do reads no argument.
    os.kill(beating.pid, signal.SIGSTOP)
    beating._quiet_seconds = 0.2
    with pytest.raises(LostProcessError, match='no sign of life'):
        beating.call(len, 'x' * 10_000_000, seconds=60)
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


def test_work_has_a_deadline_and_may_be_ended_from_outside(beating):
    with pytest.raises(OverdueError, match='more than 0 s and was given up'):
        beating.call(signal.pause, seconds=0.2)
    beating._quiet_seconds = child.QUIET_SECONDS
    with pytest.raises(LostProcessError, match='ended from outside'):
        beating.call(os._exit, 9, seconds=60)


@pytest.mark.parametrize('wait', [IDLE, BUSY])
def test_a_process_ends_with_the_one_that_started_it(wait, tmp_path):
    script = tmp_path / 'held.py'
    script.write_text(HELD.replace('WAIT', wait), encoding='utf-8')
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as parent:
        assert int(parent.stdout.readline()) != parent.pid
        parent.kill()
        # The pipe of its output is open as long as the process lives.
        assert parent.communicate(timeout=HANGS) == ('', None)
