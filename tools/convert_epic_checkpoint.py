"""Convert EPIC's published weights to a checkpoint folder with safetensors.

    python tools/convert_epic_checkpoint.py epic.p FOLDER [--vocabulary vocab.txt]

The file `epic.p` (510 MB, MD5 df756649ba3c449cf0f462083ef6082d); `--encoder epic` does the same on first use. Weights
are read with weights_only=True: nothing in the file is run.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.commands import command


def main(arguments: list[str]) -> None:
    """Run the conversion."""
    parser = command.Parser(prog='convert_epic_checkpoint.py', description=__doc__.splitlines()[0] if __doc__ else '')
    parser.add_argument('source', type=Path, help='the file epic.p')
    parser.add_argument('output', type=Path, help='the folder to make')
    parser.add_argument('--vocabulary', type=Path, help="a vocab.txt; default bert-base-uncased's")
    options = parser.parse_args(arguments)
    from pyserini_repbert.models.convert.epic import convert_epic

    ranking = catalog.get('rerankers', 'epic').values['ranking']
    convert_epic(options.source, options.output, ranking, options.vocabulary)
    print(f'{options.output}: ready as --encoder {options.output}')


if __name__ == '__main__':
    sys.exit(command.run(main))
