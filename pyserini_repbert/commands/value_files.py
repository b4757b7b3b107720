"""The flags --csv and --plot of the commands that measure: values to write beside the table that is printed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyserini_repbert.commands.output_files import check_files


def add_value_files(parser: argparse.ArgumentParser) -> None:
    """--csv and --plot, for `parsed`."""
    parser.add_argument('--csv', metavar='FILE', help='write the values as CSV')
    parser.add_argument('--plot', metavar='FILE', help='write a plot, .png, .pdf or .svg (needs matplotlib)')


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """The options; raises where a file cannot be written, or a plot is asked for and matplotlib is missing."""
    options = parser.parse_args(arguments)
    check_files(options)
    if options.plot:
        from pyserini_repbert.figures import require_matplotlib

        require_matplotlib()
    return options
