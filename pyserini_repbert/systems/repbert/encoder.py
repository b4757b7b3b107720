"""RepBERT's query and document encoders, under Pyserini's contract.

Their first parameters, and the order of these, are the same as in Pyserini's encoders.
`query_encoder` and `document_encoder` of `systems.encoders` open the encoders of any checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.encode.text_encoder import (
    TextDocumentEncoder,
    TextEncoder,
    TextQueryEncoder,
    Vectors,
)
from pyserini_repbert.encode.text_network import LazyNetworks, TextNetwork
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint, open_checkpoint
from pyserini_repbert.models.numpy_bert import NumpyTextNetwork
from pyserini_repbert.models.precision import Precision, checked_device
from pyserini_repbert.models.token_ids import Progress, TokenIds
from pyserini_repbert.systems.repbert import settings as repbert

if TYPE_CHECKING:
    from pyserini_repbert.systems.repbert.network import RepBert


class _RepBertEncoder(TextEncoder):
    """The base of both encoders: the checkpoint, and the model on its device.

    Attributes
    ----------
    limit_key : the key of the `ranking` object for the length
    paper_limit : RepBERT's own length
    token_type : of the texts
    pooling : how token vectors become one
    mapped : the weights whose names end so stay in their file; None: all are read
    """

    limit_key: str
    paper_limit: int
    token_type: int
    pooling = 'mean'
    mapped: str | None = None
    _networks: LazyNetworks

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
        open_encoder: TextEncoder | None = None,
        **_: object,
    ) -> None:
        if prefix:
            raise InputError(
                f'prefix {prefix!r} was given: RepBERT was trained without one, leave it out'
            )
        wanted = Precision.FLOAT16 if fp16 else Precision(precision)
        chosen = encoder_dir
        if chosen is None:
            chosen = model_name
        if chosen is None:
            raise InputError(
                "no checkpoint was given: pass a catalog name ('repbert-demo') or a folder"
            )
        opened = open_checkpoint(chosen)
        ranking = opened.system(repbert.NAME)
        config = BertConfig.from_dict(opened.config)
        self.name = opened.name
        self.dimension = config.hidden_size
        self.device_name = checked_device(device)
        self.precision = wanted.on_device(self.device_name)
        self.max_length = config.max_position_embeddings - 2
        if max_length is None:
            max_length = int(ranking.get(self.limit_key, self.paper_limit))
        self.limit = self._checked(max_length)
        if isinstance(open_encoder, _RepBertEncoder) and self.runs_model_of(open_encoder):
            self.checkpoint = open_encoder.checkpoint
            self._networks = open_encoder._networks
        else:
            self.checkpoint = opened
            self._networks = LazyNetworks(
                partial(self._load, config),
                lambda: NumpyTextNetwork.fitting(config, opened.arrays(), ['mean']),
                self.device_name,
                is_float32=self.precision is Precision.FLOAT32,
            )
            self._networks.open()
        self._tokenizer_checkpoint = self.checkpoint
        if tokenizer_name:
            self._tokenizer_checkpoint = open_checkpoint(tokenizer_name)
        self.tokenizer = self._tokenizer_checkpoint.tokenizer()
        self._network = TextNetwork(self._networks, self.tokenizer, self.dimension, self.token_type)

    def _load(self, config: BertConfig) -> RepBert:
        """The network in PyTorch, on its device."""
        from pyserini_repbert.models.checkpoints.loading import load_model
        from pyserini_repbert.systems.repbert.network import RepBert

        tensors = self.checkpoint.tensors(self.mapped)
        model = load_model(partial(RepBert, config), self.checkpoint, tensors=tensors)
        return model.to(self.device, self.precision.dtype(self.device))

    @property
    def model(self) -> RepBert:
        """The network in PyTorch, on its device."""
        network: RepBert = self._networks.forward
        return network

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
        return self._network.encode(texts, limit, token_budget, on_progress)


class RepBertQueryEncoder(_RepBertEncoder, TextQueryEncoder):
    """Queries to vectors (RepBERT eq. 1-2).

    Token type 0 (footnote 2), by default 20 wordpieces (section 4.3.1).

    Parameters
    ----------
    encoder_dir : catalog name ('repbert', 'repbert-demo') or checkpoint folder
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    tokenizer_name : another checkpoint, whose tokenizer is used
    prefix : refused unless empty: RepBERT has none
    fp16 : half-precision weights; the same as precision='float16'
    precision : 'float32', 'bfloat16', 'float16', or 'auto'
    max_length : wordpieces kept, special tokens not counted; default: the checkpoint's limit,
        otherwise the paper's
    model_name : the same as `encoder_dir`: Pyserini's name for it in document encoders
    open_encoder : of the same checkpoint, if there is one: both share its network
    """

    token_type = repbert.QUERY_TYPE
    limit_key = 'max_query_length'
    paper_limit = repbert.MAX_QUERY_TOKENS
    # Of the 30,522 rows, queries need a few.
    mapped = 'word_embeddings.weight'


class RepBertDocumentEncoder(_RepBertEncoder, TextDocumentEncoder):
    """Passages to vectors (RepBERT eq. 1-2).

    Token type 1 (footnote 2), by default 256 wordpieces (section 4.3.1).

    Takes the parameters of `RepBertQueryEncoder`.
    """

    token_type = repbert.PASSAGE_TYPE
    limit_key = 'max_doc_length'
    paper_limit = repbert.MAX_PASSAGE_TOKENS
