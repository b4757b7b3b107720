"""RepBERT's and EPIC's published PyTorch weights to checkpoint folders, and what all converters
share.
"""

from __future__ import annotations

import pickle
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pyserini_repbert import catalog
from pyserini_repbert.checksums import write_checksums
from pyserini_repbert.data.values import read_object
from pyserini_repbert.errors import DamagedFileError, InputError, MissingResourceError
from pyserini_repbert.files import atomic_folder, check_absent, existing_file
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.folder import Checkpoint
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.epic import TIED, Epic
from pyserini_repbert.models.repbert import RepBert

_HEAD_SIZE = 64  # dimensions of an attention head in every BERT that its authors published
_NEEDED = re.compile(
    r'\.(index|data-\d+-of-\d+)$|(^|/)((bert_)?config\.json|pytorch_model\.bin|vocab\.txt)$'
)
_EPIC_BODY = 'encoder.bert.'  # prefix of the BERT with its pre-training heads
_EPIC_HEADS = {
    'query_salience': 'query_importance',
    'doc_salience': 'document_importance',
    'doc_quality': 'document_quality',
}
_EPIC_UNUSED = (
    '_nil',
    'encoder.bert.cls.predictions.decoder.',  # is tied
    'encoder.bert.cls.seq_relationship.',
    'encoder.bert.bert.embeddings.position_ids',
)


def convert_repbert(
    source: Path, target: Path, ranking: Mapping[str, Any], vocabulary: Path | None = None
) -> None:
    """Convert RepBERT's published archive, or its folder, into a checkpoint folder at `target`,
    which must not exist.

    `source` is a .zip or a folder with `config.json` and `pytorch_model.bin`; `ranking` is the
    object for config.json, `vocabulary` the vocab.txt to use if the archive has none (default:
    `uncased_vocabulary`).
    """
    if not source.exists():
        raise InputError(
            f'{source} does not exist: give the published archive, or the folder it was unpacked to'
        )
    check_absent(target)
    with tempfile.TemporaryDirectory() as temporary:
        whole = unpacked(source, Path(temporary)) if source.is_file() else source
        folders = sorted(path.parent for path in whole.rglob('pytorch_model.bin'))
        folder = next((folder for folder in folders if (folder / 'config.json').is_file()), None)
        if folder is None:
            raise InputError(f'{source} holds no pytorch_model.bin with a config.json beside it')
        state = load_legacy(folder / 'pytorch_model.bin')
        state = {
            name: value.contiguous()
            for name, value in state.items()
            if not name.endswith('position_ids')
        }
        config = read_object(folder / 'config.json') | {'ranking': dict(ranking)}
        with converted(target, source, config, state, vocabulary_of(folder, vocabulary)) as written:
            load_model(lambda: RepBert(BertConfig.from_dict(config)), written)


def convert_epic(
    source: Path,
    target: Path,
    ranking: Mapping[str, Any],
    vocabulary: Path | None = None,
    heads: int | None = None,
) -> None:
    """Convert EPIC's published weights into a checkpoint folder at `target`, which must not exist.

    `source` is `epic.p`, read without running code. It holds weights only: the model's sizes are
    taken from their shapes, which do not tell the number of attention `heads` (default: one per 64
    dimensions). `ranking` is the object for config.json, `vocabulary` a BERT vocab.txt (default:
    `uncased_vocabulary`).
    """
    check_absent(target)
    state = {}
    for name, value in load_legacy(existing_file(source, 'EPIC weights')).items():
        if not name.startswith(_EPIC_UNUSED):
            head, _, rest = name.partition('.')
            ours = (
                f'{_EPIC_HEADS[head]}.{rest}'
                if head in _EPIC_HEADS
                else name.removeprefix(_EPIC_BODY)
            )
            state[ours] = value.contiguous()
    config = sizes_of(source, state, heads) | {'ranking': dict(ranking)}
    pieces = vocabulary or uncased_vocabulary()
    n_pieces = len(pieces.read_text(encoding='utf-8').rstrip('\n').split('\n'))
    if n_pieces != config['vocab_size']:
        raise DamagedFileError(
            f'{source} has a vocabulary of {config["vocab_size"]}, {pieces} has {n_pieces} '
            f'wordpieces: give the '
            'vocab.txt of its BERT',
            parameters=('vocabulary',),
        )
    with converted(target, source, config, state, pieces) as written:
        load_model(lambda: Epic(BertConfig.from_dict(config)), written, TIED)


def unpacked(archive: Path, folder: Path) -> Path:
    """Unpack a checkpoint's files from a .zip into `folder`, and return `folder`."""
    try:
        with zipfile.ZipFile(archive) as stream:
            for member in stream.infolist():
                if _NEEDED.search(member.filename):
                    stream.extract(member, folder)
    except zipfile.BadZipFile as error:
        raise DamagedFileError(
            f'{archive} is not a whole zip archive ({error}): fetch it again'
        ) from error
    return folder


def sizes_of(
    source: Path, tensors: Mapping[str, Tensor], heads: int | None = None
) -> dict[str, Any]:
    """The sizes of a BERT for its config.json, from the shapes of its weights (Hugging Face's
    names).

    The shapes do not tell the number of attention heads: by default there is one per 64 dimensions.
    Raises DamagedFileError where weights of a BERT are missing.
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
    """A new checkpoint, for loading its model in the context; its folder appears at `target`
    unless that fails.
    """
    with atomic_folder(target) as folder:
        shutil.copyfile(vocabulary, folder / 'vocab.txt')
        yield Checkpoint.write(folder, config, tensors, str(source))
        write_checksums(folder)


def load_legacy(path: Path) -> dict[str, Tensor]:
    """The tensors of a PyTorch `.bin`, `.pt` or `.p` file by name; no code in the file is run."""
    try:
        state = torch.load(path, map_location='cpu', weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise DamagedFileError(
            f'{path} is not a file of PyTorch weights ({reason}): fetch it again'
        ) from error
    if not isinstance(state, Mapping) or not all(
        isinstance(value, torch.Tensor) for value in state.values()
    ):
        raise DamagedFileError(f'{path} does not hold a mapping of names to tensors')
    return dict(state)


def vocabulary_of(folder: Path, given: Path | None) -> Path:
    """The vocab.txt in a folder, else the given one, else `uncased_vocabulary`."""
    beside = folder / 'vocab.txt'
    return beside if beside.is_file() else given or uncased_vocabulary()


def uncased_vocabulary() -> Path:
    """bert-base-uncased's vocab.txt.

    Raises MissingResourceError if the package that carries it is not installed.
    """
    try:
        return catalog.package_folder(catalog.get('encoders', 'minilm')) / 'vocab.txt'
    except MissingResourceError as error:
        raise MissingResourceError(
            f'the checkpoint has no vocab.txt: give one, or {error}', parameters=('vocabulary',)
        ) from error
