"""Rerankers whose model reads query and passage together: what they share, and monoBERT."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Sized
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
from pyserini_repbert.models.cross_encoder import (
    MAX_TOKENS,
    CrossEncoder,
    logit_differences,
)
from pyserini_repbert.models.cross_encoder_inputs import CrossEncoderInputs
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.models.tokenizer import ModelInputs
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank.base import Progress, Reranker, Scores, Work


class TextReranker(Reranker):
    """Opens a checkpoint and counts work; subclasses own the model and document the parameters."""

    work: Work
    text_limit: int  # wordpieces of a text that a model input has at most

    def __init__(
        self,
        model: AnyCheckpoint,
        device: str,
        precision: Precision | str,
        token_budget: int | None,
    ) -> None:
        self.checkpoint = open_checkpoint(model, 'rerankers')
        self.name = self.checkpoint.name
        self.device = usable_device(device)
        self.precision: str = Precision(precision).on(self.device)
        self.dtype = Precision(precision).dtype(self.device)
        self.token_budget = usual_budget(token_budget, self.device)
        self.tokenizer = self.checkpoint.tokenizer()
        self.work = Work()
        self._prepared: dict[Hashable, Any] = {}  # shared by copies

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
        prepared = self._prepared.pop(self._key(queries, lists), None) if self._prepared else None
        return self._read(queries, lists) if prepared is None else prepared

    def _key(self, queries: Sequence[str], lists: Sequence[Ranking]) -> Hashable:
        return tuple(queries), tuple(ranking.docids for ranking in lists)

    def _read(self, queries: Sequence[str], lists: Sequence[Ranking]) -> Any:
        """The wordpiece ids of each distinct query and text, by text: each is tokenised once.

        Of a long text there are more than `text_limit`, and more than of any query: what
        `PairLayout` compares.
        """
        distinct = list(dict.fromkeys(queries))
        ids = dict(zip(distinct, self.tokenizer.ids(distinct), strict=True))
        most = max([self.text_limit, *map(len, ids.values())]) + 1
        texts = (candidate.text or '' for candidates in lists for candidate in candidates)
        others = [text for text in dict.fromkeys(texts) if text not in ids]
        return ids | dict(zip(others, self.tokenizer.ids(others, most), strict=True))


def each_pair(queries: Sequence[str], lists: Sequence[Ranking]) -> list[tuple[str, str]]:
    """(query, text) of every candidate, list after list; '' for a candidate without text."""
    pairs = zip(queries, lists, strict=True)
    return [
        (query, candidate.text or '') for query, candidates in pairs for candidate in candidates
    ]


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
    """The library that runs the model: PyTorch; or ONNX Runtime on a CPU, in float32 or with
    weights of 8 bits.
    """

    TORCH = 'torch'
    ONNX = 'onnx'
    ONNX_INT8 = 'onnx-int8'


class CrossEncoderReranker(TextReranker):
    """Base of `MonoBertReranker`, which documents the parameters, and `DuoBertReranker`."""

    system: str  # of its checkpoints
    module: type[CrossEncoder]
    builder: type[CrossEncoderInputs]  # of model inputs

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
        chosen = Precision(precision)
        if chosen is Precision.AUTO and self.backend is not Backend.TORCH:
            chosen = Precision.FLOAT32
        super().__init__(model, device, chosen, token_budget)
        if self.backend is Backend.ONNX_INT8:
            self.precision = 'int8'
        self.ranking = self.checkpoint.system(self.system)
        config = BertConfig.from_dict(self.checkpoint.config)
        positions = config.max_position_embeddings
        usual = int(self.ranking.get('max_length', min(MAX_TOKENS, positions)))
        self.max_tokens = checked_length(
            self.name, usual if max_length is None else max_length, positions
        )
        network = self._loaded(config)
        self.text_limit = self.max_tokens
        self._forward: Forward
        if self.backend is Backend.TORCH:
            self._forward = network.to_device(self.device, self.dtype)
        else:
            from pyserini_repbert.rerank.onnx_backend import OnnxForward

            if self.device.type != 'cpu' or self.dtype != torch.float32:
                raise InputError(
                    f"backend '{self.backend}' runs in float32 on a CPU: leave out device and "
                    f'precision'
                )
            self._forward = OnnxForward(
                network, self.weights_sha256, self.backend is Backend.ONNX_INT8
            )
        layout = layout or self.ranking.get('layout', self.builder.layout)
        max_query = int(self.ranking.get('max_query_length', self.builder.max_query))
        self.inputs = self.builder(self.tokenizer, layout, self.max_tokens, max_query)

    def identity(self) -> Mapping[str, object]:
        settings = {'max_tokens': self.max_tokens, 'backend': str(self.backend)}
        return {
            **super().identity(),
            **settings,
            'layout': str(self.inputs.layout),
            'max_query': self.inputs.max_query,
        }

    def _loaded(self, config: BertConfig) -> CrossEncoder:
        tensors = self.checkpoint.tensors()
        labels = len(tensors.get('classifier.weight', ()))
        if labels not in (1, 2):
            head = f'a classifier of {labels} labels' if labels else 'no classifier'
            raise MismatchError(
                f"checkpoint '{self.name}' has {head}, {self.system} needs one of 2 labels (the "
                f'second is '
                '"relevant") or 1: give a reranker\'s checkpoint'
            )
        return load_model(partial(self.module, config, labels), self.checkpoint, tensors=tensors)

    def _differences(self, inputs: ModelInputs, on_progress: Progress) -> NDArray[np.float64]:
        """The logit differences of model inputs, float64 (n,), in their order; counted as work."""
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
