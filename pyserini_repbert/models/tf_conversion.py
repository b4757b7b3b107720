"""monoBERT and duoBERT as their authors published them (TensorFlow 1 checkpoints), turned into checkpoint folders."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.checksums import write_checksums
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import atomic_folder
from pyserini_repbert.models.tensor_bundle import TensorBundle

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_OPTIMISER = ('adam_m', 'adam_v', 'global_step')
_PRETRAINING = 'cls/'  # heads of masked words and next sentences, which ranking does not use
_HEAD = {'output_weights': 'classifier.weight', 'output_bias': 'classifier.bias'}
_WORDS = 'bert/embeddings/word_embeddings'
_HEAD_SIZE = 64  # of an attention head, in every BERT that its authors published
_NEEDED = re.compile(r'\.(index|data-\d+-of-\d+)$|(^|/)(bert_)?config\.json$|(^|/)vocab\.txt$')


def hub_name(name: str) -> tuple[str, bool] | None:
    """(Hugging Face's name for a TensorFlow variable, whether it is transposed); None for what ranking does not use."""
    if name.startswith(_PRETRAINING) or name.rpartition('/')[2] in _OPTIMISER:
        return None
    if name in _HEAD:
        return _HEAD[name], False
    parts = name.split('/')
    last = {'kernel': 'weight', 'gamma': 'weight', 'beta': 'bias'}.get(parts[-1], parts[-1])
    if last.endswith('_embeddings'):
        last += '.weight'
    stem = [re.sub(r'^layer_(\d+)$', r'layer.\1', part) for part in parts[:-1]]
    return '.'.join([*stem, last]), parts[-1] == 'kernel'


def hub_tensors(bundle: TensorBundle) -> dict[str, NDArray[np.float32]]:
    """The weights under Hugging Face's names; optimiser state and pre-training heads are left out."""
    import numpy as np

    found = {}
    for name in bundle.shapes():
        target = hub_name(name)
        if target is not None:
            value = np.asarray(bundle.tensor(name), dtype=np.float32)
            found[target[0]] = np.ascontiguousarray(value.T if target[1] else value)
    return found


def config_of(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """The sizes of a BERT, from the shapes of its variables. Raises InputError where it is none."""
    layers = {int(found.group(1)) for name in shapes if (found := re.match(r'bert/encoder/layer_(\d+)/', name))}
    try:
        vocabulary, hidden = shapes[_WORDS]
        return {
            'model_type': 'bert',
            'architectures': ['BertForSequenceClassification'],
            'vocab_size': vocabulary,
            'hidden_size': hidden,
            'num_hidden_layers': len(layers),
            'num_attention_heads': max(1, hidden // _HEAD_SIZE),
            'intermediate_size': shapes['bert/encoder/layer_0/intermediate/dense/bias'][0],
            'max_position_embeddings': shapes['bert/embeddings/position_embeddings'][0],
            'type_vocab_size': shapes['bert/embeddings/token_type_embeddings'][0],
        }
    except (KeyError, ValueError) as error:
        raise InputError(f'the checkpoint is not of a BERT ({error}): expected variables such as {_WORDS}') from error


def convert_tensorflow(
    source: Path,
    target: Path,
    ranking: Mapping[str, Any],
    checkpoint: str | None = None,
    vocabulary: Path | None = None,
) -> None:
    """A published archive, its unpacked folder, or a checkpoint's prefix, to a checkpoint folder at `target`.

    A `bert_config.json` beside the checkpoint is used; what it does not say follows from the variables.

    Parameters
    ----------
    source : a .zip, a folder, or a path such as model.ckpt-100000
    ranking : the `ranking` object for config.json; its system is 'monobert' or 'duobert'
    checkpoint : which one, where there are several ('model.ckpt-100000')
    vocabulary : a BERT vocab.txt, where there is none; default bert-base-uncased's

    Raises
    ------
    InputError
        where there is no checkpoint or more than one, or `target` exists
    DamagedFileError
        where it cannot be read, or weights are missing or unexpected
    """
    import torch
    from safetensors.torch import save_file

    from pyserini_repbert.models.bert import BertConfig
    from pyserini_repbert.models.checkpoint_folder import Checkpoint, load_strictly
    from pyserini_repbert.models.cross_encoder import CrossEncoder
    from pyserini_repbert.models.legacy import uncased_vocabulary

    if target.exists():
        raise InputError(f'{target} exists: remove it or choose another output')
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix='.unpacked.') as unpacked:
        prefix = _prefix(_unpacked(source, Path(unpacked)), checkpoint)
        bundle = TensorBundle(prefix)
        config = config_of(bundle.shapes()) | _config_beside(prefix) | {'ranking': dict(ranking)}
        tensors = {name: torch.from_numpy(value) for name, value in hub_tensors(bundle).items()}
        with atomic_folder(target) as made:
            (made / 'config.json').write_text(json.dumps(config, indent=2) + '\n', encoding='utf-8')
            save_file(tensors, made / 'model.safetensors', metadata={'format': 'pt'})
            own = prefix.parent / 'vocab.txt'
            shutil.copyfile(own if own.is_file() else vocabulary or uncased_vocabulary(), made / 'vocab.txt')
            with torch.device('meta'):
                model = CrossEncoder(BertConfig.from_dict(config), len(tensors.get('classifier.weight', ())) or 2)
            load_strictly(model.to_empty(device='cpu'), Checkpoint.open(made, str(source)), tensors=tensors)
            write_checksums(made)


def _unpacked(source: Path, folder: Path) -> Path:
    """Where the files lie: `source` itself, or `folder` with what an archive has of use."""
    if not source.is_file() or source.suffix != '.zip':
        return source
    try:
        with zipfile.ZipFile(source) as archive:
            for member in archive.infolist():
                if _NEEDED.search(member.filename):
                    archive.extract(member, folder)
    except zipfile.BadZipFile as error:
        raise DamagedFileError(f'{source} is not a whole zip archive ({error}): fetch it again') from error
    return folder


def _prefix(source: Path, checkpoint: str | None) -> Path:
    if not source.is_dir():
        return source.with_name(source.name.removesuffix('.index'))
    found = sorted(path.with_suffix('') for path in source.rglob('*.index'))
    names = [path.name for path in found]
    if checkpoint is not None:
        found = [path for path in found if path.name == checkpoint]
    if len(found) != 1:
        raise InputError(
            f'{source} has {len(names)} TensorFlow checkpoints{": " if names else ""}{", ".join(names)}: '
            'expected one, or its name with --checkpoint'
        )
    return found[0]


def _config_beside(prefix: Path) -> dict[str, Any]:
    for name in ('bert_config.json', 'config.json'):
        if (path := prefix.parent / name).is_file():
            try:
                return dict(json.loads(path.read_text(encoding='utf-8')))
            except ValueError as error:
                raise DamagedFileError(f'{path} is not JSON ({error}): fetch the checkpoint again') from error
    return {}
