"""The regressions, as `python -m pyserini_repbert.regression` runs them, in one process (`make
regressions`).

Each condition has its own commands, two for most: a process for each would import the package, and
PyTorch or Java, again.
"""

import sys
from collections.abc import Sequence
from unittest.mock import patch

from one_process import OneProcess

from pyserini_repbert.commands import regression
from pyserini_repbert.commands.command import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Status 0 without a FAIL; `arguments` are those of the command, without --jobs."""
    with patch.object(regression, 'Workspace', OneProcess):
        return run(regression.main, list(sys.argv[1:] if arguments is None else arguments))


if __name__ == '__main__':
    sys.exit(main())
