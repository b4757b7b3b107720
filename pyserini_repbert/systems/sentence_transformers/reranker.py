"""Reranking with a cross-encoder of sentence-transformers.

This package's engine runs those over BERT, RoBERTa and XLM-R, on PyTorch or ONNX Runtime;
sentence-transformers runs all others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pyserini_repbert.encode.text_network import LazyNetworks
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.models.checkpoints.checkpoint import (
    AnyCheckpoint,
    open_checkpoint,
)
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.cross_encoder import CrossEncoder
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.ranking import Candidate, Ranking
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
from pyserini_repbert.systems.sentence_transformers.engine import (
    Engine,
    OwnEngine,
    TheirEngine,
    cross_encoder_tensors,
    open_either,
)
from pyserini_repbert.systems.sentence_transformers.folder import (
    SCORE_ACTIVATIONS,
    Unsupported,
    read_cross_encoder,
)
from pyserini_repbert.systems.sentence_transformers.loading import folder_digest, open_model
from pyserini_repbert.systems.sentence_transformers.pairs import read_second_type
from pyserini_repbert.systems.sentence_transformers.tokenizing import open_tokenizer
from pyserini_repbert.trace import SILENT, Trace


@dataclass(frozen=True)
class _OpenedModel:
    """What runs a cross-encoder, and the activation of a single label's score.

    Attributes
    ----------
    engine : gives a score for each label, before the activation
    activation : 'identity' or 'sigmoid'
    """

    engine: Engine
    activation: str


class SentenceCrossEncoderReranker(Reranker, recorded_as='SentenceCrossEncoderReranker'):
    """Scores are the model's, after the activation that its folder names.

    Of a model with several labels, they are the logarithms of the probability of the label that
    counts: of two, the second, which means relevant in monoBERT; of more, `label` has to say it.

    Parameters
    ----------
    model : a folder of sentence-transformers
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    precision : 'float32', 'bfloat16', 'float16', or 'auto'
    max_length : tokens of the longest input, special tokens included; default: as the folder says
    label : the name or the number of the label that counts, of several
    backend : 'torch', 'onnx', 'onnx-int8', as for monoBERT; 'torch' alone where
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
        self._token_budget = token_budget
        opened = open_either(
            self.name,
            own=lambda: self._open_own(usable_device(device), chosen),
            theirs=lambda reason: self._open_theirs(device, chosen, reason),
        )
        self._engine = opened.engine
        self._activation = opened.activation
        self.engine = self._engine.name
        if isinstance(self._engine, OwnEngine):
            self.tokenizer = self._engine.tokenizer
            self.work = Work()
        self._label = self._label_number(label)
        most = self._engine.max_length
        if max_length is None:
            max_length = most
        self.max_tokens = checked_length(self.name, max_length, most)
        # Copies of this reranker share the prepared inputs.
        self._prepared: dict[Hashable, Any] = {}

    def _open_own(self, device: torch.device, precision: Precision) -> _OpenedModel:
        """The model in this package's engine. Raises Unsupported if it does not run it."""
        model = read_cross_encoder(self.checkpoint.folder, self.name)
        tokenizer = open_tokenizer(model.body)
        # Refuses a folder whose pairs depend on the release of transformers.
        read_second_type(tokenizer)
        tensors = cross_encoder_tensors(model.body)
        if 'classifier.weight' not in tensors:
            raise MismatchError(
                f"checkpoint '{self.name}' has no classifier: give a reranker's checkpoint"
            )
        n_labels = len(tensors['classifier.weight'])
        network = load_model(
            partial(CrossEncoder, model.body.config, n_labels),
            model.body.checkpoint,
            tensors=tensors,
        )
        forward = open_forward(
            network,
            self.backend,
            device=device,
            dtype=precision.dtype(device),
            weights_sha256=lambda: self.weights_sha256,
        )
        usual = 'sigmoid' if n_labels == 1 else 'identity'
        networks = LazyNetworks.made(forward, str(device))
        engine = OwnEngine(tokenizer, networks, n_labels)
        return _OpenedModel(engine, model.activation or usual)

    def _open_theirs(self, device: str, precision: Precision, reason: Unsupported) -> _OpenedModel:
        """The model in sentence-transformers.

        Raises InputError for ONNX Runtime, with the reason why this package's engine is not used.
        """
        if self.backend is not Backend.TORCH:
            raise InputError(
                f"'{self.name}' is run by sentence-transformers ({reason}), which has no "
                f"backend '{self.backend}' here: leave it out",
                parameters=('backend',),
            ) from reason
        from torch.nn import Identity

        model = open_model('CrossEncoder', self.checkpoint.folder, device, precision)
        activation = type(model.activation_fn)
        named = f'{activation.__module__}.{activation.__qualname__}'
        # Activations unknown here are applied there.
        is_applied_there = model.num_labels == 1 and named not in SCORE_ACTIVATIONS
        activation_fn = None if is_applied_there else Identity()
        run = partial(model.predict, activation_fn=activation_fn)
        engine = TheirEngine(model, run, model.num_labels)
        return _OpenedModel(engine, SCORE_ACTIVATIONS.get(named, 'identity'))

    def _label_number(self, label: str | None) -> int:
        """The number of the label that counts. Raises MismatchError if that is not said."""
        n_labels = self._engine.n_outputs
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
            'activation': self._activation,
            'backend': str(self.backend),
            'engine': self.engine,
        }

    def prepare(self, queries: Sequence[str], lists: Sequence[Ranking]) -> None:
        self._prepared[self._key(queries, lists)] = self._prepare_pairs(queries, lists)

    def _prepare_pairs(self, queries: Sequence[str], lists: Sequence[Ranking]) -> Any:
        return self._engine.prepare_pairs(each_pair(queries, lists), self.max_tokens)

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
            prepared = self._prepare_pairs(queries, lists)
        if self.work is not None:
            inputs = prepared.inputs
            self.work.candidates += len(inputs)
            self.work.inferences += len(inputs)
            self.work.truncated += prepared.n_truncated
            self.work.tokens += int(inputs.lengths.sum())
        logits = self._engine.run_pairs(prepared, self._token_budget, on_progress)
        if not np.isfinite(logits).all():
            raise DamagedFileError(
                f"'{self.name}' gave scores that are not finite: check it, or use float32"
            )
        return in_lists(self._scores(logits.astype(np.float64)), lists)

    def _scores(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores (n,) of logits (n, labels)."""
        if self._engine.n_outputs > 1:
            total: NDArray[np.float64] = np.logaddexp.reduce(logits, axis=1)
            return logits[:, self._label] - total
        if self._activation == 'sigmoid':
            return _sigmoid(logits[:, 0])
        return logits[:, 0]

    def explain(
        self, query: str, hits: Ranking, settings: ExplanationSettings, trace: Trace = SILENT
    ) -> dict[str, Any]:
        """The score of each hit, and its probability, in monoBERT's form.

        Of a model without an activation, the probability is the sigmoid of the score. `query`,
        `Reranker.explain` explains `hits`, `settings` and `trace`.
        """
        scores = self.scores_of(query, hits, trace)
        probabilities = scores
        if self._engine.n_outputs > 1:
            probabilities = np.exp(scores)
        elif self._activation == 'identity':
            probabilities = _sigmoid(scores)
        return {
            'system': 'monobert',
            'docids': list(hits.docids),
            'scores': rounded(scores),
            'probabilities': rounded(probabilities),
            'inferences': self.inferences(len(hits)),
        }

    def reason(self, query: str, hit: Candidate) -> str:
        if self.score_share is not None:
            # A mixed score is not a probability.
            return super().reason(query, hit)
        if self._engine.n_outputs > 1:
            return f'relevant with p = {np.exp(min(hit.score, 0.0)):.4f}'
        if self._activation == 'sigmoid':
            return f'scored {hit.score:.4f} by the model, between 0 and 1'
        return f'scored {hit.score:.4f} by the model, which is not a probability'


def _sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (1 + exp(-x)), without overflow."""
    probabilities: NDArray[np.float64] = np.exp(-np.logaddexp(0.0, -values))
    return probabilities
