"""Convert RepBERT's published checkpoint to a checkpoint folder with safetensors.

    python tools/convert_repbert_checkpoint.py repbert.ckpt-350000.zip FOLDER [--vocabulary vocab.txt]

The archive (386 MB, MD5 b59a574f53c92de6a4ddd4b3fbef784a) or its unpacked folder; `--encoder repbert` does the same on
first use. Weights are read with weights_only=True: nothing in the file is run.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.commands import command


def main(arguments: list[str]) -> None:
    """Run the conversion."""
    parser = command.Parser(
        prog='convert_repbert_checkpoint.py', description=__doc__.splitlines()[0] if __doc__ else ''
    )
    parser.add_argument('source', type=Path, help='the .zip, or a folder with config.json and pytorch_model.bin')
    parser.add_argument('output', type=Path, help='the folder to make')
    parser.add_argument('--vocabulary', type=Path, help="a vocab.txt; default bert-base-uncased's")
    options = parser.parse_args(arguments)
    from pyserini_repbert.models.convert.repbert import convert_repbert

    ranking = catalog.get('encoders', 'repbert').values['ranking']
    convert_repbert(options.source, options.output, ranking, options.vocabulary)
    print(f'{options.output}: ready as --encoder {options.output}')


if __name__ == '__main__':
    sys.exit(command.run(main))
