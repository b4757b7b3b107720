"""Convert CEDR weights as its authors' code saves them (`weights.p`) to a checkpoint folder.

    python tools/convert_cedr_checkpoint.py weights.p --base FOLDER --output FOLDER

The file has the trained weights only; the base is the BERT that training began with, a folder as on the Hugging Face
hub.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyserini_repbert.commands import command


def main(arguments: list[str]) -> int | None:
    """Run the script."""
    parser = command.Parser(description='Convert the CEDR authors’ weights.p to a checkpoint folder.')
    parser.add_argument('weights', help='the .p file')
    parser.add_argument('--base', required=True, help='the BERT that training began with: catalog name or folder')
    parser.add_argument('--output', required=True, help='the checkpoint folder to make')
    options = parser.parse_args(arguments)
    from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
    from pyserini_repbert.models.convert.cedr import convert_cedr

    found = convert_cedr(Path(options.weights), open_checkpoint(options.base), Path(options.output))
    settings = found.settings
    k_max = f', k_max {settings.k_max}' if settings.architecture == 'pacrr' else ''
    print(
        f'{options.output}: {settings.architecture}{k_max}; {len(found.frozen)} frozen tensors from the base, '
        f'{found.dropped} unused ones dropped'
    )
    return 0


if __name__ == '__main__':
    sys.exit(command.run(main))
