"""RepBERT's query and document encoders, with the parameters of Pyserini's, which are passed by
position.

`query_encoder` and `document_encoder` open a checkpoint's, be it RepBERT's or of
sentence-transformers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np

from pyserini_repbert.encode.text_encoder import (
    TextDocumentEncoder,
    TextEncoder,
    TextQueryEncoder,
    Vectors,
)
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.batching import Progress, ahead, run_batched
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint, open_checkpoint
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.models.token_ids import TokenIds
from pyserini_repbert.models.tokenizer import ModelInputs
from pyserini_repbert.systems.repbert import network as repbert

OVERLAPPING = ('cuda',)  # devices that compute while the host tokenises the next texts
GROUP = 4096  # texts that such a device gets together


class _RepBertEncoder(TextEncoder):
    """The base of both encoders: the checkpoint, and the model on its device.

    Vectors are not normalised, and passages have token type 1, unless the checkpoint's `ranking`
    object says otherwise.
    """

    limit_key: str  # keys of the checkpoint's `ranking` object, and RepBERT's own values
    paper_limit: int
    type_key: str = ''
    paper_type: int
    mapped: str | None = None  # the weights whose names end so stay in their file

    def __init__(
        self,
        encoder_dir: AnyCheckpoint | None = None,
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
            raise InputError(
                f'prefix {prefix!r} was given: RepBERT was trained without one, leave it out'
            )
        chosen = model_name if encoder_dir is None else encoder_dir
        if chosen is None:
            raise InputError(
                "no checkpoint was given: pass a catalog name ('repbert-demo') or a folder"
            )
        opened = open_checkpoint(chosen)
        ranking = opened.system(repbert.NAME)
        config = BertConfig.from_dict(opened.config)
        self.name = opened.name
        self.dimension = config.hidden_size
        self.device = usable_device(device)
        self.precision = (Precision.FLOAT16 if fp16 else Precision(precision)).on(self.device)
        self.max_length = config.max_position_embeddings - 2
        usual = int(ranking.get(self.limit_key, self.paper_limit))
        self.limit = self._checked(usual if max_length is None else max_length)
        self._tokenizer_checkpoint = open_checkpoint(tokenizer_name) if tokenizer_name else opened
        self.tokenizer = self._tokenizer_checkpoint.tokenizer()
        normalised = bool(ranking.get('normalised', False))
        self.pooling = 'mean+normalised' if normalised else 'mean'
        self.token_type = int(ranking.get(self.type_key, self.paper_type))
        self._settings = {
            key: ranking[key] for key in ('doc_token_type', 'normalised') if key in ranking
        }
        model = load_model(
            partial(repbert.RepBert, config, normalised),
            opened,
            tensors=opened.tensors(self.mapped),
        )
        self.model = model.to(self.device, self.precision.dtype(self.device))
        self.checkpoint = opened

    @property
    def weights_sha256(self) -> str:
        """Checksum of the checkpoint's weights, and of what else decides a vector, where it is
        not RepBERT's.
        """
        weights = self.checkpoint.weights_sha256
        return (
            hashlib.sha256(f'{weights}\n{self._settings}'.encode()).hexdigest()
            if self._settings
            else weights
        )

    @property
    def tokenizer_sha256(self) -> str:
        """Checksum of the tokenizer's files."""
        return self._tokenizer_checkpoint.tokenizer_sha256

    def _embed(
        self,
        texts: Sequence[str] | TokenIds,
        limit: int,
        token_budget: int | None,
        on_progress: Progress,
    ) -> Vectors:
        vectors = np.empty((len(texts), self.dimension), np.float32)
        start = 0
        with closing(self._groups(texts, limit)) as groups:
            for inputs in groups:
                end = start + len(inputs)
                pad = self.tokenizer.pad
                vectors[start:end] = run_batched(
                    self.model, inputs, pad, self.device, token_budget, on_progress
                )
                start = end
        return vectors

    def _groups(self, texts: Sequence[str] | TokenIds, limit: int) -> Generator[ModelInputs]:
        """The model inputs of texts: all at once, or group by group, each made ahead."""
        if (
            isinstance(texts, TokenIds)
            or self.device.type not in OVERLAPPING
            or len(texts) <= GROUP
        ):
            yield from [self.tokenizer.single(texts, limit, self.token_type)] if len(texts) else []
            return
        groups = (texts[first : first + GROUP] for first in range(0, len(texts), GROUP))
        yield from ahead(self.tokenizer.single(group, limit, self.token_type) for group in groups)


class RepBertQueryEncoder(_RepBertEncoder, TextQueryEncoder):
    """Queries to vectors (RepBERT eq. 1-2): token type 0 (footnote 2), by default 20 wordpieces
    (section 4.3.1).

    Parameters
    ----------
    encoder_dir : catalog name ('repbert', 'repbert-demo') or checkpoint folder
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    tokenizer_name : another checkpoint, whose tokenizer is used
    prefix : refused unless empty: RepBERT has none
    fp16 : half-precision weights; the same as precision='float16'
    precision : 'float32', 'bfloat16', 'float16', or 'auto'
    max_length : wordpieces kept, special tokens not counted; default: the checkpoint's limit, else
        the paper's
    model_name : the same as `encoder_dir`: Pyserini's name for it in document encoders
    """

    paper_type = repbert.QUERY_TYPE
    limit_key = 'max_query_length'
    paper_limit = repbert.MAX_QUERY_TOKENS
    mapped = 'word_embeddings.weight'  # 30,522 rows, of which queries need a few


class RepBertDocumentEncoder(_RepBertEncoder, TextDocumentEncoder):
    """Passages to vectors (RepBERT eq. 1-2): token type 1 (footnote 2), by default 256 wordpieces
    (section 4.3.1).

    Parameters are those of `RepBertQueryEncoder`.
    """

    type_key = 'doc_token_type'
    paper_type = repbert.PASSAGE_TYPE
    limit_key = 'max_doc_length'
    paper_limit = repbert.MAX_PASSAGE_TOKENS
