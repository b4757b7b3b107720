"""A server that starts `python -m …` and `python -c …` by forking a process that has imported
PyTorch, other large libraries and this package already.

A page's commands would else spend most of their time on these imports. `install` puts a program
`python` into a folder that goes to the front of PATH.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from pyserini_repbert.errors import MissingDependencyError

LIBRARIES = (
    'numpy',
    'torch',
    'safetensors.torch',
    'tokenizers',
    'transformers',
    'peft',
    'faiss',
    'pydantic',
    'ir_measures',
    'yaml',
    'tqdm',
    # These take two seconds of each command that reads a folder of sentence-transformers.
    'scipy.stats',
    'pandas',
    'sentence_transformers',
    'pyarrow.compute',
    'pathspec',
    'luqum.parser',
    'selectolax.lexbor',
    'fastapi',
    'uvicorn',
    'matplotlib.figure',
)
PACKAGE = 'pyserini_repbert'
_CLIENT = """#!{python} -IS
import json, os, socket, sys
if sys.argv[1:2] not in (['-m'], ['-c']):
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
request = json.dumps({{'arguments': sys.argv[1:], 'folder': os.getcwd(), 'environment': dict(os.environ)}})
socket.send_fds(connection, [request.encode()], [0, 1, 2])
sys.exit(int(connection.recv(16) or b'1'))
"""  # noqa: E501


def install(folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the server, and write the program `folder/python` that asks it.

    The caller ends the process.
    """
    address = folder / 'socket'
    program = folder / 'python'
    program.write_text(
        _CLIENT.format(python=sys.executable, address=str(address)), encoding='utf-8'
    )
    program.chmod(0o755)
    server = subprocess.Popen([sys.executable, __file__, str(address)], env=dict(environment))
    while not address.exists():
        if server.poll() is not None:
            raise RuntimeError(
                f'the server of the documentation tests ended with status {server.returncode}'
            )
        time.sleep(0.1)
    return server


def package_modules() -> list[str]:
    """The modules of this package; none of them starts Java or a thread when it is imported."""
    folder = Path(__file__).parents[2] / PACKAGE
    found = pkgutil.walk_packages([str(folder)], f'{PACKAGE}.')
    return [module.name for module in found if not module.name.endswith('.__main__')]


def serve(address: str) -> None:
    """Answer requests; each is run in a process of its own, whose exit status is sent back."""
    for name in (*LIBRARIES, *package_modules()):
        # A library, or one that a module plugs into, may not be installed.
        with contextlib.suppress(ImportError, MissingDependencyError):
            importlib.import_module(name)
    # What a command does not touch stays shared with this process.
    gc.collect()
    gc.freeze()
    server = socket.socket(socket.AF_UNIX)
    server.bind(f'{address}.new')
    server.listen(16)
    os.rename(f'{address}.new', address)  # it is there when it answers
    while True:
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            message, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 3)
            worker = os.fork()
            if worker == 0:
                connection.close()
                _run(json.loads(message), descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            connection.send(str(os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) % 256).encode())
            os._exit(0)
        connection.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _run(request: Mapping[str, object], descriptors: list[int]) -> None:
    """What `python` with these arguments would do, in this process, which ends."""
    for place, descriptor in enumerate(descriptors):
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.chdir(str(request['folder']))
    os.environ.clear()
    os.environ.update(request['environment'])  # type: ignore[call-overload]
    kind, what, *arguments = request['arguments']  # type: ignore[misc]
    sys.argv = [kind, *arguments]
    sys.path[0] = ''
    sys.path[1:1] = [
        folder for folder in os.environ.get('PYTHONPATH', '').split(os.pathsep) if folder
    ]
    status = 0
    try:
        if kind == '-m':
            runpy.run_module(what, run_name='__main__', alter_sys=True)
        else:
            exec(compile(what, '<string>', 'exec'), {'__name__': '__main__'})
    except SystemExit as end:
        status = _status_of(end)
    except BaseException:
        traceback.print_exc()
        status = 1
    _end(status)


def _status_of(end: SystemExit) -> int:
    """The exit status of a script that ends so; what is not a number is printed, as Python does."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _end(status: int) -> NoReturn:
    """End as Python does, but for taking every imported module apart: that takes 1.6 seconds."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()  # type: ignore[attr-defined]
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


if __name__ == '__main__':
    serve(sys.argv[1])
