"""RepBERT's published PyTorch weights to a checkpoint folder."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyserini_repbert.data.values import read_object
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import check_absent
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.legacy import load_legacy
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.convert.pytorch import converted, unpacked, vocabulary_of
from pyserini_repbert.systems.repbert.network import RepBert


def convert_repbert(
    source: Path, target: Path, ranking: Mapping[str, Any], vocabulary: Path | None = None
) -> None:
    """Convert RepBERT's published weights into a checkpoint folder.

    Parameters
    ----------
    source : the published .zip, or a folder with `config.json` and `pytorch_model.bin`
    target : the new folder, which must not exist
    ranking : the `ranking` object for config.json
    vocabulary : the vocab.txt to use if the archive has none; default: `uncased_vocabulary`
    """
    if not source.exists():
        raise InputError(
            f'{source} does not exist: give the published archive, or the folder it was unpacked to'
        )
    check_absent(target)
    with tempfile.TemporaryDirectory() as temporary:
        whole = source
        if source.is_file():
            whole = unpacked(source, Path(temporary))
        folders = sorted(path.parent for path in whole.rglob('pytorch_model.bin'))
        folder = next((folder for folder in folders if (folder / 'config.json').is_file()), None)
        if folder is None:
            raise InputError(f'{source} holds no pytorch_model.bin with a config.json beside it')
        state = {
            name: value.contiguous()
            for name, value in load_legacy(folder / 'pytorch_model.bin').items()
            if not name.endswith('position_ids')
        }
        config = read_object(folder / 'config.json') | {'ranking': dict(ranking)}
        with converted(target, source, config, state, vocabulary_of(folder, vocabulary)) as written:
            load_model(lambda: RepBert(BertConfig.from_dict(config)), written)
