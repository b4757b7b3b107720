"""The service's models for other programs: texts reranked, and texts as vectors."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert import catalog
from pyserini_repbert.encode.text_encoder import TextDocumentEncoder
from pyserini_repbert.errors import InputError, UnknownNameError
from pyserini_repbert.models.tokenizer import WordPieceTokenizer
from pyserini_repbert.pipeline.spec import StageSpec
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.queues import JobQueue
from pyserini_repbert.serve.requests import check_query
from pyserini_repbert.serve.rerankers import Rerankers
from pyserini_repbert.serve.settings import Limits, ServeSettings
from pyserini_repbert.systems.encoders import document_encoder
from pyserini_repbert.trace import Trace

QUERY = 'query'
DOCUMENT = 'document'


@dataclass(frozen=True)
class EncodedTexts:
    """Texts as vectors.

    Attributes
    ----------
    model : the encoder's name
    vectors : float32 (n, d)
    tokens : how many tokens the encoder's tokenizer made of the texts; 0 if it does not say
    """

    model: str
    vectors: NDArray[np.float32]
    tokens: int


class TextEncoders:
    """The encoders of a service's indexes, by name; a document encoder is opened when first used.

    Parameters
    ----------
    settings : of the service
    queue : where texts are encoded
    """

    def __init__(self, settings: ServeSettings, queue: JobQueue) -> None:
        self._settings = settings
        self._queue = queue
        self._of_documents: dict[str, TextDocumentEncoder] = {}

    def embed(
        self,
        indexes: Iterable[ServedIndex],
        model: str,
        texts: Sequence[str] | Sequence[list[int]],
        kind: str,
        trace: Trace,
        tokenizer: str | None = None,
    ) -> EncodedTexts:
        """The vectors of texts.

        Parameters
        ----------
        indexes : the service's
        model : name of an encoder, or of an index, whose encoder is meant
        texts : none is empty; or the token ids of each
        kind : 'query' or 'document': some encoders read them in different ways
        trace : its `advance` is called while the texts wait
        tokenizer : of token ids: the encoder whose tokenizer made them

        Raises UnknownNameError for an unknown model, InputError for texts that are empty or
        too many, and for token ids that are not the encoder's.
        """
        index = _index_of(indexes, model)
        texts = _decode(texts, index, tokenizer)
        _check_texts(texts, self._settings.limits)
        encoder: Any = index.query_encoder

        def encode() -> EncodedTexts:
            if kind == QUERY:
                vectors = encoder.encode_batch(texts)
                used = encoder
            else:
                used = self._document_encoder(index).truncated(encoder.dimension)
                vectors = used.embed(texts)
            return EncodedTexts(str(index.encoder), vectors, _count_tokens(used, texts))

        embeddings: EncodedTexts = self._queue.call(encode, trace)
        return embeddings

    def _document_encoder(self, index: ServedIndex) -> TextDocumentEncoder:
        name = index.encoder_location
        if name not in self._of_documents:
            settings = self._settings
            self._of_documents[name] = document_encoder(
                name,
                settings.device,
                precision=settings.precision,
                open_encoder=index.query_encoder,
            )
        return self._of_documents[name]


def encoders_of(indexes: Iterable[ServedIndex]) -> list[str]:
    """The names of the encoders, each once."""
    names = [index.encoder for index in indexes if index.encoder is not None]
    return list(dict.fromkeys(names))


def _index_of(indexes: Iterable[ServedIndex], model: str) -> ServedIndex:
    """The first index with an encoder of this name, or of this name itself."""
    with_encoders = [index for index in indexes if index.encoder is not None]
    for index in with_encoders:
        if model in (index.encoder, index.alias):
            return index
    known = encoders_of(with_encoders)
    near = catalog.did_you_mean(model, known)
    raise UnknownNameError(
        f"there is no encoder '{model[:80]}' here{near}: there are {', '.join(known) or 'none'}"
    )


def _decode(
    texts: Sequence[str] | Sequence[list[int]], index: ServedIndex, tokenizer: str | None
) -> list[str]:
    """The texts, decoded if they are token ids.

    Raises InputError for token ids that are not said to be of the index's encoder: ids do not
    tell whose they are, and ids of another tokenizer would be vectors of other words.
    """
    decoded = []
    for text in texts:
        if isinstance(text, str):
            decoded.append(text)
            continue
        if tokenizer is None:
            raise InputError(
                "'input' holds token ids, which do not say whose tokenizer made them: send texts "
                "(LangChain: check_embedding_ctx_length=False), or name the encoder in 'tokenizer'"
            )
        if tokenizer not in (index.encoder, index.alias):
            raise InputError(
                f"token ids of '{tokenizer[:80]}' were given, '{index.encoder}' reads its own "
                'only: send texts'
            )
        decoded.append(_decode_text(text, index))
    return decoded


def _decode_text(ids: Sequence[int], index: ServedIndex) -> str:
    """The text of wordpieces, without special tokens."""
    tokenizer = getattr(index.query_encoder, 'tokenizer', None)
    if not isinstance(tokenizer, WordPieceTokenizer):
        raise InputError(f"'{index.encoder}' takes no token ids: send texts")
    special = (tokenizer.cls, tokenizer.sep, tokenizer.pad)
    for number in ids:
        if not 0 <= number < tokenizer.vocab_size:
            raise InputError(
                f"'{index.encoder}' has no token {number}, its tokens are 0 to "
                f'{tokenizer.vocab_size - 1}: send texts'
            )
    pieces = tokenizer.tokens([number for number in ids if number not in special])
    return ' '.join(pieces).replace(' ##', '').removeprefix('##')


def _check_texts(texts: Sequence[str], limits: Any) -> None:
    if not texts:
        raise InputError("'input' is empty: give a text, or a list of texts")
    if len(texts) > limits.embedding_inputs:
        raise InputError(
            f'{len(texts)} texts were given, at most {limits.embedding_inputs} are allowed'
        )
    for number, text in enumerate(texts):
        if not text.strip():
            raise InputError(f"text {number} of 'input' is empty")


def _count_tokens(encoder: object, texts: Sequence[str]) -> int:
    tokenizer = getattr(encoder, 'tokenizer', None)
    if not isinstance(tokenizer, WordPieceTokenizer):
        return 0
    return sum(len(ids) for ids in tokenizer.ids(texts))


def rerank_texts(
    rerankers: Rerankers, model: str, query: str, texts: Sequence[str], limits: Limits, trace: Trace
) -> Ranking:
    """Texts in a reranker's order; a docid is the position of its text.

    Parameters
    ----------
    rerankers : the service's
    model : name of one of them, or of a system, whose first reranker is meant
    query : a question
    texts : to rerank
    limits : of the service
    trace : learns how far the reranking is

    Raises UnknownNameError for an unknown reranker, InputError above the limits.
    """
    check_query(query, limits)
    if not texts:
        raise InputError("'documents' is empty: give texts to rerank")
    for number, text in enumerate(texts):
        if not text.strip():
            raise InputError(f"text {number} of 'documents' is empty")
    stage = StageSpec(rerankers.resolve_name(model), len(texts))
    rerankers.check([stage])
    docids = [str(position) for position in range(len(texts))]
    candidates = Ranking(docids, [0.0] * len(texts), texts)
    run = rerankers.stage(stage, trace).rank([Query('0', query)], {'0': candidates}, None, trace)
    return run['0']


def in_base64(vector: NDArray[np.float32]) -> str:
    """A vector as OpenAI's clients read it: float32, little-endian, in base64."""
    return base64.b64encode(vector.astype('<f4').tobytes()).decode('ascii')
