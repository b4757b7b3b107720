"""Commands of regressions run in this process, where nothing has to be imported for each of
them.
"""

import contextlib
import importlib
import io

from pyserini_repbert.commands.command import run
from pyserini_repbert.regression.workspace import LAST_LINES, CommandFailedError, Workspace


class OneProcess(Workspace):
    """A workspace that runs each command in this process, through its `main`."""

    def run(self, command: str) -> str:
        """Run a command; what it prints.

        Raises CommandFailedError with the last lines of its errors.
        """
        words = self.run_words(command)
        printed = io.StringIO()
        errors = io.StringIO()
        module = importlib.import_module(words[2].replace('.', '.commands.', 1))
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
            quiet = [] if '--quiet' in words else ['--quiet']
            status = run(module.main, [*words[3:], *quiet])
        if status:
            lines = ' | '.join(errors.getvalue().strip().splitlines()[-LAST_LINES:])
            raise CommandFailedError(f"'{' '.join(words)}' ended with status {status}: {lines}")
        return printed.getvalue()
