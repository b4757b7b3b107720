"""Builds that are killed at each step."""

import os
import signal


def after_each_kill(build):
    """Run `build` in a child process again and again; SIGKILL at its first rename or removal, then
    at its second, until it ends by itself.

    Yields after each kill. Fails where it then does not end well, or had fewer than three steps.
    """
    killed_at = 0
    while True:
        child = os.fork()
        if child == 0:
            _build_and_die(build, killed_at)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            break
        yield
        killed_at += 1
    assert os.waitstatus_to_exitcode(status) == 0
    assert killed_at >= 3


def _build_and_die(build, killed_at):
    """In a child process: build, and kill this process at the n-th step."""
    passed = 0

    def dying(original):
        def step(*arguments, **options):
            nonlocal passed
            if passed == killed_at:
                os.kill(os.getpid(), signal.SIGKILL)
            passed += 1
            return original(*arguments, **options)

        return step

    for name in ('rename', 'replace', 'unlink', 'rmdir'):
        setattr(os, name, dying(getattr(os, name)))
    try:
        build()
        os._exit(0)
    except BaseException:
        os._exit(1)
