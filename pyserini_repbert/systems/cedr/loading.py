"""CEDR models by architecture, new or from a checkpoint."""

from __future__ import annotations

from dataclasses import replace

from pyserini_repbert.errors import MismatchError
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.folder import Checkpoint
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.systems.cedr.heads import (
    CedrDrmm,
    CedrKnrm,
    CedrPacrr,
    told_k_max,
)
from pyserini_repbert.systems.cedr.network import (
    CedrRanker,
    VanillaBert,
)
from pyserini_repbert.systems.cedr.settings import (
    NAME,
    Architecture,
    CedrSettings,
)

RANKERS: dict[str, type[CedrRanker]] = {
    Architecture.VANILLA: VanillaBert,
    Architecture.KNRM: CedrKnrm,
    Architecture.PACRR: CedrPacrr,
    Architecture.DRMM: CedrDrmm,
}


def new_ranker(config: BertConfig, settings: CedrSettings) -> CedrRanker:
    """An untrained model."""
    return RANKERS[settings.architecture](config, settings)


def load_ranker(
    checkpoint: Checkpoint, n_layers: int | None = None, max_doc_length: int | None = None
) -> CedrRanker:
    """The model of a checkpoint, in float32 on the CPU, for inference.

    If a PACRR checkpoint does not name its k_max, it follows from the shape of its weights. Raises
    MismatchError for a checkpoint of another system, or a plain BERT.

    `n_layers`: run only BERT's first `n_layers` layers (CEDR section 3.2); default: all.
    `max_doc_length`: wordpieces kept of a document; default: the checkpoint's limit.
    """
    ranking = checkpoint.system(NAME)
    if 'architecture' not in ranking:
        raise MismatchError(
            f"checkpoint '{checkpoint.name}' has no CEDR head: its config.json should name the "
            f'architecture '
            f'in its ranking object ({", ".join(Architecture)})'
        )
    settings = CedrSettings.from_ranking(ranking)
    if max_doc_length is not None:
        settings = replace(settings, max_doc_length=max_doc_length)
    config = BertConfig.from_dict(checkpoint.config)
    tensors = checkpoint.tensors()
    if (
        'k_max' not in ranking
        and settings.architecture is Architecture.PACRR
        and 'linear1.weight' in tensors
    ):
        extra = config.hidden_size if settings.joint else 0
        told = told_k_max(tensors['linear1.weight'].shape[1], extra, settings.max_query_length)
        settings = replace(settings, k_max=told or settings.k_max)
    model = load_model(lambda: new_ranker(config, settings), checkpoint, tensors=tensors)
    if n_layers is not None:
        model.keep_layers(n_layers)
    return model
