"""RepBERT's query and document encoders, under Pyserini's contract (called positionally, so the order counts)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from pyserini_repbert.errors import InputError
from pyserini_repbert.models import repbert
from pyserini_repbert.models.batching import run_batched
from pyserini_repbert.models.bert import BertConfig
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint, open_checkpoint
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.precision import Precision, usable_device

Vectors = NDArray[np.float32]


class _RepBertEncoder:
    """What both encoders share: the checkpoint, the model on its device, texts in and vectors out.

    Attributes
    ----------
    checkpoint : opened
    name : the checkpoint's catalog name or folder
    weights_sha256 : checksum of its weights
    dimension : length of a vector
    limit : wordpieces kept of a text, [CLS] and [SEP] not counted
    """

    token_type: int
    limit_key: str  # of the checkpoint's limit in its `ranking` object
    paper_limit: int
    has_model = True  # as Pyserini's encoders say

    def __init__(
        self,
        encoder_dir: str | Path | Checkpoint | None = None,
        device: str = 'cpu',
        tokenizer_name: str | None = None,
        prefix: str | None = None,
        fp16: bool = False,
        precision: Precision | str = Precision.FLOAT32,
        max_length: int | None = None,
        model_name: str | Path | None = None,
        **_: object,
    ) -> None:
        if prefix:
            raise InputError(f'prefix {prefix!r} was given: RepBERT was trained without one, leave it out')
        chosen = model_name if encoder_dir is None else encoder_dir
        if chosen is None:
            raise InputError("no checkpoint was given: pass a catalog name ('repbert-demo') or a folder")
        opened = open_checkpoint(chosen)
        ranking = opened.system(repbert.SYSTEM)
        config = BertConfig.from_dict(opened.config)
        self.name = opened.name
        self.dimension = config.hidden_size
        self.device = usable_device(device)
        self.precision = (Precision.FLOAT16 if fp16 else Precision(precision)).on(self.device)
        self.max_length = config.max_position_embeddings - 2
        self.limit = self._checked(max_length or int(ranking.get(self.limit_key, self.paper_limit)))
        self.word_pieces = (open_checkpoint(tokenizer_name) if tokenizer_name else opened).word_pieces()
        model = load_model(lambda: repbert.RepBert(config), opened)
        self.model = model.to(self.device, self.precision.dtype(self.device))
        self.checkpoint = opened

    @property
    def weights_sha256(self) -> str:
        """Checksum of the checkpoint's weights."""
        return self.checkpoint.weights_sha256

    def _checked(self, limit: int) -> int:
        if not 1 <= limit <= self.max_length:
            raise InputError(f'maximum length {limit} was given, expected 1 to {self.max_length} wordpieces')
        return limit

    def embed(
        self,
        texts: Sequence[str],
        max_length: int | None = None,
        fp16: bool = False,
        token_budget: int | None = None,
        on_progress: Callable[[int], object] | None = None,
    ) -> Vectors:
        """Embeddings of texts, in their order (RepBERT eq. 1-2), not normalised.

        Parameters
        ----------
        max_length : wordpieces kept of each text, [CLS] and [SEP] not counted; default: the checkpoint's limit
        fp16 : run this call in half precision, where the model itself is in float32
        token_budget : padded tokens in a batch
        on_progress : called with the number of texts done since the last call

        Returns
        -------
        float32 (n, d); (0, d) for no texts
        """
        limit = self.limit if max_length is None else self._checked(max_length)
        sequences = self.word_pieces.single(texts, limit, self.token_type)
        with torch.autocast(self.device.type, torch.float16, enabled=fp16):
            vectors = run_batched(self.model, sequences, self.word_pieces.pad, self.device, token_budget, on_progress)
        return vectors.reshape(len(texts), self.dimension)


class RepBertQueryEncoder(_RepBertEncoder):
    """Queries to vectors: token type 0, at most 20 wordpieces (RepBERT section 4.3.1 and footnote 2).

    Parameters
    ----------
    encoder_dir : catalog name ('repbert', 'repbert-demo') or checkpoint folder
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    tokenizer_name : another checkpoint whose tokenizer is used
    prefix : refused unless empty: RepBERT has none
    fp16 : half-precision weights; the same as precision='float16'
    precision : 'float32', 'bfloat16', 'float16', or 'auto'
    max_length : wordpieces kept, if not the checkpoint's limit
    model_name : another name for `encoder_dir`, which Pyserini uses for documents

    Raises
    ------
    UnknownNameError, MissingResourceError, DamagedFileError, MismatchError
        for a checkpoint that is not there, not whole, or of another system
    InputError
        for an unknown precision, a device that this machine lacks, or a maximum length that the model has no positions
        for
    """

    token_type = repbert.QUERY_TYPE
    limit_key = 'max_query_length'
    paper_limit = repbert.MAX_QUERY_TOKENS
    has_encoded_query = False

    def encode(self, query: str, max_length: int | None = None, **_: object) -> Vectors:
        """One query's vector, float32 (d,). An empty query is `[CLS] [SEP]`, and has a vector too."""
        return self.embed([query], max_length)[0]  # type: ignore[no-any-return]

    def encode_batch(self, queries: Sequence[str], max_length: int | None = None, **_: object) -> Vectors:
        """Many queries' vectors, float32 (n, d), in their order."""
        return self.embed(queries, max_length)


class RepBertDocumentEncoder(_RepBertEncoder):
    """Passages to vectors: token type 1, at most 256 wordpieces (RepBERT section 4.3.1 and footnote 2).

    Parameters and errors are those of `RepBertQueryEncoder`.
    """

    token_type = repbert.PASSAGE_TYPE
    limit_key = 'max_doc_length'
    paper_limit = repbert.MAX_PASSAGE_TOKENS

    def encode(
        self,
        texts: Sequence[str] | str,
        titles: Sequence[str] | None = None,
        fp16: bool = False,
        max_length: int | None = None,
        **_: object,
    ) -> Vectors:
        """Vectors of passages, float32 (n, d), in their order; a title leads its text.

        Raises InputError where there are not as many titles as texts.
        """
        batch = [texts] if isinstance(texts, str) else list(texts)
        if titles is not None:
            if len(titles) != len(batch):
                raise InputError(f'{len(titles)} titles for {len(batch)} texts: give one title a text')
            batch = [f'{title} {text}' for title, text in zip(titles, batch, strict=True)]
        return self.embed(batch, max_length, fp16)
