"""The encoder of a collection. It is opened only when something has to be cut or encoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.known_words import UnknownDocuments, WordReport
from pyserini_repbert.collection.passages import PassageCutter
from pyserini_repbert.collection.settings import (
    CollectionSettings,
    EncoderSource,
    check_encoder,
)
from pyserini_repbert.collection.stored_values import input_digest
from pyserini_repbert.extension import Representation

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from pyserini_repbert.encode.text_encoder import TextDocumentEncoder

# Inputs at once. A large model encodes 5 passages a second on a CPU, and 50 on a GPU; the workers
# of a cluster share each batch.
_ON_CPU = 32
_ON_A_DEVICE = 256
_ON_A_CLUSTER = 1024
_DOCUMENT_PROMPTS = ('document', 'passage', 'corpus')  # of sentence-transformers


class PassageEncoder:
    """Cuts documents into passages, and encodes passages, as the settings of a collection say.

    Attributes
    ----------
    further_models : the collection's further models
    on_encoded : called with the passages encoded since the last call, as the encoder reads them
    """

    def __init__(self, source: EncoderSource, settings: CollectionSettings) -> None:
        self._source = source
        self._settings = settings
        self._key = settings.model_key()
        self.further_models = settings.further_models
        self.on_encoded: Callable[[Sequence[str]], object] = len
        self._n_vectors = 0
        self._n_further = dict.fromkeys(self.further_models, 0)

    @property
    def count(self) -> int:
        """How many passages were encoded, by one model or by several."""
        # What lacks a vector lacks what further models make, too: they are in one shard.
        return max(self._n_vectors, *self._n_further.values(), 0)

    @cached_property
    def encoder(self) -> TextDocumentEncoder:
        """The encoder. Raises MismatchError if it is not the collection's."""
        opened = self._source.opened
        check_encoder(opened, self._settings)
        return opened

    @property
    def inputs_at_once(self) -> int:
        """How many inputs are encoded before checking whether they have to be kept."""
        if self._source.is_elsewhere:
            return _ON_A_CLUSTER
        # For our own encoders, only the name: their `device` imports PyTorch.
        named = getattr(self.encoder, 'device_name', None)
        device = named or str(getattr(self.encoder, 'device', 'cpu'))
        return _ON_CPU if device.startswith('cpu') else _ON_A_DEVICE

    @cached_property
    def cutter(self) -> PassageCutter:
        """Cuts texts for this encoder."""
        encoder = self.encoder
        tokenizer = self._source.tokenizer
        return PassageCutter(
            tokenizer,
            _capacity(encoder, tokenizer),
            self._settings.passage_tokens,
            self._settings.overlap,
        )

    @cached_property
    def words(self) -> WordReport:
        """Which documents have words that the encoder does not know."""
        return WordReport(self.encoder.name, self._source.tokenizer)

    @property
    def unknown(self) -> UnknownDocuments | None:
        """What the encoder does not know of the documents that were cut; None: none was cut."""
        return self.words.unknown if 'words' in vars(self) else None

    def input_digest(self, text: str) -> bytes:
        """A digest of a model's input, which decides its vector together with the model."""
        return input_digest(text, self._key)

    def encode(self, inputs: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of inputs, float32 (n, d).

        Raises MismatchError if the encoder is not the collection's.
        """
        self._n_vectors += len(inputs)
        vectors = self._source.embed(self.encoder, inputs)
        self.on_encoded(inputs)
        return vectors

    def encode_further(self, kind: Representation, inputs: Sequence[str]) -> Sequence[Any]:
        """What a further model makes of inputs, in their order.

        Raises MismatchError if the model is not the collection's.
        """
        source = self._source.further[kind]
        source.check(self.further_models[kind])
        self._n_further[kind] += len(inputs)
        return source.encode(inputs)


def _capacity(encoder: Any, tokenizer: Tokenizer) -> int:
    """How many wordpieces of a text the encoder reads."""
    if encoder.pooling != 'sentence-transformers':
        return int(encoder.limit)
    from tokenizers.models import WordPiece

    # of these, `limit` counts special tokens and the prompt, too
    special = tokenizer.num_special_tokens_to_add(False)
    prompts = encoder.prompts
    prompt = next((prompts[name] for name in _DOCUMENT_PROMPTS if prompts.get(name)), '')
    encoding = tokenizer.encode(prompt, add_special_tokens=False)
    # Other tokenizers than WordPiece may read the first word of a part differently than within its
    # text.
    spare = 0 if isinstance(tokenizer.model, WordPiece) else 2
    return max(1, int(encoder.limit) - special - len(encoding.ids) - spare)
