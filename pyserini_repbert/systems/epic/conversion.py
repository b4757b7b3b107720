"""EPIC's published PyTorch weights to a checkpoint folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.files import check_absent, existing_file
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.legacy import load_legacy, uncased_vocabulary
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.convert.pytorch import converted, sizes_of
from pyserini_repbert.systems.epic.network import TIED, Epic

# The prefix of the BERT with its pre-training heads.
_EPIC_BODY = 'encoder.bert.'
_EPIC_HEADS = {
    'query_salience': 'query_importance',
    'doc_salience': 'document_importance',
    'doc_quality': 'document_quality',
}
# The decoder is tied to the word embeddings.
_EPIC_UNUSED = (
    '_nil',
    'encoder.bert.cls.predictions.decoder.',
    'encoder.bert.cls.seq_relationship.',
    'encoder.bert.bert.embeddings.position_ids',
)


def convert_epic(
    source: Path,
    target: Path,
    ranking: Mapping[str, Any],
    vocabulary: Path | None = None,
    heads: int | None = None,
) -> None:
    """Convert EPIC's published weights into a checkpoint folder.

    The file holds weights only: the model's sizes are taken from their shapes.

    Parameters
    ----------
    source : `epic.p`, read without running code
    target : the new folder, which must not exist
    ranking : the `ranking` object for config.json
    vocabulary : a BERT vocab.txt; default: `uncased_vocabulary`
    heads : attention heads of its BERT, which shapes do not tell; default: one per 64 dimensions
    """
    check_absent(target)
    state = {
        _name_of(name): value.contiguous()
        for name, value in load_legacy(existing_file(source, 'EPIC weights')).items()
        if not name.startswith(_EPIC_UNUSED)
    }
    config = sizes_of(source, state, heads) | {'ranking': dict(ranking)}
    pieces = vocabulary or uncased_vocabulary()
    n_pieces = len(pieces.read_text(encoding='utf-8').rstrip('\n').split('\n'))
    if n_pieces != config['vocab_size']:
        raise DamagedFileError(
            f'{source} has a vocabulary of {config["vocab_size"]}, {pieces} has {n_pieces} '
            'wordpieces: give the vocab.txt of its BERT',
            parameters=('vocabulary',),
        )
    with converted(target, source, config, state, pieces) as written:
        load_model(lambda: Epic(BertConfig.from_dict(config)), written, TIED)


def _name_of(name: str) -> str:
    """A weight's name in this package, from its name in the authors' file."""
    head, _, rest = name.partition('.')
    if head in _EPIC_HEADS:
        return f'{_EPIC_HEADS[head]}.{rest}'
    return name.removeprefix(_EPIC_BODY)
