"""Encoders from folders of sentence-transformers, run by that package.

Vectors are those of its `encode_query` and `encode_document`; where the folder names cosine as its
similarity, they are scaled to length 1, so that inner products are its scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from pyserini_repbert import catalog
from pyserini_repbert.data.values import has_surrogates, read_object
from pyserini_repbert.encode.text_encoder import (
    TextDocumentEncoder,
    TextEncoder,
    TextQueryEncoder,
    Vectors,
)
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.batching import Progress
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint, folder_of
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.systems.sentence_transformers.loading import (
    BATCH,
    MODULES,
    folder_digest,
    open_model,
)

# Texts between two calls of a progress callback.
CHUNK = 1024
# Stands for the tokens of a text where the model sets no limit.
NO_LIMIT = 10**6
_SIMILARITIES = (None, 'dot', 'cosine')


def is_sentence_folder(name: AnyCheckpoint) -> bool:
    """Whether a name means a folder of a bi-encoder of sentence-transformers.

    A folder of one of this package's systems is none.
    """
    if not isinstance(name, (str, Path)) or catalog.find('encoders', str(name)) is not None:
        return False
    folder = folder_of(name)
    if not (folder / MODULES).is_file():
        return False
    config = folder / 'config.json'
    return not config.is_file() or 'ranking' not in read_object(config)


class _SentenceEncoder(TextEncoder):
    """The base of both encoders.

    Parameters
    ----------
    encoder_dir : a folder of sentence-transformers, or a repository in the hub's cache
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    precision : 'float32', 'bfloat16', 'float16', or 'auto'
    max_length : tokens kept of a text and its prompt, special tokens included; default: as the
        folder says

    Attributes
    ----------
    method : the method of SentenceTransformer that encodes
    """

    method: str
    pooling = 'sentence-transformers'
    # `weights_sha256` covers all files.
    config_sha256 = None
    tokenizer_sha256 = None

    def __init__(
        self,
        encoder_dir: str | Path,
        device: str = 'cpu',
        precision: Precision | str = Precision.FLOAT32,
        max_length: int | None = None,
        **_: object,
    ) -> None:
        self.name = str(encoder_dir)
        self._folder = folder_of(encoder_dir)
        self.device = usable_device(device)
        self.precision = Precision(precision).on(self.device)
        settings = self._folder / 'config_sentence_transformers.json'
        similarity = None
        if settings.is_file():
            similarity = read_object(settings).get('similarity_fn_name')
        if similarity not in _SIMILARITIES:
            raise InputError(
                f"{settings}: similarity '{similarity}' was given, cosine or dot was expected"
            )
        self.normalised = similarity == 'cosine'
        self._sentence_transformer = open_model(
            'SentenceTransformer', self._folder, device, self.precision
        )
        self._encode = getattr(self._sentence_transformer, self.method)
        self.max_length = int(min(self._sentence_transformer.max_seq_length or math.inf, NO_LIMIT))
        if max_length is None:
            max_length = self.max_length
        self.limit = self._checked(max_length)
        self.dimension = len(self._encode(''))

    @cached_property
    def weights_sha256(self) -> str:
        """Checksum over the files of the folder."""
        return folder_digest(self._folder)

    def _embed(
        self, texts: Sequence[str], limit: int, token_budget: int | None, on_progress: Progress
    ) -> Vectors:
        """As in the base class; `token_budget` is not used."""
        for text in texts:
            if not isinstance(text, str) or has_surrogates(text):
                raise InputError(
                    f'{ascii(text)[:60]} is no text that UTF-8 can hold: mend or remove it'
                )
        if self.max_length < NO_LIMIT:
            self._sentence_transformer.max_seq_length = limit
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), CHUNK):
            part = list(texts[start : start + CHUNK])
            vectors[start : start + CHUNK] = self._encode(
                part,
                batch_size=BATCH,
                normalize_embeddings=self.normalised,
                show_progress_bar=False,
            )
            on_progress(len(part))
        return vectors


class SentenceQueryEncoder(_SentenceEncoder, TextQueryEncoder):
    """Queries to vectors, with the folder's query prompt."""

    method = 'encode_query'


class SentenceDocumentEncoder(_SentenceEncoder, TextDocumentEncoder):
    """Passages to vectors, with the folder's document prompt."""

    method = 'encode_document'
