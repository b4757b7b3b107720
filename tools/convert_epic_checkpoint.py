"""Convert EPIC's published weights to a checkpoint folder with safetensors.

    python tools/convert_epic_checkpoint.py epic.p FOLDER [--vocabulary vocab.txt]

The source is the file `epic.p` (510 MB, MD5 df756649ba3c449cf0f462083ef6082d); `--encoder epic` does the same on first
use. Weights are read with weights_only=True: nothing in the file is run.
"""

from __future__ import annotations

import sys

from conversion import run

if __name__ == '__main__':
    sys.exit(run('epic', 'the file epic.p', __doc__))
