"""The commands: the only layer that knows flags and the terminal."""

from __future__ import annotations

import atexit
import gc
import os
import sys

# Objects that are made before Python looks for cycles among the newest.
_ALLOCATIONS = 100_000


def start(name: str, module: str = '') -> None:
    """Run the command of a module and exit with its status; Ctrl-C is one line from here on.

    Parameters
    ----------
    name : of the command
    module : that has its `main`; default: `commands/NAME.py`
    """
    # An import makes many objects that stay: with Python's own threshold, looking for cycles among
    # them takes a tenth of the time in which a search starts.
    gc.set_threshold(_ALLOCATIONS)
    # pydantic looks for plugins of its own in all installed packages, which takes 5 ms.
    os.environ.setdefault('PYDANTIC_DISABLE_PLUGINS', '__all__')
    # Else Python looks for cycles in all that PyTorch has made before it ends, for half a second.
    atexit.register(gc.freeze)
    try:
        from importlib import import_module

        from pyserini_repbert.commands.command import run
        from pyserini_repbert.commands.console import show_traceback

        sys.excepthook = show_traceback
        module = module or f'{__name__}.{name}'
        sys.exit(run(lambda arguments: import_module(module).main(arguments)))
    except KeyboardInterrupt:  # before `run` is there
        print('error: interrupted', file=sys.stderr)
        sys.exit(130)
