"""What rerankers share whose model reads query and passage together.

`TextReranker` opens a checkpoint, tokenises each text once and counts the work: the base of
monoBERT, duoBERT and CEDR. `CrossEncoderReranker` runs a BERT classifier on PyTorch or ONNX
Runtime: the base of monoBERT and duoBERT (https://arxiv.org/abs/1910.14424).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence, Sized
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pyserini_repbert.data.values import Choice
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.models.batching import Forward, run_batched, usual_budget
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint, open_checkpoint
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.cross_encoder import MAX_TOKENS, CrossEncoder, logit_differences
from pyserini_repbert.models.cross_encoder_inputs import CrossEncoderInputs
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.models.tokenizer import ModelInputs
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank.base import Progress, Reranker, Scores, Work


class TextReranker(Reranker):
    """A reranker that reads the texts of candidates with a checkpoint.

    The base opens the checkpoint, tokenises and counts the work; subclasses own the network.

    Parameters
    ----------
    model : catalog name, checkpoint folder, or an open checkpoint
    device : where the network runs: 'cpu', 'cuda', 'cuda:N', 'mps'
    precision : 'float32', 'bfloat16', 'float16', or 'auto': the fastest that the device has
    token_budget : padded tokens in a batch; default: by device

    Attributes
    ----------
    text_limit : the most wordpieces of one text in a model input; a subclass sets it
    """

    work: Work
    text_limit: int

    def __init__(
        self,
        model: AnyCheckpoint,
        device: str,
        precision: Precision | str,
        token_budget: int | None,
    ) -> None:
        chosen = Precision(precision)
        self.checkpoint = open_checkpoint(model, 'rerankers')
        self.name = self.checkpoint.name
        self.device = usable_device(device)
        self.precision: str = chosen.on(self.device)
        self.dtype = chosen.dtype(self.device)
        self.token_budget = usual_budget(token_budget, self.device)
        self.tokenizer = self.checkpoint.tokenizer()
        self.work = Work()
        # Copies of this reranker share the prepared inputs.
        self._prepared: dict[Hashable, Any] = {}

    @property
    def weights_sha256(self) -> str:
        """Checksum of the checkpoint's weights."""
        return self.checkpoint.weights_sha256

    def identity(self) -> Mapping[str, object]:
        return {**super().identity(), 'dtype': str(self.precision)}

    def prepare(self, queries: Sequence[str], lists: Sequence[Ranking]) -> None:
        self._prepared[self._key(queries, lists)] = self._read(queries, lists)

    def _inputs_of(self, queries: Sequence[str], lists: Sequence[Ranking]) -> Any:
        """What `_read` gives, now or when these lists were prepared."""
        if self._prepared:
            prepared = self._prepared.pop(self._key(queries, lists), None)
            if prepared is not None:
                return prepared
        return self._read(queries, lists)

    def _key(self, queries: Sequence[str], lists: Sequence[Ranking]) -> Hashable:
        return tuple(queries), tuple(ranking.docids for ranking in lists)

    def _read(self, queries: Sequence[str], lists: Sequence[Ranking]) -> Any:
        """The wordpiece ids of each distinct query and candidate, by text: each is tokenised once.

        Candidates are tokenised to one wordpiece more than `text_limit`, and than the longest
        query: `PairLayout` compares these lengths.
        """
        distinct = list(dict.fromkeys(queries))
        ids = dict(zip(distinct, self.tokenizer.ids(distinct), strict=True))
        most = max([self.text_limit, *map(len, ids.values())]) + 1
        texts = dict.fromkeys(text for _, text in each_pair(queries, lists))
        others = [text for text in texts if text not in ids]
        return ids | dict(zip(others, self.tokenizer.ids(others, most), strict=True))


def each_pair(queries: Sequence[str], lists: Sequence[Ranking]) -> list[tuple[str, str]]:
    """(query, text) of every candidate, list after list; '' for a candidate without text."""
    pairs = []
    for query, candidates in zip(queries, lists, strict=True):
        pairs += [(query, candidate.text or '') for candidate in candidates]
    return pairs


def in_lists(scores: NDArray[Any], lists: Sequence[Sized]) -> Scores:
    """Scores in the order of `each_pair`, cut into an array for each list."""
    ends = np.cumsum([0, *map(len, lists)]).tolist()
    return [scores[start:end] for start, end in pairwise(ends)]


def checked_length(name: str, length: int, most: int) -> int:
    """The length. Raises InputError unless the model `name` reads inputs of so many tokens."""
    if not 1 <= length <= most:
        raise InputError(
            f"maximum length {length} was given, '{name}' reads {most} tokens: give 1 to {most}"
        )
    return length


class Backend(Choice, what='backend'):
    """The library that runs the model.

    `torch`: PyTorch. `onnx`: ONNX Runtime on a CPU, in float32. `onnx-int8`: the same with weights
    of 8 bits.
    """

    TORCH = 'torch'
    ONNX = 'onnx'
    ONNX_INT8 = 'onnx-int8'

    def precision(self, chosen: Precision | str) -> Precision:
        """The precision for this backend: 'auto' is float32 on ONNX Runtime."""
        if Precision(chosen) is Precision.AUTO and self is not Backend.TORCH:
            return Precision.FLOAT32
        return Precision(chosen)


def open_forward(
    network: CrossEncoder,
    backend: Backend,
    *,
    device: torch.device,
    dtype: torch.dtype,
    weights_sha256: Callable[[], str],
) -> Forward:
    """A network's forward pass on a backend.

    Parameters
    ----------
    network : in float32 on the CPU
    backend : what runs it
    device, dtype : of the network in PyTorch
    weights_sha256 : gives the weights' checksum, which names what ONNX Runtime reads: it is
        exported once

    Raises InputError for ONNX Runtime on a device that is not a CPU, or in another precision.
    """
    chosen = Backend(backend)
    if chosen is Backend.TORCH:
        return network.to_device(device, dtype)
    from pyserini_repbert.rerank.onnx_backend import OnnxForward

    if device.type != 'cpu' or dtype != torch.float32:
        raise InputError(
            f"backend '{chosen}' runs in float32 on a CPU: leave out device and precision"
        )
    return OnnxForward(network, weights_sha256(), chosen is Backend.ONNX_INT8)


class CrossEncoderReranker(TextReranker):
    """A reranker whose network classifies a query with one or two candidates.

    The base of `MonoBertReranker`, which documents the parameters, and of `DuoBertReranker`.

    Attributes
    ----------
    system : the name of the system whose checkpoints it reads
    module : the class of the network
    builder : the class that builds model inputs
    layouts : how its inputs may be cut
    """

    system: str
    module: type[CrossEncoder]
    builder: type[CrossEncoderInputs]
    layouts: type[Choice]

    def __init__(
        self,
        model: AnyCheckpoint,
        device: str = 'cpu',
        precision: Precision | str = Precision.FLOAT32,
        layout: str | None = None,
        max_length: int | None = None,
        backend: Backend | str = Backend.TORCH,
        token_budget: int | None = None,
    ) -> None:
        self.backend = Backend(backend)
        if layout is not None:
            self.layouts(layout)
        super().__init__(model, device, self.backend.precision(precision), token_budget)
        if self.backend is Backend.ONNX_INT8:
            self.precision = 'int8'
        self.ranking = self.checkpoint.system(self.system)
        config = BertConfig.from_dict(self.checkpoint.config)
        positions = config.max_position_embeddings
        if max_length is None:
            max_length = int(self.ranking.get('max_length', min(MAX_TOKENS, positions)))
        self.max_tokens = checked_length(self.name, max_length, positions)
        self.text_limit = self.max_tokens
        self._forward = open_forward(
            self._loaded(config),
            self.backend,
            device=self.device,
            dtype=self.dtype,
            weights_sha256=lambda: self.weights_sha256,
        )
        layout = layout or self.ranking.get('layout', self.builder.layout)
        max_query = int(self.ranking.get('max_query_length', self.builder.max_query))
        self.inputs = self.builder(self.tokenizer, layout, self.max_tokens, max_query)

    def identity(self) -> Mapping[str, object]:
        return {
            **super().identity(),
            'max_tokens': self.max_tokens,
            'backend': str(self.backend),
            'layout': str(self.inputs.layout),
            'max_query': self.inputs.max_query,
        }

    def _loaded(self, config: BertConfig) -> CrossEncoder:
        """The network with the checkpoint's weights.

        Raises MismatchError for a checkpoint without a classifier of 1 or 2 labels.
        """
        tensors = self.checkpoint.tensors()
        labels = len(tensors.get('classifier.weight', ()))
        if labels not in (1, 2):
            head = f'a classifier of {labels} labels' if labels else 'no classifier'
            raise MismatchError(
                f"checkpoint '{self.name}' has {head}, {self.system} needs one of 2 labels (the "
                'second is "relevant") or 1: give a reranker\'s checkpoint'
            )
        return load_model(partial(self.module, config, labels), self.checkpoint, tensors=tensors)

    def _differences(self, inputs: ModelInputs, on_progress: Progress) -> NDArray[np.float64]:
        """The log-odds of relevance of model inputs, float64 (n,), in their order.

        They are counted as work.
        """
        self.work.inferences += len(inputs)
        self.work.tokens += int(inputs.lengths.sum())
        logits = run_batched(
            self._forward, inputs, self.tokenizer.pad, self.device, self.token_budget, on_progress
        )
        if not np.isfinite(logits).all():
            raise DamagedFileError(
                f"'{self.name}' gave logits that are not finite: check it, or use float32"
            )
        return logit_differences(logits)
