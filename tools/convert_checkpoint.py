"""Convert published weights to a checkpoint folder with safetensors.

    python tools/convert_checkpoint.py repbert repbert.ckpt-350000.zip FOLDER
    python tools/convert_checkpoint.py epic epic.p FOLDER
    python tools/convert_checkpoint.py duobert ARCHIVE.zip FOLDER [--checkpoint model.ckpt-100000]
    python tools/convert_checkpoint.py cedr weights.p FOLDER --base BERT
    python tools/convert_checkpoint.py bert ARCHIVE.zip FOLDER
    python tools/convert_checkpoint.py vectors glove.42B.300d.txt FOLDER [--words 400000]

RepBERT: the archive (386 MB, MD5 b59a574f53c92de6a4ddd4b3fbef784a) or its unpacked folder. EPIC:
the file `epic.p` (510 MB, MD5 df756649ba3c449cf0f462083ef6082d). monoBERT and duoBERT: a TensorFlow
1 archive, its unpacked folder, or the path of one checkpoint; TensorFlow is not needed. The catalog
names `repbert`, `epic` and `duobert-large` convert on first use. CEDR: the file as its authors'
code saves it, which has the trained weights only; the base is the BERT that training began with.
bert: a TensorFlow 1 BERT that was pre-trained and not fine-tuned, a base for `train`. vectors: word
vectors as text, a base for CEDR's heads without a BERT (the recipes glove-*).
Nothing in a PyTorch file is run: weights are read with weights_only=True.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.commands.command import Parser, refuse, run

_QUERY_LIMITS = {'monobert': 64, 'duobert': 62}  # wordpieces of a query


def main(arguments: list[str]) -> None:
    """Run the conversion."""
    options = _parser().parse_args(arguments)
    system = options.system
    refuse((system == 'cedr') != bool(options.base), '--base goes with cedr, and cedr needs it')
    refuse(bool(options.words) and system != 'vectors', '--words goes with vectors')
    if system in _QUERY_LIMITS or system == 'bert':
        _convert_tensorflow(options)
    elif system == 'vectors':
        _convert_vectors(options)
    elif system == 'cedr':
        _convert_cedr(options)
    else:
        _convert_pytorch(options)


def _parser() -> Parser:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    systems = ('repbert', 'epic', 'monobert', 'duobert', 'cedr', 'bert', 'vectors')
    parser.add_argument('system', choices=systems)
    parser.add_argument('source', type=Path, help='what was published')
    parser.add_argument('output', type=Path, help='the folder to make')
    parser.add_argument(
        '--vocabulary', type=Path, help="a vocab.txt; default: the source's, or bert-base-uncased's"
    )
    parser.add_argument(
        '--checkpoint',
        default='',
        help='monobert, duobert, bert: which one, where there are several',
    )
    parser.add_argument(
        '--base', help='cedr: the BERT that training began with, a catalog name or a folder'
    )
    parser.add_argument(
        '--words', type=int, help='vectors: how many of the first words to keep; default: all'
    )
    return parser


def _convert_pytorch(options: argparse.Namespace) -> None:
    """Convert RepBERT or EPIC."""
    from pyserini_repbert.systems.epic.conversion import convert_epic
    from pyserini_repbert.systems.repbert.conversion import convert_repbert

    system = options.system
    convert = convert_repbert if system == 'repbert' else convert_epic
    ranking = catalog.get(str(catalog.checkpoint_kind(system)), system).values['ranking']
    convert(options.source, options.output, ranking, options.vocabulary)
    print(f'{options.output}: {system}')


def _convert_cedr(options: argparse.Namespace) -> None:
    from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
    from pyserini_repbert.systems.cedr.conversion import convert_cedr

    base = open_checkpoint(options.base)
    settings, frozen = convert_cedr(options.source, base, options.output)
    k_max = f', k_max {settings.k_max}' if settings.architecture == 'pacrr' else ''
    print(
        f'{options.output}: {settings.architecture}{k_max}; {len(frozen)} frozen tensors from '
        f'the base'
    )


def _convert_vectors(options: argparse.Namespace) -> None:
    from pyserini_repbert.systems.cedr.static_vectors import convert_vectors

    table = convert_vectors(options.source, options.output, options.words)
    n_words, n_values = table.vectors.shape
    print(f'{options.output}: {n_words} words x {n_values}')


def _convert_tensorflow(options: argparse.Namespace) -> None:
    """Convert monoBERT, duoBERT, or a BERT."""
    from pyserini_repbert.models.convert.tensorflow import convert_tensorflow

    ranking = None
    if options.system != 'bert':
        ranking = {
            'system': options.system,
            'max_query_length': _QUERY_LIMITS[options.system],
            'max_length': 512,
        }
    convert_tensorflow(
        options.source, options.output, ranking, options.vocabulary, options.checkpoint
    )
    print(f'{options.output}: {options.system}')


if __name__ == '__main__':
    sys.exit(run(main))
