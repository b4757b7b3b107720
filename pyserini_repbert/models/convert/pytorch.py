"""RepBERT's and EPIC's published PyTorch weights to checkpoint folders, and what all converters
share.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from pyserini_repbert.archives import open_zip
from pyserini_repbert.checksums import write_checksums
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.files import atomic_folder
from pyserini_repbert.models.checkpoints.folder import Checkpoint
from pyserini_repbert.models.checkpoints.legacy import uncased_vocabulary

_HEAD_SIZE = 64  # dimensions of an attention head in every BERT that its authors published
_NEEDED = re.compile(
    r'\.(index|data-\d+-of-\d+)$|(^|/)((bert_)?config\.json|pytorch_model\.bin|vocab\.txt)$'
)


def unpacked(archive: Path, folder: Path) -> Path:
    """Unpack a checkpoint's files from a .zip into `folder`, and return `folder`."""
    with open_zip(archive) as packed:
        for member in packed.infolist():
            if _NEEDED.search(member.filename):
                packed.extract(member, folder)
    return folder


def sizes_of(
    source: Path, tensors: Mapping[str, Tensor], heads: int | None = None
) -> dict[str, Any]:
    """The sizes of a BERT for its config.json, from the shapes of its weights (Hugging Face's
    names).

    The shapes do not tell the number of attention heads: by default there is one per 64 dimensions.
    Raises DamagedFileError if weights of a BERT are missing.
    """
    layers = {name.split('.')[3] for name in tensors if name.startswith('bert.encoder.layer.')}
    try:
        vocabulary, hidden = tensors['bert.embeddings.word_embeddings.weight'].shape
        return {
            'model_type': 'bert',
            'vocab_size': vocabulary,
            'hidden_size': hidden,
            'num_hidden_layers': len(layers),
            'num_attention_heads': heads or max(1, hidden // _HEAD_SIZE),
            'intermediate_size': len(tensors['bert.encoder.layer.0.intermediate.dense.bias']),
            'max_position_embeddings': len(tensors['bert.embeddings.position_embeddings.weight']),
            'type_vocab_size': len(tensors['bert.embeddings.token_type_embeddings.weight']),
        }
    except KeyError as error:
        raise DamagedFileError(f'{source} is not of a BERT: it lacks {error.args[0]}') from error


@contextmanager
def converted(
    target: Path,
    source: Path,
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    vocabulary: Path,
) -> Iterator[Checkpoint]:
    """A new checkpoint, for loading its model in the context; its folder appears unless that fails.

    Parameters
    ----------
    target : the folder, which must not exist
    source : the original, for errors
    config : of config.json
    tensors : the weights by name
    vocabulary : the vocab.txt to copy
    """
    with atomic_folder(target) as folder:
        shutil.copyfile(vocabulary, folder / 'vocab.txt')
        yield Checkpoint.write(folder, config, tensors, str(source))
        write_checksums(folder)


def vocabulary_of(folder: Path, given: Path | None) -> Path:
    """The vocab.txt in a folder, otherwise the given vocabulary, otherwise `uncased_vocabulary`."""
    beside = folder / 'vocab.txt'
    return beside if beside.is_file() else given or uncased_vocabulary()
