"""What the rerankers with a cross-encoder share: the checkpoint, its head, texts to tokens, batches to logits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.models.batching import Forward, run_batched
from pyserini_repbert.models.bert import BertConfig
from pyserini_repbert.models.checkpoint import Checkpoint, load_strictly, open_checkpoint
from pyserini_repbert.models.cross_encoder import LABELS, CrossEncoder, logit_differences
from pyserini_repbert.models.layouts import MAX_TOKENS, Built
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank.base import Progress, Reranker, Work

HEAD = 'classifier.weight'


class Backend(StrEnum):
    """What runs the model: PyTorch; or ONNX Runtime on a CPU, in float32 or with weights of 8 bits."""

    TORCH = 'torch'
    ONNX = 'onnx'
    ONNX_INT8 = 'onnx-int8'


class CrossEncoderReranker(Reranker):
    """Base of `MonoBertReranker` and `DuoBertReranker`, which document the parameters.

    Attributes
    ----------
    name : the checkpoint's catalog name or folder
    max_tokens : length of the longest model input, special tokens included
    precision : what the model runs in, never 'auto'
    work : what it has done so far
    """

    system: str
    module: type[CrossEncoder]

    def __init__(
        self,
        model: str | Path | Checkpoint,
        device: str,
        precision: Precision | str,
        backend: Backend | str,
        max_length: int | None,
        token_budget: int | None,
    ) -> None:
        opened = model if isinstance(model, Checkpoint) else open_checkpoint(model, 'rerankers')
        self.ranking = opened.system(self.system)
        config = BertConfig.from_dict(opened.config)
        self.name = opened.name
        self.device = usable_device(device)
        try:
            self.backend = Backend(backend)
        except ValueError as error:
            raise InputError(f"backend '{backend}' is unknown: expected one of {', '.join(Backend)}") from error
        chosen = Precision.parse(precision)
        if chosen is Precision.AUTO and self.backend is not Backend.TORCH:
            chosen = Precision.FLOAT32
        self.dtype = chosen.dtype(self.device)
        self.precision = 'int8' if self.backend is Backend.ONNX_INT8 else chosen.on(self.device)
        self.max_tokens = self._limit(config, max_length)
        self.pieces = opened.word_pieces()
        self.token_budget = token_budget
        self.work: Work = Work()
        self._checkpoint = opened
        self._forward = self._make_forward(self._loaded(config))

    @property
    def weights_sha256(self) -> str:
        """Checksum of the checkpoint's weights."""
        return self._checkpoint.weights_sha256

    def identity(self) -> Mapping[str, object]:
        """The checkpoint, and every setting that changes a score."""
        settings = {'max_tokens': self.max_tokens, 'dtype': str(self.precision), 'backend': str(self.backend)}
        return {**super().identity(), **settings}

    def _limit(self, config: BertConfig, max_length: int | None) -> int:
        positions = config.max_position_embeddings
        chosen = max_length or int(self.ranking.get('max_length', min(MAX_TOKENS, positions)))
        if chosen > positions:
            raise InputError(f"maximum length {chosen} was given, '{self.name}' has {positions} positions: give fewer")
        return chosen

    def _loaded(self, config: BertConfig) -> CrossEncoder:
        tensors = self._checkpoint.tensors()
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
        with torch.device('meta'):
            model = self.module(config, labels)
        model = model.to_empty(device='cpu')
        load_strictly(model, self._checkpoint, tensors=tensors)
        return model.eval()

    def _make_forward(self, model: CrossEncoder) -> Forward:
        if self.backend is Backend.TORCH:
            return model.to_device(self.device, self.dtype)
        from pyserini_repbert.rerank.onnx_backend import OnnxForward

        if self.device.type != 'cpu' or self.dtype != torch.float32:
            raise InputError(f"backend '{self.backend}' runs in float32 on a CPU: leave out device and precision")
        return OnnxForward(model, self.weights_sha256, self.backend is Backend.ONNX_INT8)

    def _tokens(self, texts: Iterable[str]) -> dict[str, list[int]]:
        """The wordpieces of each distinct text: a text is tokenised once, however often it is used."""
        distinct = list(dict.fromkeys(texts))
        return dict(zip(distinct, self.pieces.ids(distinct), strict=True))

    def _texts(self, queries: Sequence[str], lists: Sequence[Sequence[Candidate]]) -> dict[str, list[int]]:
        texts = (candidate.text or '' for candidates in lists for candidate in candidates)
        return self._tokens([*queries, *texts])

    def _differences(self, inputs: Sequence[Built], on_progress: Progress | None) -> NDArray[np.float64]:
        """The logit differences of model inputs, in their order; counted as work."""
        sequences = [built.sequence for built in inputs]
        self.work.inferences += len(sequences)
        self.work.tokens += sum(len(sequence.input_ids) for sequence in sequences)
        if not sequences:
            return np.empty(0)
        logits = run_batched(self._forward, sequences, self.pieces.pad, self.device, self.token_budget, on_progress)
        if not np.isfinite(logits).all():
            raise DamagedFileError(f"'{self.name}' gave logits that are not finite: check it, or use float32")
        return logit_differences(logits)
