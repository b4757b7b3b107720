"""Encoders from folders of sentence-transformers.

Vectors are those of its `encode_query` and `encode_document`; where the folder names cosine as its
similarity, they are scaled to length 1, so that inner products are its scores. This package's
engine runs BERT, RoBERTa and XLM-R; sentence-transformers runs everything else.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pyserini_repbert import catalog
from pyserini_repbert.data.values import has_surrogates, read_object
from pyserini_repbert.encode.text_encoder import (
    TextDocumentEncoder,
    TextEncoder,
    TextQueryEncoder,
    Vectors,
)
from pyserini_repbert.encode.text_network import TextNetwork
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.batching import Progress
from pyserini_repbert.models.checkpoints.checkpoint import (
    AnyCheckpoint,
    Checkpoint,
    checkpoint_name,
    encoder_folder,
    folder_of,
    verify,
)
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.models.token_ids import TokenIds
from pyserini_repbert.record import OWN_ENGINE
from pyserini_repbert.systems.sentence_transformers.folder import (
    SETTINGS,
    BiEncoder,
    Unsupported,
    read_bi_encoder,
    read_modules,
    read_prompts,
    read_settings,
    read_truncation,
)
from pyserini_repbert.systems.sentence_transformers.loading import (
    BATCH,
    ENGINE,
    MODULES,
    folder_digest,
    open_model,
)
from pyserini_repbert.systems.sentence_transformers.network import Kept, LayerSizes, SentenceBert
from pyserini_repbert.systems.sentence_transformers.tokenizing import open_tokenizer
from pyserini_repbert.systems.sentence_transformers.weights import bi_encoder_tensors

# Texts between two calls of a progress callback.
CHUNK = 1024
# Stands for the tokens of a text where the model sets no limit.
NO_LIMIT = 10**6
_SIMILARITIES = (None, 'dot', 'cosine')
# [CLS] and [SEP]
_SPECIALS = 2

_logger = logging.getLogger(__name__)


def is_sentence_folder(name: AnyCheckpoint) -> bool:
    """Whether a name means a folder of a bi-encoder of sentence-transformers.

    A folder of one of this package's systems is none, nor is a catalog name: the catalog has its
    system.
    """
    if isinstance(name, Checkpoint):
        return (name.folder / MODULES).is_file() and 'ranking' not in name.config
    if catalog.find('encoders', str(name)) is not None:
        return False
    folder = folder_of(name)
    if not (folder / MODULES).is_file():
        return False
    config = folder / 'config.json'
    return not config.is_file() or 'ranking' not in read_object(config)


class _Engine(ABC):
    """What runs a bi-encoder.

    Attributes
    ----------
    name : as records have it
    dimension : of the vectors
    max_length : the most tokens of an input, special tokens and prompt included
    prompts : by name
    tokenizer : this package's, or that of transformers
    """

    name: str
    dimension: int
    max_length: int
    prompts: Mapping[str, str]
    tokenizer: Any

    @abstractmethod
    def encode(
        self,
        texts: Sequence[str] | TokenIds,
        limit: int,
        token_budget: int | None,
        on_progress: Progress,
    ) -> Vectors:
        """The vectors of texts, float32 (n, d).

        Parameters
        ----------
        texts : texts; the engine of this package also takes token ids
        limit : tokens kept of each, special tokens and prompt included
        token_budget : padded tokens in a batch; sentence-transformers does not use it
        on_progress : called with the number of texts done since the last call
        """


class _OwnEngine(_Engine):
    """This package's network.

    Parameters
    ----------
    model : what its folder says
    settings : of the whole model
    prompt_name : of the prompt before each text
    normalised : whether vectors are scaled to length 1
    device, precision : where the network runs, and in which precision
    mapped : weights whose names end so stay in their file

    Raises Unsupported for prompts or a tokenizer that this engine does not know.
    """

    name = OWN_ENGINE

    def __init__(
        self,
        model: BiEncoder,
        settings: Mapping[str, Any],
        prompt_name: str,
        *,
        normalised: bool,
        device: torch.device,
        precision: Precision,
        mapped: str | None,
    ) -> None:
        self.prompts = read_prompts(settings, 'SentenceTransformer')
        opened = open_tokenizer(model.body, self.prompts.get(prompt_name, ''))
        self.tokenizer = opened.tokenizer
        self.max_length = opened.max_length
        self.dimension = model.dimension
        layers: list[LayerSizes] = []
        for layer in model.layers:
            layers.append(None if layer is None else layer.sizes)
        kept = read_truncation(settings)
        if kept is not None and kept < self.dimension:
            self.dimension = kept
            layers.append(Kept(kept))
        if normalised:
            layers.append(None)
        config = model.body.config
        network = load_model(
            partial(SentenceBert, config, model.poolings, layers),
            model.body.checkpoint,
            tensors=bi_encoder_tensors(model, mapped),
        )
        self.network = network.to_device(device, precision.dtype(device))
        self._texts = TextNetwork(self.network, self.tokenizer, device, self.dimension)

    def encode(
        self,
        texts: Sequence[str] | TokenIds,
        limit: int,
        token_budget: int | None,
        on_progress: Progress,
    ) -> Vectors:
        wordpieces = max(0, limit - _SPECIALS)
        return self._texts.encode(texts, wordpieces, token_budget, on_progress)


class _TheirEngine(_Engine):
    """sentence-transformers.

    Parameters
    ----------
    folder : the model
    method : the method of SentenceTransformer that encodes
    normalised : whether vectors are scaled to length 1
    device, precision : where it runs, and in which precision
    """

    name = ENGINE

    def __init__(
        self, folder: Path, method: str, *, normalised: bool, device: str, precision: Precision
    ) -> None:
        self._model = open_model('SentenceTransformer', folder, device, precision)
        self._encode = getattr(self._model, method)
        self._normalised = normalised
        self.max_length = int(min(self._model.max_seq_length or math.inf, NO_LIMIT))
        self.dimension = len(self._encode(''))
        self.prompts = self._model.prompts or {}
        self.tokenizer = self._model.tokenizer

    def encode(
        self,
        texts: Sequence[str] | TokenIds,
        limit: int,
        token_budget: int | None,
        on_progress: Progress,
    ) -> Vectors:
        if isinstance(texts, TokenIds):
            raise InputError('sentence-transformers encodes texts, token ids were given')
        for text in texts:
            if not isinstance(text, str) or has_surrogates(text):
                raise InputError(
                    f'{ascii(text)[:60]} is no text that UTF-8 can hold: mend or remove it'
                )
        if self.max_length < NO_LIMIT:
            self._model.max_seq_length = limit
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), CHUNK):
            part = list(texts[start : start + CHUNK])
            vectors[start : start + CHUNK] = self._encode(
                part,
                batch_size=BATCH,
                normalize_embeddings=self._normalised,
                show_progress_bar=False,
            )
            on_progress(len(part))
        return vectors


class _SentenceEncoder(TextEncoder):
    """The base of both encoders.

    Parameters
    ----------
    encoder_dir : a catalog name, a folder of sentence-transformers, a repository in the hub's
        cache, or an open checkpoint
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    precision : 'float32', 'bfloat16', 'float16', or 'auto'
    max_length : tokens kept of a text and its prompt, special tokens included; default: as the
        folder says
    model_name : the same as `encoder_dir`: Pyserini's name for it in document encoders

    Attributes
    ----------
    method : the method of SentenceTransformer that encodes
    prompt_name : of the prompt that this method puts before a text
    mapped : the weights whose names end so stay in their file; None: all are read
    engine : what runs the model, as records have it
    tokenizer : this package's engine has one, by which texts can be tokenised beforehand
    """

    method: str
    prompt_name: str
    mapped: str | None = None
    pooling = 'sentence-transformers'
    # `weights_sha256` covers all files.
    config_sha256 = None
    tokenizer_sha256 = None

    def __init__(
        self,
        encoder_dir: AnyCheckpoint | None = None,
        device: str = 'cpu',
        precision: Precision | str = Precision.FLOAT32,
        max_length: int | None = None,
        model_name: str | Path | None = None,
        **_: object,
    ) -> None:
        wanted = Precision(precision)
        chosen = encoder_dir
        if chosen is None:
            chosen = model_name
        if chosen is None:
            raise InputError("no model was given: pass a catalog name ('minilm') or a folder")
        self.name = checkpoint_name(chosen)
        self._folder = encoder_folder(chosen)
        self.device = usable_device(device)
        self.precision = wanted.on(self.device)
        verify(self._folder)
        settings = read_settings(self._folder)
        similarity = settings.get('similarity_fn_name')
        if similarity not in _SIMILARITIES:
            raise InputError(
                f"{self._folder / SETTINGS}: similarity '{similarity}' was given, cosine or dot "
                f'was expected'
            )
        self.normalised = similarity == 'cosine'
        self._engine = self._open_engine(settings, device)
        self.engine = self._engine.name
        if isinstance(self._engine, _OwnEngine):
            self.tokenizer = self._engine.tokenizer
        self.dimension = self._engine.dimension
        self.max_length = self._engine.max_length
        if max_length is None:
            max_length = self.max_length
        self.limit = self._checked(max_length)
        self.unit_length = self.normalised or self._ends_normalised(settings)

    def _ends_normalised(self, settings: Mapping[str, Any]) -> bool:
        """Whether the model's last step scales vectors to length 1."""
        if settings.get('truncate_dim') is not None:
            return False
        try:
            modules = read_modules(self._folder)
        except Unsupported:
            # Modules that only sentence-transformers knows.
            return False
        return modules[-1].kind == 'Normalize'

    def _open_engine(self, settings: Mapping[str, Any], device: str) -> _Engine:
        """This package's engine where it knows the model, else sentence-transformers."""
        try:
            return _OwnEngine(
                read_bi_encoder(self._folder, self.name),
                settings,
                self.prompt_name,
                normalised=self.normalised,
                device=self.device,
                precision=self.precision,
                mapped=self.mapped,
            )
        except Unsupported as reason:
            _logger.info("'%s' is run by %s: %s", self.name, ENGINE, reason)
        return _TheirEngine(
            self._folder,
            self.method,
            normalised=self.normalised,
            device=device,
            precision=self.precision,
        )

    @cached_property
    def weights_sha256(self) -> str:
        """Checksum over the files of the folder."""
        return folder_digest(self._folder)

    @property
    def text_tokenizer(self) -> Any:
        """The model's tokenizer: this package's, or that of transformers."""
        return self._engine.tokenizer

    @property
    def prompts(self) -> Mapping[str, str]:
        """The folder's prompts by name."""
        return self._engine.prompts

    def _embed(
        self,
        texts: Sequence[str] | TokenIds,
        limit: int,
        token_budget: int | None,
        on_progress: Progress,
    ) -> Vectors:
        return self._engine.encode(texts, limit, token_budget, on_progress)


class SentenceQueryEncoder(_SentenceEncoder, TextQueryEncoder):
    """Queries to vectors, with the folder's query prompt."""

    method = 'encode_query'
    prompt_name = 'query'
    # Of a vocabulary, queries need a few rows.
    mapped = 'word_embeddings.weight'


class SentenceDocumentEncoder(_SentenceEncoder, TextDocumentEncoder):
    """Passages to vectors, with the folder's document prompt."""

    method = 'encode_document'
    prompt_name = 'document'
