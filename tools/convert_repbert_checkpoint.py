"""Convert RepBERT's published checkpoint to a checkpoint folder with safetensors.

    python tools/convert_repbert_checkpoint.py repbert.ckpt-350000.zip FOLDER [--vocabulary vocab.txt]

The source is the archive (386 MB, MD5 b59a574f53c92de6a4ddd4b3fbef784a) or its unpacked folder; `--encoder repbert`
does the same on first use. Weights are read with weights_only=True: nothing in the file is run.
"""

from __future__ import annotations

import sys

from conversion import run

if __name__ == '__main__':
    sys.exit(run('repbert', 'the .zip, or a folder with config.json and pytorch_model.bin', __doc__))
