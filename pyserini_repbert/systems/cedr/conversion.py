"""Converting the authors' CEDR weights (`weights.p`) into a checkpoint folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from pyserini_repbert.checksums import write_checksums
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.files import atomic_folder, check_absent, existing_file
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.folder import Checkpoint
from pyserini_repbert.models.checkpoints.legacy import load_legacy
from pyserini_repbert.models.checkpoints.loading import without_weights
from pyserini_repbert.systems.cedr.heads import (
    KernelBank,
    told_k_max,
)
from pyserini_repbert.systems.cedr.loading import (
    load_ranker,
    new_ranker,
)
from pyserini_repbert.systems.cedr.settings import (
    MAX_QUERY_TOKENS,
    Architecture,
    CedrSettings,
)

_UNUSED = 'bert_ranker.'  # a second BERT that the released KNRM and DRMM have but never run
_TELLING = {  # a weight that only one architecture has
    'cls.weight': Architecture.VANILLA,
    'combine.weight': Architecture.KNRM,
    'linear1.weight': Architecture.PACRR,
    'hidden_1.weight': Architecture.DRMM,
}


def convert_cedr(weights: Path, base: Checkpoint, target: Path) -> tuple[CedrSettings, list[str]]:
    """Convert a `weights.p` into a checkpoint folder at `target`, which must not exist.

    Returns the model's settings, and the names of the weights that the file lacks, since they were
    not trained.

    The authors save only the trained weights. Missing weights of BERT come from `base`, missing
    kernels of KNRM from their initial values; any other difference from the model that the file's
    names and shapes imply is an error.

    `weights` is a file of PyTorch weights, read without running code. `base` is the BERT that
    training began with: it gives config, tokenizer, and the weights that the file lacks.
    """
    check_absent(target)
    tensors = load_legacy(existing_file(weights, 'weights')).items()
    state = {name: value.contiguous() for name, value in tensors if not name.startswith(_UNUSED)}
    config = BertConfig.from_dict(base.config)
    settings = _settings(weights, state, config.hidden_size)
    with without_weights():
        expected = new_ranker(config, settings).state_dict()
    missing = [name for name in expected if name not in state]
    state |= _frozen(weights, missing, base, settings)
    with atomic_folder(target) as folder:
        base.copy_tokenizer(folder)
        written = Checkpoint.write(
            folder, {**base.config, 'ranking': settings.ranking()}, state, str(weights)
        )
        load_ranker(written)
        written.tokenizer()
        write_checksums(folder)
    return settings, missing


def _settings(weights: Path, state: Mapping[str, Tensor], hidden_size: int) -> CedrSettings:
    """The architecture, from the names of weights, and PACRR's k_max, from a shape.

    All released models are joint.
    """
    told = [architecture for name, architecture in _TELLING.items() if name in state]
    if len(told) != 1:
        raise DamagedFileError(
            f'{weights} holds the head of {", ".join(told) or "no CEDR model"}: '
            f'exactly one of {", ".join(_TELLING)} was expected'
        )
    if told[0] is not Architecture.PACRR:
        return CedrSettings(told[0])
    n_inputs = state['linear1.weight'].shape[1]
    k_max = told_k_max(n_inputs, hidden_size, MAX_QUERY_TOKENS)
    if k_max is None:
        raise DamagedFileError(
            f'{weights}: linear1 has {n_inputs} inputs, which no k_max gives with a BERT of '
            f'{hidden_size} '
            'dimensions: is the base the BERT that was trained?'
        )
    return CedrSettings(Architecture.PACRR, k_max=k_max)


def _frozen(
    weights: Path, missing: list[str], base: Checkpoint, settings: CedrSettings
) -> dict[str, Tensor]:
    """Values for the weights that were not trained."""
    known: dict[str, Tensor] = {}
    if any(name.startswith('bert.') for name in missing):
        known |= {
            name: value.float()
            for name, value in base.tensors().items()
            if name.startswith('bert.')
        }
    if settings.architecture is Architecture.KNRM:
        with torch.device('cpu'):
            known |= {f'kernels.{name}': value for name, value in KernelBank().state_dict().items()}
    if lacking := [name for name in missing if name not in known]:
        names = f'{", ".join(lacking[:3])}{" and more" if len(lacking) > 3 else ""}'
        raise DamagedFileError(
            f"{weights} lacks {names}, which the base '{base.name}' does not have: fetch it again"
        )
    return {name: known[name].contiguous() for name in missing}
