"""Convert a TensorFlow 1 checkpoint of monoBERT or duoBERT to a checkpoint folder with safetensors.

    python tools/convert_bert_tf_checkpoint.py ARCHIVE.zip FOLDER --system duobert

The source is a published archive, its unpacked folder, or the path of one checkpoint (model.ckpt-100000); `--reranker
duobert-large@50` does the same on first use. TensorFlow is not needed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyserini_repbert.commands import command

_LIMITS = {'monobert': 64, 'duobert': 62}  # wordpieces of a query


def main(arguments: list[str]) -> None:
    """Run the conversion."""
    parser = command.Parser(
        prog='convert_bert_tf_checkpoint.py', description=__doc__.splitlines()[0] if __doc__ else ''
    )
    parser.add_argument('source', type=Path, help='the .zip, a folder with a checkpoint, or the path of a checkpoint')
    parser.add_argument('output', type=Path, help='the folder to make')
    parser.add_argument('--system', required=True, choices=sorted(_LIMITS), help='what the checkpoint was trained as')
    parser.add_argument('--checkpoint', help='which one, where there are several: model.ckpt-100000')
    parser.add_argument('--vocabulary', type=Path, help="default: the source's, or bert-base-uncased's")
    options = parser.parse_args(arguments)
    from pyserini_repbert.models.convert.tensorflow import convert_tensorflow

    ranking = {'system': options.system, 'max_query_length': _LIMITS[options.system], 'max_length': 512}
    convert_tensorflow(options.source, options.output, ranking, options.checkpoint, options.vocabulary)
    print(f'{options.output}: {options.system}')


if __name__ == '__main__':
    sys.exit(command.run(main))
