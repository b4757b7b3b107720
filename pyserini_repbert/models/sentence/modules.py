"""Models of sentence-transformers: a body, then pooling, Dense layers and normalisation; or a classifier.

A BERT is this package's own; other models are opened with transformers, without remote code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.models.bert import Bert
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.folder import Checkpoint
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.cross_encoder import CrossEncoder
from pyserini_repbert.models.repbert import RepBert
from pyserini_repbert.models.sentence.settings import DenseStep, EncoderSettings

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    'Identity': lambda x: x,
    'Sigmoid': torch.sigmoid,
    'Tanh': torch.tanh,
    'ReLU': functional.relu,
    'GELU': functional.gelu,
}


class SentenceEncoder(nn.Module):
    """Texts to vectors: a body, pooling, and layers after it.

    Parameters
    ----------
    body : (n, length) ids, segment ids and mask to (n, length, h)
    size : h
    settings : pooling, Dense layers and normalisation

    Attributes
    ----------
    dimension : d, the length of a vector

    Raises
    ------
    DamagedFileError
        where the weights of a Dense layer do not fit it
    """

    def __init__(self, body: nn.Module, size: int, settings: EncoderSettings) -> None:
        super().__init__()
        self.body, self.poolings, self.normalise = body, settings.poolings, settings.normalise
        self.dense = nn.ModuleList(_Dense(step) for step in settings.dense)
        self.dimension = settings.dense[-1].size_out if settings.dense else size * len(settings.poolings)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Vectors of texts, float32 (n, d).

        Parameters
        ----------
        input_ids, token_type_ids : int64 (n, length)
        attention_mask : bool (n, length), or None where nothing is padded
        """
        if self.poolings == ('cls',) and isinstance(self.body, Bert):
            vectors: Tensor = self.body.first_token(input_ids, token_type_ids, attention_mask)[:, 0].float()
        else:
            hidden: Tensor = self.body(input_ids, token_type_ids, attention_mask).float()
            mask = torch.ones(hidden.shape[:2], device=hidden.device) if attention_mask is None else attention_mask
            vectors = torch.cat([pooled(hidden, mask, name) for name in self.poolings], dim=1)
        for layer in self.dense:
            vectors = layer(vectors)
        return functional.normalize(vectors, dim=1) if self.normalise else vectors


def pooled(hidden: Tensor, mask: Tensor, name: str) -> Tensor:
    """Pools token vectors, float32 (n, length, h), into one vector a text, float32 (n, h).

    Parameters
    ----------
    mask : (n, length), 1 at tokens; padding is on the right
    name : one of `POOLINGS`
    """
    if name == 'cls':
        return hidden[:, 0]
    lengths = mask.sum(dim=1).long()
    if name == 'lasttoken':
        return hidden[torch.arange(len(hidden), device=hidden.device), lengths - 1]
    if name == 'max':
        return hidden.masked_fill(~mask.bool()[..., None], -torch.inf).amax(dim=1)
    weights = mask.float()
    if name == 'weightedmean':
        weights = weights * torch.arange(1, hidden.shape[1] + 1, device=hidden.device)
    total = torch.einsum('nlh,nl->nh', hidden, weights)
    divisor = weights.sum(dim=1, keepdim=True)
    return total / (divisor.sqrt() if name == 'mean_sqrt_len_tokens' else divisor)


class _Dense(nn.Module):
    """A linear layer in float32, and its activation."""

    def __init__(self, step: DenseStep) -> None:
        super().__init__()
        self.linear = nn.Linear(step.size_in, step.size_out, step.bias)
        self.activation = ACTIVATIONS[step.activation]
        try:
            self.load_state_dict(load_file(step.weights))
        except (SafetensorError, RuntimeError) as error:
            why = ' '.join(str(error).split())
            raise DamagedFileError(
                f'{step.weights} is not of its Dense module ({why}): fetch the model again'
            ) from error

    def forward(self, vectors: Tensor) -> Tensor:
        return self.activation(self.linear(vectors))

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        moved = super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.linear.float()  # whatever dtype the body has
        return moved


class _TransformersModel(nn.Module):
    """A model of transformers, called like this package's BERT.

    Parameters
    ----------
    model : the model
    output : name of the output to give, in float32
    """

    def __init__(self, model: Any, output: str) -> None:
        super().__init__()
        self.model, self.output = model, output
        knows = 'token_type_ids' in inspect.signature(model.forward).parameters
        self.has_types = knows and (getattr(model.config, 'type_vocab_size', 0) or 0) > 1

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask.long()
        types = {'token_type_ids': token_type_ids} if self.has_types else {}
        outputs = self.model(input_ids=input_ids, attention_mask=mask, **types)
        return getattr(outputs, self.output).float()  # type: ignore[no-any-return]


def encoder_body(checkpoint: Checkpoint) -> nn.Module:
    """The body of a bi-encoder, float32, on the CPU.

    Raises
    ------
    DamagedFileError
        where weights are missing or do not fit the model
    InputError
        for a model that transformers cannot open, or a BERT with settings that are not supported
    """
    if _is_bert(checkpoint):
        config = BertConfig.from_dict(checkpoint.config)
        return load_model(lambda: RepBert(config), checkpoint).bert  # a BERT without a head
    return _TransformersModel(_opened('AutoModel', checkpoint, 'pooler.'), 'last_hidden_state')


def classifier(checkpoint: Checkpoint) -> nn.Module:
    """A cross-encoder with one label: ids to logits, float32 (n, 1). Errors are those of `encoder_body`."""
    if _is_bert(checkpoint):
        config = BertConfig.from_dict(checkpoint.config)
        return load_model(lambda: CrossEncoder(config, labels=1), checkpoint)
    return _TransformersModel(_opened('AutoModelForSequenceClassification', checkpoint), 'logits')


def _is_bert(checkpoint: Checkpoint) -> bool:
    return bool(checkpoint.config.get('model_type', 'bert') == 'bert')


def _opened(kind: str, checkpoint: Checkpoint, *may_lack: str) -> Any:
    """A model of the transformers class `kind`; weights whose names begin with one of `may_lack` may be missing."""
    import transformers

    kind_class = getattr(transformers, kind)
    try:
        model, report = kind_class.from_pretrained(
            checkpoint.folder,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
        )
    except (ValueError, OSError, RuntimeError, KeyError) as error:
        why = ' '.join(str(error).split())[:200]
        raise InputError(f"'{checkpoint.name}' cannot be opened by transformers without remote code: {why}") from error
    lacking = sorted(name for name in report['missing_keys'] if not name.startswith(may_lack))
    if lacking or report['mismatched_keys']:
        names = lacking or sorted(str(own[0]) for own in report['mismatched_keys'])
        raise DamagedFileError(f"checkpoint '{checkpoint.name}' does not fit its model: {', '.join(names[:3])} missing")
    return model.eval()
