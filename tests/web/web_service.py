"""This package's commands, and a service in a process of its own."""

import contextlib
import importlib
import io
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from pyserini_repbert.commands.command import run

_STARTED = 120.0  # seconds


def command(name, *arguments, folder):
    """Run one of this package's commands in this process, which imports PyTorch once for all of
    them; its lines of output.
    """
    main = importlib.import_module(f'pyserini_repbert.commands.{name}').main
    printed = io.StringIO()
    errors = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(errors),
    ):
        status = run(main, list(arguments))
    assert status == 0, errors.getvalue()
    return printed.getvalue().splitlines()


def make_collection(folder, documents):
    """Make a collection called 'mine' of documents in a folder."""
    lines = [json.dumps(document) for document in documents]
    (folder / 'docs.jsonl').write_text('\n'.join(lines) + '\n', encoding='utf-8')
    made = ('--corpus', 'docs.jsonl', '--encoder', 'repbert-demo')
    command('index', 'sync', '--index', 'mine', *made, folder=folder)


@contextlib.contextmanager
def run_service(folder, *arguments):
    """The address of a service that runs in a folder meanwhile."""
    environment = os.environ | {
        'PYTHONPATH': str(Path(__file__).parents[2]),
        'OMP_NUM_THREADS': '1',
    }
    call = [sys.executable, '-m', 'pyserini_repbert.serve', *arguments]
    call += ['--port', '0', '--offline', '--log-file', 'log.jsonl']
    with open(folder / 'serve.err', 'w+', encoding='utf-8') as told:
        process = subprocess.Popen(call, cwd=folder, env=environment, stderr=told)
        try:
            yield _ready(process, folder / 'serve.err')
        finally:
            process.terminate()
            process.wait(30)


def _ready(process, told):
    ends = time.monotonic() + _STARTED
    while time.monotonic() < ends and process.poll() is None:
        found = re.search(r'http://\S+', told.read_text(encoding='utf-8'))
        if found:
            try:
                with urllib.request.urlopen(found.group() + '/readyz'):
                    return found.group() + '/'
            except OSError:
                pass
        time.sleep(0.2)
    raise AssertionError(told.read_text(encoding='utf-8'))
