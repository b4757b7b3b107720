"""The base of monoBERT's and duoBERT's rerankers: loading the model, and logit differences of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from pyserini_repbert.data.values import Choice
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.models.batching import Forward
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.cross_encoder import LABELS, CrossEncoder, logit_differences
from pyserini_repbert.models.pair_inputs import MAX_TOKENS, Built, PairInputs, TripleInputs
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.rerank.base import Progress
from pyserini_repbert.rerank.text_reranker import TextReranker

HEAD = 'classifier.weight'


class Backend(Choice, what='backend'):
    """The library that runs the model: PyTorch; or ONNX Runtime on a CPU, in float32 or with weights of 8 bits."""

    TORCH = 'torch'
    ONNX = 'onnx'
    ONNX_INT8 = 'onnx-int8'


class CrossEncoderReranker(TextReranker):
    """Base of `MonoBertReranker`, which documents the parameters, and `DuoBertReranker`.

    Attributes
    ----------
    name : the checkpoint's catalog name or folder
    max_tokens : length of the longest model input, special tokens included
    precision : of the model, never 'auto'
    work : what it has done so far
    system : the system of its checkpoints
    module : the class of its model
    builder : the class that builds model inputs
    """

    system: str
    module: type[CrossEncoder]
    builder: type[PairInputs] | type[TripleInputs]

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
        self.max_tokens = self._limit(config, max_length)
        self._forward = self._make_forward(self._loaded(config))
        self.inputs = self.builder(
            self.tokenizer,
            layout or self.ranking.get('layout', self.builder.layout),
            self.max_tokens,
            int(self.ranking.get('max_query_length', self.builder.max_query)),
        )

    def identity(self) -> Mapping[str, object]:
        """The checkpoint, and every setting that changes a score."""
        settings = {'max_tokens': self.max_tokens, 'backend': str(self.backend)}
        return {**super().identity(), **settings, 'layout': str(self.inputs.layout), 'max_query': self.inputs.max_query}

    def _limit(self, config: BertConfig, max_length: int | None) -> int:
        positions = config.max_position_embeddings
        usual = int(self.ranking.get('max_length', min(MAX_TOKENS, positions)))
        chosen = usual if max_length is None else max_length
        if not 1 <= chosen <= positions:
            raise InputError(
                f"maximum length {chosen} was given, '{self.name}' has {positions} positions: give 1 to {positions}"
            )
        return chosen

    def _loaded(self, config: BertConfig) -> CrossEncoder:
        tensors = self.checkpoint.tensors()
        if HEAD not in tensors:
            raise MismatchError(
                f"checkpoint '{self.name}' has no classifier, which {self.system} needs: "
                "give a reranker's checkpoint (an encoder, for one, has none)"
            )
        labels = len(tensors[HEAD])
        if labels not in LABELS:
            raise MismatchError(
                f"checkpoint '{self.name}' tells {labels} classes apart: {self.system} needs a head with 2 labels "
                '(the second is "relevant") or 1'
            )
        return load_model(partial(self.module, config, labels), self.checkpoint, tensors=tensors)

    def _make_forward(self, model: CrossEncoder) -> Forward:
        if self.backend is Backend.TORCH:
            return model.to_device(self.device, self.dtype)
        from pyserini_repbert.rerank.onnx_backend import OnnxForward

        if self.device.type != 'cpu' or self.dtype != torch.float32:
            raise InputError(f"backend '{self.backend}' runs in float32 on a CPU: leave out device and precision")
        return OnnxForward(model, self.weights_sha256, self.backend is Backend.ONNX_INT8)

    def _differences(self, inputs: Sequence[Built], on_progress: Progress | None) -> NDArray[np.float64]:
        """The logit differences of model inputs, float64 (n,), in their order; counted as work.

        Raises DamagedFileError for logits that are not finite.
        """
        logits = self._logits(inputs, self.tokenizer.pad, on_progress)
        if not np.isfinite(logits).all():
            raise DamagedFileError(f"'{self.name}' gave logits that are not finite: check it, or use float32")
        return logit_differences(logits)
