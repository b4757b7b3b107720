"""Encoders from folders of sentence-transformers.

Vectors equal what its `encode_query` and `encode_document` give. Where the folder names cosine as
its similarity, they are scaled to length 1, so that inner products are its scores. This package's
engine runs BERT, RoBERTa and XLM-R; sentence-transformers runs all other models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pyserini_repbert.encode.text_encoder import (
    TextDocumentEncoder,
    TextEncoder,
    TextQueryEncoder,
    Vectors,
)
from pyserini_repbert.encode.text_network import LazyNetworks
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.checkpoints.checkpoint import (
    AnyCheckpoint,
    checkpoint_name,
    encoder_folder,
)
from pyserini_repbert.models.numpy_bert import Array, NumpyTextNetwork, normalized
from pyserini_repbert.models.precision import Precision, checked_device
from pyserini_repbert.models.token_ids import Progress, TokenIds
from pyserini_repbert.systems.sentence_transformers.engine import (
    BODY,
    Engine,
    OwnEngine,
    TheirEngine,
    bi_encoder_tensors,
    open_either,
)
from pyserini_repbert.systems.sentence_transformers.folder import (
    BiEncoder,
    Unsupported,
    read_bi_encoder,
    read_modules,
    read_prompts,
    read_settings,
    read_truncation,
)
from pyserini_repbert.systems.sentence_transformers.layers import Kept, LayerSizes
from pyserini_repbert.systems.sentence_transformers.loading import folder_digest, open_model
from pyserini_repbert.systems.sentence_transformers.recognising import SETTINGS
from pyserini_repbert.systems.sentence_transformers.tokenizing import open_tokenizer

_SIMILARITIES = (None, 'dot', 'cosine')


@dataclass(frozen=True)
class _OpenedModel:
    """What runs a bi-encoder, and its prompts by name."""

    engine: Engine
    prompts: Mapping[str, str]


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
    open_encoder : of the same model, if there is one: both share what runs it

    Attributes
    ----------
    method : the method of SentenceTransformer that encodes
    prompt_name : of the prompt that this method puts before a text
    mapped : the weights whose names end so stay in their file; None: all are read
    engine : what runs the model, as records have it
    prompts : the folder's, by name
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
        open_encoder: TextEncoder | None = None,
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
        self.device_name = checked_device(device)
        self.precision = wanted.on_device(self.device_name)
        if not self._take_model(open_encoder):
            self._open_model(device)
        self.engine = self._engine.name
        if isinstance(self._engine, OwnEngine):
            self.tokenizer = self._engine.tokenizer
        self.dimension = self._engine.n_outputs
        self.max_length = self._engine.max_length
        if max_length is None:
            max_length = self.max_length
        self.limit = self._checked(max_length)

    def _open_model(self, device: str) -> None:
        """Open the folder's model, where it is to run."""
        settings = read_settings(self._folder)
        similarity = settings.get('similarity_fn_name')
        if similarity not in _SIMILARITIES:
            raise InputError(
                f"{self._folder / SETTINGS}: similarity '{similarity}' was given, cosine or dot "
                f'was expected'
            )
        self.normalised = similarity == 'cosine'
        opened = open_either(
            self.name,
            own=lambda: self._open_own(settings),
            theirs=lambda _: self._open_theirs(device),
        )
        self._engine = opened.engine
        self.prompts = opened.prompts
        self.unit_length = self.normalised or self._ends_normalised(settings)

    def _take_model(self, other: TextEncoder | None) -> bool:
        """Run the model of another encoder, with this one's prompt; returns whether it is the same.

        What sentence-transformers runs is not shared: it keeps one limit for all texts.
        """
        if not isinstance(other, _SentenceEncoder) or not self.runs_model_of(other):
            return False
        if not isinstance(other._engine, OwnEngine):
            return False
        self.normalised = other.normalised
        self.unit_length = other.unit_length
        self.prompts = other.prompts
        # The model in memory makes the vectors, even if the folder has since changed.
        self.weights_sha256 = other.weights_sha256
        self._engine = other._engine.with_prompt(self.prompts.get(self.prompt_name, ''))
        return True

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

    def _open_own(self, settings: Mapping[str, Any]) -> _OpenedModel:
        """The model in this package's engine. Raises Unsupported if it does not run it."""
        kept = read_truncation(settings, self.name)
        model = read_bi_encoder(self._folder, self.name)
        prompts = read_prompts(settings, 'SentenceTransformer')
        tokenizer = open_tokenizer(model.body, prompts.get(self.prompt_name, ''))
        dimension = model.dimension
        layers: list[LayerSizes] = []
        for layer in model.layers:
            layers.append(None if layer is None else layer.sizes)
        if kept is not None and kept < dimension:
            dimension = kept
            layers.append(Kept(kept))
        if self.normalised:
            layers.append(None)
        networks = LazyNetworks(
            partial(self._load, model, layers),
            partial(_in_numpy, model, layers),
            self.device_name,
            is_float32=self.precision is Precision.FLOAT32,
        )
        networks.open()
        return _OpenedModel(OwnEngine(tokenizer, networks, dimension), prompts)

    def _load(self, model: BiEncoder, layers: Sequence[LayerSizes]) -> Any:
        """The network in PyTorch, on its device."""
        from pyserini_repbert.models.checkpoints.loading import load_model
        from pyserini_repbert.systems.sentence_transformers.network import SentenceBert

        network = load_model(
            partial(SentenceBert, model.body.config, model.poolings, layers),
            model.body.checkpoint,
            tensors=bi_encoder_tensors(model, self.mapped),
        )
        return network.to_device(self.device, self.precision.dtype(self.device))

    def _open_theirs(self, device: str) -> _OpenedModel:
        """The model in sentence-transformers."""
        model = open_model('SentenceTransformer', self._folder, device, self.precision)
        encode = getattr(model, self.method)
        run = partial(encode, normalize_embeddings=self.normalised)
        engine = TheirEngine(model, run, n_outputs=len(encode('')))
        return _OpenedModel(engine, model.prompts or {})

    @cached_property
    def weights_sha256(self) -> str:
        """Checksum over the files of the folder."""
        return folder_digest(self._folder)

    @property
    def text_tokenizer(self) -> Any:
        """The model's tokenizer: this package's, or transformers'."""
        return self._engine.tokenizer

    def _embed(
        self,
        texts: Sequence[str] | TokenIds,
        limit: int,
        token_budget: int | None,
        on_progress: Progress,
    ) -> Vectors:
        return self._engine.run_texts(texts, limit, token_budget, on_progress)


def _in_numpy(model: BiEncoder, layers: Sequence[LayerSizes]) -> NumpyTextNetwork | None:
    """The network in NumPy; None for one with dense layers."""
    following: list[Callable[[Array], Array]] = []
    for layer in layers:
        if layer is None:
            following.append(normalized)
        elif isinstance(layer, Kept):
            following.append(layer.of)
        else:
            return None
    arrays = model.body.checkpoint.arrays()
    weights = {name: array for name, array in arrays.items() if name.startswith(BODY)}
    return NumpyTextNetwork.fitting(model.body.config, weights, model.poolings, following)


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
