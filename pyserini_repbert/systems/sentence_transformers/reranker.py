"""Reranking with a cross-encoder of sentence-transformers.

This package's engine runs those over BERT, RoBERTa and XLM-R, on PyTorch or ONNX Runtime;
sentence-transformers runs all others.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pyserini_repbert.data.values import read_object
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.models.batching import run_batched, usual_budget
from pyserini_repbert.models.checkpoints.checkpoint import (
    AnyCheckpoint,
    Checkpoint,
    open_checkpoint,
)
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.cross_encoder import CrossEncoder
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.record import OWN_ENGINE
from pyserini_repbert.rerank.base import (
    ExplanationSettings,
    Progress,
    Reranker,
    Scores,
    Work,
    rounded,
)
from pyserini_repbert.rerank.cross_encoder import (
    Backend,
    checked_length,
    each_pair,
    in_lists,
    open_forward,
)
from pyserini_repbert.systems.sentence_transformers.folder import (
    SCORE_ACTIVATIONS,
    SETTINGS,
    Unsupported,
    read_cross_encoder,
)
from pyserini_repbert.systems.sentence_transformers.loading import (
    BATCH,
    ENGINE,
    folder_digest,
    open_model,
)
from pyserini_repbert.systems.sentence_transformers.pairs import BuiltPairs, PairBuilder
from pyserini_repbert.systems.sentence_transformers.tokenizing import open_tokenizer
from pyserini_repbert.systems.sentence_transformers.weights import cross_encoder_tensors
from pyserini_repbert.trace import SILENT, Trace

# Pairs between two calls of a progress callback.
CHUNK = 1024
_logger = logging.getLogger(__name__)


def is_cross_encoder(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is a cross-encoder of sentence-transformers.

    It is one if it says so in the file of sentence-transformers, or is a classifier that is no
    BERT, or has another number of labels than monoBERT's two. A checkpoint of one of this
    package's systems is none.
    """
    config = checkpoint.config
    if 'ranking' in config:
        return False
    labels = config.get('id2label')
    if isinstance(labels, dict) and len(labels) != 2:
        return True
    if config.get('model_type', 'bert') != 'bert' and _is_classifier(config):
        return True
    settings = checkpoint.folder / SETTINGS
    return settings.is_file() and read_object(settings).get('model_type') == 'CrossEncoder'


def _is_classifier(config: Mapping[str, Any]) -> bool:
    """Whether a config.json names a class of transformers that classifies texts."""
    architectures = config.get('architectures')
    if not isinstance(architectures, list) or not architectures:
        return False
    return str(architectures[0]).endswith('ForSequenceClassification')


class _Engine(ABC):
    """What runs a cross-encoder.

    Attributes
    ----------
    name : as records have it
    n_labels : how many scores the model gives a pair
    max_length : the most tokens of an input, special tokens included
    activation : of a single label's score: 'identity' or 'sigmoid'
    """

    name: str
    n_labels: int
    max_length: int
    activation: str

    @abstractmethod
    def limit(self, max_tokens: int) -> None:
        """Cut inputs to so many tokens, special tokens included."""

    @abstractmethod
    def prepare(self, pairs: Sequence[tuple[str, str]]) -> Any:
        """What `logits` reads, from (query, text) pairs."""

    @abstractmethod
    def logits(self, prepared: Any, on_progress: Progress) -> NDArray[np.float32]:
        """The model's output before the activation, float32 (n, labels)."""


class _OwnEngine(_Engine):
    """This package's network.

    Parameters
    ----------
    checkpoint : the folder
    backend : the library that runs it
    device, precision : where, and in which precision
    token_budget : padded tokens in a batch; default: by device
    weights_sha256 : names what ONNX Runtime reads

    Raises Unsupported for a model that this engine does not know.
    """

    name = OWN_ENGINE

    def __init__(
        self,
        checkpoint: Checkpoint,
        backend: Backend,
        *,
        device: torch.device,
        precision: Precision,
        token_budget: int | None,
        weights_sha256: str,
    ) -> None:
        model = read_cross_encoder(checkpoint.folder, checkpoint.name)
        self._opened = open_tokenizer(model.body)
        if self._opened.second_type is None:
            raise Unsupported('its tokenizer does not say whether it gives token types')
        self._second_type = self._opened.second_type
        self.tokenizer = self._opened.tokenizer
        self.max_length = self._opened.max_length
        self._device = device
        self._token_budget = usual_budget(token_budget, device)
        tensors = cross_encoder_tensors(model.body)
        if 'classifier.weight' not in tensors:
            raise MismatchError(
                f"checkpoint '{checkpoint.name}' has no classifier: give a reranker's checkpoint"
            )
        self.n_labels = len(tensors['classifier.weight'])
        usual = 'identity'
        if self.n_labels == 1:
            usual = 'sigmoid'
        self.activation = model.activation or usual
        network = load_model(
            partial(CrossEncoder, model.body.config, self.n_labels),
            model.body.checkpoint,
            tensors=tensors,
        )
        self._forward = open_forward(
            network,
            backend,
            device=device,
            dtype=precision.dtype(device),
            weights_sha256=weights_sha256,
        )
        self.limit(self.max_length)

    def limit(self, max_tokens: int) -> None:
        self._builder = PairBuilder(self._opened, max_tokens, self._second_type)

    def prepare(self, pairs: Sequence[tuple[str, str]]) -> BuiltPairs:
        return self._builder.build(pairs)

    def logits(self, prepared: BuiltPairs, on_progress: Progress) -> NDArray[np.float32]:
        if not len(prepared.inputs):
            return np.empty((0, self.n_labels), np.float32)
        return run_batched(
            self._forward,
            prepared.inputs,
            self.tokenizer.pad,
            self._device,
            self._token_budget,
            on_progress,
        )


class _TheirEngine(_Engine):
    """sentence-transformers.

    Parameters
    ----------
    checkpoint : the folder
    device, precision : where it runs, and in which precision
    """

    name = ENGINE

    def __init__(self, checkpoint: Checkpoint, device: str, precision: Precision) -> None:
        from torch.nn import Identity

        self._model = open_model('CrossEncoder', checkpoint.folder, device, precision)
        self.n_labels = self._model.num_labels
        self.max_length = self._model.max_seq_length
        activation = type(self._model.activation_fn)
        named = f'{activation.__module__}.{activation.__qualname__}'
        # What is not known here is applied there.
        self.activation = SCORE_ACTIVATIONS.get(named, 'identity')
        is_applied_there = self.n_labels == 1 and named not in SCORE_ACTIVATIONS
        self._activation_fn = None if is_applied_there else Identity()

    def limit(self, max_tokens: int) -> None:
        self._model.max_seq_length = max_tokens

    def prepare(self, pairs: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
        return pairs

    def logits(
        self, prepared: Sequence[tuple[str, str]], on_progress: Progress
    ) -> NDArray[np.float32]:
        logits = np.empty((len(prepared), self.n_labels), np.float32)
        for start in range(0, len(prepared), CHUNK):
            part = list(prepared[start : start + CHUNK])
            predicted = self._model.predict(
                part,
                batch_size=BATCH,
                activation_fn=self._activation_fn,
                show_progress_bar=False,
            )
            logits[start : start + CHUNK] = predicted.reshape(len(part), self.n_labels)
            on_progress(len(part))
        return logits


class SentenceCrossEncoderReranker(Reranker):
    """Scores are those of the model, after the activation that its folder names.

    Of a model with several labels, they are the logarithms of the probability of the label that
    counts: of two, the second, which means relevant in monoBERT; of more, `label` has to say it.

    Parameters
    ----------
    model : a folder of sentence-transformers
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    precision : 'float32', 'bfloat16', 'float16', or 'auto'
    max_length : tokens of the longest input, special tokens included; default: as the folder says
    label : the name or the number of the label that counts, of several
    backend : 'torch', 'onnx', 'onnx-int8', as of monoBERT; 'torch' alone where
        sentence-transformers runs the model
    token_budget : padded tokens in a batch; default: by device

    Attributes
    ----------
    engine : what runs the model, as records have it
    """

    def __init__(
        self,
        model: AnyCheckpoint,
        device: str = 'cpu',
        precision: Precision | str = Precision.FLOAT32,
        max_length: int | None = None,
        label: str | None = None,
        backend: Backend | str = Backend.TORCH,
        token_budget: int | None = None,
    ) -> None:
        self.backend = Backend(backend)
        wanted = self.backend.precision(precision)
        self.checkpoint = open_checkpoint(model, 'rerankers')
        self.name = self.checkpoint.name
        chosen = wanted.on(usable_device(device))
        self.precision = str(chosen)
        if self.backend is Backend.ONNX_INT8:
            self.precision = 'int8'
        self._engine = self._open_engine(device, chosen, token_budget)
        self.engine = self._engine.name
        if isinstance(self._engine, _OwnEngine):
            self.tokenizer = self._engine.tokenizer
            self.work = Work()
        self._label = self._label_number(label)
        most = self._engine.max_length
        if max_length is None:
            max_length = most
        self.max_tokens = checked_length(self.name, max_length, most)
        self._engine.limit(self.max_tokens)
        # Copies of this reranker share what was prepared.
        self._prepared: dict[Hashable, Any] = {}

    def _open_engine(self, device: str, precision: Precision, token_budget: int | None) -> _Engine:
        """This package's engine where it knows the model, else sentence-transformers.

        Raises InputError for ONNX Runtime where that is sentence-transformers.
        """
        try:
            return _OwnEngine(
                self.checkpoint,
                self.backend,
                device=usable_device(device),
                precision=precision,
                token_budget=token_budget,
                weights_sha256=self.weights_sha256,
            )
        except Unsupported as reason:
            if self.backend is not Backend.TORCH:
                raise InputError(
                    f"'{self.name}' is run by sentence-transformers ({reason}), which has no "
                    f"backend '{self.backend}' here: leave it out",
                    parameters=('backend',),
                ) from reason
            _logger.info("'%s' is run by %s: %s", self.name, ENGINE, reason)
        return _TheirEngine(self.checkpoint, device, precision)

    def _label_number(self, label: str | None) -> int:
        """The number of the label that counts. Raises MismatchError where that is not said."""
        n_labels = self._engine.n_labels
        named = self.checkpoint.config.get('id2label') or {}
        names = [str(named.get(str(number), f'LABEL_{number}')) for number in range(n_labels)]
        if label is None and n_labels <= 2:
            return n_labels - 1
        numbers = [str(number) for number in range(n_labels)]
        if label in names:
            return names.index(label)
        if label in numbers:
            return numbers.index(label)
        given = 'none was named'
        if label is not None:
            given = f"'{label}' was named"
        raise MismatchError(
            f"'{self.name}' has the labels {', '.join(names)}, {given}: say which one counts, as "
            f'in label={names[-1]}'
        )

    @cached_property
    def weights_sha256(self) -> str:
        """Checksum over the files of the folder."""
        return folder_digest(self.checkpoint.folder)

    def identity(self) -> Mapping[str, object]:
        return {
            **super().identity(),
            'dtype': self.precision,
            'max_tokens': self.max_tokens,
            'label': self._label,
            'activation': self._engine.activation,
            'backend': str(self.backend),
            'engine': self.engine,
        }

    def prepare(self, queries: Sequence[str], lists: Sequence[Ranking]) -> None:
        prepared = self._engine.prepare(each_pair(queries, lists))
        self._prepared[self._key(queries, lists)] = prepared

    def _key(self, queries: Sequence[str], lists: Sequence[Ranking]) -> Hashable:
        return tuple(queries), tuple(ranking.docids for ranking in lists)

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress = int
    ) -> Scores:
        """The score of each candidate, float64 (n,) a query."""
        prepared = None
        if self._prepared:
            prepared = self._prepared.pop(self._key(queries, lists), None)
        if prepared is None:
            prepared = self._engine.prepare(each_pair(queries, lists))
        if self.work is not None:
            inputs = prepared.inputs
            self.work.candidates += len(inputs)
            self.work.inferences += len(inputs)
            self.work.truncated += prepared.n_truncated
            self.work.tokens += int(inputs.lengths.sum())
        logits = self._engine.logits(prepared, on_progress)
        if not np.isfinite(logits).all():
            raise DamagedFileError(
                f"'{self.name}' gave scores that are not finite: check it, or use float32"
            )
        return in_lists(self._scores(logits.astype(np.float64)), lists)

    def _scores(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores (n,) of logits (n, labels)."""
        if self._engine.n_labels > 1:
            total: NDArray[np.float64] = np.logaddexp.reduce(logits, axis=1)
            return logits[:, self._label] - total
        if self._engine.activation == 'sigmoid':
            return _sigmoid(logits[:, 0])
        return logits[:, 0]

    def explain(
        self, query: str, hits: Ranking, settings: ExplanationSettings, trace: Trace = SILENT
    ) -> dict[str, Any]:
        """The score of each hit, and its probability, in monoBERT's form.

        Of a model without an activation, the probability is the sigmoid of the score. `query`,
        `hits`, `settings` and `trace` are those of `Reranker.explain`.
        """
        scores = self.scores_of(query, hits, trace)
        probabilities = scores
        if self._engine.n_labels > 1:
            probabilities = np.exp(scores)
        elif self._engine.activation == 'identity':
            probabilities = _sigmoid(scores)
        return {
            'system': 'monobert',
            'docids': list(hits.docids),
            'scores': rounded(scores),
            'probabilities': rounded(probabilities),
            'inferences': self.inferences(len(hits)),
        }

    def reason(self, query: str, hit: Candidate) -> str:
        # Mixed with the score of the stage before it, a score may be no probability.
        if self._engine.n_labels > 1:
            return f'relevant with p = {np.exp(min(hit.score, 0.0)):.4f}'
        if self._engine.activation == 'sigmoid':
            return f'scored {hit.score:.4f} by the model, between 0 and 1'
        return f'scored {hit.score:.4f} by the model, which is no probability'


def _sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (1 + exp(-x)), without overflow."""
    probabilities: NDArray[np.float64] = np.exp(-np.logaddexp(0.0, -values))
    return probabilities
