"""The flags that say where regressions find collections and where they leave what their commands make."""

from __future__ import annotations

import argparse
import os

DATA_VARIABLE = 'PYSERINI_REPBERT_DATA'
DATA = '../shared/data'
WORK = 'runs/regressions'


def add_folders(parser: argparse.ArgumentParser) -> None:
    """--data and --work."""
    data = os.environ.get(DATA_VARIABLE, DATA)
    parser.add_argument(
        '--data', default=data, metavar='FOLDER', help=f'collections and run files, or ${DATA_VARIABLE}'
    )
    parser.add_argument('--work', default=WORK, metavar='FOLDER', help='for what the commands make')
