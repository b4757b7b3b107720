"""What runs a folder of sentence-transformers: this package's network, or that package.

An engine gives a row of numbers for each text, or for each pair of a query and a text. What a row
means is the head's: a vector (`encoder.py`), or a score for each label (`reranker.py`).
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.values import has_surrogates
from pyserini_repbert.encode.text_network import LazyNetworks, TextNetwork
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.checkpoints.folder import WEIGHTS
from pyserini_repbert.models.checkpoints.weights import read_weights
from pyserini_repbert.models.precision import usable_device
from pyserini_repbert.models.token_ids import Progress, TokenIds
from pyserini_repbert.record import OWN_ENGINE
from pyserini_repbert.systems.sentence_transformers.folder import BiEncoder, Body, Unsupported
from pyserini_repbert.systems.sentence_transformers.loading import BATCH, ENGINE
from pyserini_repbert.systems.sentence_transformers.tokenizing import FolderTokenizer

if TYPE_CHECKING:
    from torch import Tensor

    from pyserini_repbert.systems.sentence_transformers.pairs import BuiltPairs

Rows = NDArray[np.float32]
Opened = TypeVar('Opened')

# Inputs between two calls of a progress callback.
CHUNK = 1024
# The most tokens of an input if the model sets no limit.
NO_LIMIT = 10**6
# [CLS] and [SEP]
_SPECIALS = 2
# Weights in a folder, by the beginnings of their names in this package's networks.
BODY = 'bert.'
_POOLER = 'bert.pooler.'
_CLASSIFIER = 'classifier.'

_logger = logging.getLogger(__name__)


class Engine(ABC):
    """What runs a model.

    Attributes
    ----------
    name : as records have it
    tokenizer : this package's, or transformers'
    max_length : the most tokens of an input, special tokens and prompt included
    n_outputs : how many numbers a row has
    """

    name: str
    tokenizer: Any
    max_length: int
    n_outputs: int

    @abstractmethod
    def run_texts(
        self,
        texts: Sequence[str] | TokenIds,
        limit: int,
        token_budget: int | None,
        on_progress: Progress,
    ) -> Rows:
        """A row for each text, float32 (n, n_outputs).

        Parameters
        ----------
        texts : texts; the engine of this package also takes token ids
        limit : tokens kept of each, special tokens and prompt included
        token_budget : padded tokens in a batch; sentence-transformers does not use it
        on_progress : called with the number of texts done since the last call
        """

    @abstractmethod
    def prepare_pairs(self, pairs: Sequence[tuple[str, str]], limit: int) -> Any:
        """What `run_pairs` reads of (query, text) pairs, cut to `limit` tokens."""

    @abstractmethod
    def run_pairs(self, prepared: Any, token_budget: int | None, on_progress: Progress) -> Rows:
        """A row for each pair, float32 (n, n_outputs).

        Parameters
        ----------
        prepared : as `prepare_pairs` returns it
        token_budget : padded tokens in a batch; sentence-transformers does not use it
        on_progress : called with the number of pairs done since the last call
        """


class OwnEngine(Engine):
    """This package's network.

    Parameters
    ----------
    opened : the folder's tokenizer
    networks : the network
    n_outputs : how many numbers it gives for an input
    """

    name = OWN_ENGINE

    def __init__(self, opened: FolderTokenizer, networks: LazyNetworks, n_outputs: int) -> None:
        self.tokenizer = opened.tokenizer
        self.max_length = opened.max_length
        self.n_outputs = n_outputs
        self._opened = opened
        self._networks = networks

    def with_prompt(self, prompt: str) -> OwnEngine:
        """The same network, with another prompt before each text."""
        opened = replace(self._opened, tokenizer=self.tokenizer.with_prompt(prompt))
        return OwnEngine(opened, self._networks, self.n_outputs)

    @cached_property
    def _texts(self) -> TextNetwork:
        return TextNetwork(self._networks, self.tokenizer, self.n_outputs)

    def run_texts(
        self,
        texts: Sequence[str] | TokenIds,
        limit: int,
        token_budget: int | None,
        on_progress: Progress,
    ) -> Rows:
        wordpieces = max(0, limit - _SPECIALS)
        return self._texts.encode(texts, wordpieces, token_budget, on_progress)

    def prepare_pairs(self, pairs: Sequence[tuple[str, str]], limit: int) -> BuiltPairs:
        from pyserini_repbert.systems.sentence_transformers.pairs import PairBuilder

        return PairBuilder(self._opened, limit).build(pairs)

    def run_pairs(
        self, prepared: BuiltPairs, token_budget: int | None, on_progress: Progress
    ) -> Rows:
        if not len(prepared.inputs):
            return np.empty((0, self.n_outputs), np.float32)
        from pyserini_repbert.models.batching import run_batched, usual_budget

        device = usable_device(self._networks.device_name)
        return run_batched(
            self._networks.forward,
            prepared.inputs,
            self.tokenizer.pad,
            device,
            usual_budget(token_budget, device),
            on_progress,
        )


def bi_encoder_tensors(model: BiEncoder, mapped: str | None = None) -> dict[str, Tensor]:
    """The tensors of a `SentenceBert`: the body's without its pooler, and the dense layers'.

    Parameters
    ----------
    model : what its folder says
    mapped : weights whose names end so stay in their file
    """
    tensors = {}
    for name, value in model.body.checkpoint.tensors(mapped).items():
        # Other heads, as of a language model, have no part in the vectors.
        if name.startswith(BODY) and not name.startswith(_POOLER):
            tensors[name] = value
    for number, layer in enumerate(model.layers):
        if layer is not None:
            for name, value in read_weights(layer.folder / WEIGHTS).items():
                tensors[f'layers.{number}.{name}'] = value
    return tensors


def cross_encoder_tensors(body: Body) -> dict[str, Tensor]:
    """The tensors of a `CrossEncoder`: the body's, and its classifier's."""
    return {
        name: value
        for name, value in body.checkpoint.tensors().items()
        if name.startswith((BODY, _CLASSIFIER))
    }


@dataclass(frozen=True)
class CutInputs:
    """Texts or pairs, and how many tokens sentence-transformers keeps of each."""

    inputs: Sequence[Any]
    limit: int


class TheirEngine(Engine):
    """sentence-transformers.

    Parameters
    ----------
    model : of that package
    run : its method that gives an array of rows for texts or pairs
    n_outputs : how many numbers a row has
    """

    name = ENGINE

    def __init__(self, model: Any, run: Callable[..., Any], n_outputs: int) -> None:
        self._model = model
        self._run = run
        self.tokenizer = model.tokenizer
        self.max_length = int(min(model.max_seq_length or math.inf, NO_LIMIT))
        self.n_outputs = n_outputs
        self._limit = self.max_length

    def run_texts(
        self,
        texts: Sequence[str] | TokenIds,
        limit: int,
        token_budget: int | None,
        on_progress: Progress,
    ) -> Rows:
        if isinstance(texts, TokenIds):
            raise InputError('sentence-transformers encodes texts, token ids were given')
        for text in texts:
            if not isinstance(text, str) or has_surrogates(text):
                raise InputError(
                    f'{ascii(text)[:60]} is not text that UTF-8 can hold: fix or remove it'
                )
        return self._rows(CutInputs(texts, limit), on_progress)

    def prepare_pairs(self, pairs: Sequence[tuple[str, str]], limit: int) -> CutInputs:
        return CutInputs(pairs, limit)

    def run_pairs(
        self, prepared: CutInputs, token_budget: int | None, on_progress: Progress
    ) -> Rows:
        return self._rows(prepared, on_progress)

    def _rows(self, cut: CutInputs, on_progress: Progress) -> Rows:
        self._set_limit(cut.limit)
        rows = np.empty((len(cut.inputs), self.n_outputs), np.float32)
        for start in range(0, len(cut.inputs), CHUNK):
            part = list(cut.inputs[start : start + CHUNK])
            output = self._run(part, batch_size=BATCH, show_progress_bar=False)
            rows[start : start + CHUNK] = output.reshape(len(part), self.n_outputs)
            on_progress(len(part))
        return rows

    def _set_limit(self, limit: int) -> None:
        # Some models have no limit, and none can be set.
        if limit != self._limit:
            self._model.max_seq_length = limit
            self._limit = limit


def open_either(
    name: str, own: Callable[[], Opened], theirs: Callable[[Unsupported], Opened]
) -> Opened:
    """The model that `own` opens in this package's engine; if it cannot, the one that `theirs`
    opens.

    Parameters
    ----------
    name : of the model, for the log
    own : raises Unsupported for a model that this package's engine does not run
    theirs : opens it in sentence-transformers; it gets the reason
    """
    try:
        return own()
    except Unsupported as reason:
        model = theirs(reason)
        _logger.info("'%s' is run by %s: %s", name, ENGINE, reason)
        return model
