"""The settings of a collection: its encoder, its passages, its language."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from pyserini_repbert.collection.model_options import (
    BM25,
    NONE,
    SPARSE,
    model_options,
    names_model,
)
from pyserini_repbert.collection.passages import (
    PASSAGE_TOKENS,
    check_lengths,
    cutting_tokenizer,
    default_overlap,
)
from pyserini_repbert.data.values import Choice, adapter
from pyserini_repbert.encode.representations import (
    ModelSource,
    RepresentationModel,
)
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.extension import Representation, representations
from pyserini_repbert.extension_words import missing_extension
from pyserini_repbert.index.records import (
    MODEL_DIGESTS,
    Length,
    Name,
    VectorDtype,
    check_vector_dtype,
)
from pyserini_repbert.lucene.languages import ENGLISH, check_language
from pyserini_repbert.models.checkpoints.checkpoint import used_models
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.record import Model, Sha256

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from pyserini_repbert.encode.text_encoder import TextDocumentEncoder

DEFAULT_ENCODER = 'minilm'
# What the settings of a collection call a further model ends so: `Representation.setting`.
_MODEL = '_model'


@dataclass(frozen=True)
class Defaults:
    """What a new collection has where a user names nothing.

    Attributes
    ----------
    encoder : a catalog name
    language : of Lucene's analyzer
    """

    encoder: str = DEFAULT_ENCODER
    language: str = ENGLISH


class TextEmbedding(Protocol):
    """Encodes texts in an encoder's place, as on other machines."""

    def __call__(self, encoder: TextDocumentEncoder, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors that the encoder gives, float32 (n, d); there is at least one text."""


class EncoderSource:
    """Opens the encoder of a collection, once, when it is needed.

    Parameters
    ----------
    encoder : a catalog name, a checkpoint folder, or an opened encoder; None: the encoder of the
        collection, or the default of a new one
    device : where the model runs
    precision : what the model runs in; default: the collection's, or float32
    token_budget : padded tokens in a batch; default: by device
    truncate_dim : keep the first values of each vector, so many; default: as the collection has
    further : further models, by `Representation.option`: a catalog name, a folder, or an opened
        encoder; None, or none of these: the collection's
    embedding : encodes texts in the encoder's place; default: the encoder itself

    Attributes
    ----------
    further : opens the further model of each representation
    query_encoder : the collection's encoder of queries, if it is open; it is shared if it has the
        same model
    """

    def __init__(
        self,
        encoder: str | TextDocumentEncoder | None = None,
        device: str = 'cpu',
        precision: Precision | str | None = None,
        token_budget: int | None = None,
        truncate_dim: int | None = None,
        further: Mapping[str, Any] | None = None,
        embedding: TextEmbedding | None = None,
    ) -> None:
        self._precision = None if precision is None else str(Precision(precision))
        self.truncate_dim = truncate_dim
        self._embedding = embedding
        given = further or {}
        self.further = {
            kind: ModelSource(kind, given.get(kind.option), device) for kind in representations()
        }
        self._stored: CollectionSettings | None = None
        self._encoder = encoder
        self.device = device
        self.query_encoder: Any = None
        self._token_budget = token_budget

    def embed(self, encoder: TextDocumentEncoder, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts by the opened encoder, float32 (n, d), in their order."""
        if self._embedding is not None:
            return self._embedding(encoder, texts)
        return encoder.embed(texts, token_budget=self._token_budget)

    @property
    def is_elsewhere(self) -> bool:
        """Whether texts are encoded in the encoder's place, as on a cluster."""
        return self._embedding is not None

    @property
    def is_given(self) -> bool:
        """Whether an opened encoder was given, instead of a name."""
        return self._encoder is not None and not isinstance(self._encoder, str)

    @property
    def name(self) -> str | None:
        """What the encoder is called; None: the collection's encoder."""
        if self._encoder is None or isinstance(self._encoder, str):
            return self._encoder
        return self._encoder.name

    @property
    def is_opened(self) -> bool:
        """Whether the encoder is open."""
        return 'opened' in vars(self)

    @property
    def models(self) -> tuple[Model, ...]:
        """The checkpoints that were opened."""
        models = used_models(self.opened) if self.is_opened else ()
        for source in self.further.values():
            models = (*models, *source.models)
        return models

    def complete(self, stored: CollectionSettings | None, default: str = DEFAULT_ENCODER) -> None:
        """Take what the user did not name from the settings of the collection.

        `default` is the encoder of a new one.
        """
        if self._encoder is None:
            self._encoder = default if stored is None else stored.encoder
        if self._precision is None:
            self._precision = 'float32' if stored is None else stored.precision
        self._stored = stored
        for kind, source in self.further.items():
            known = None if stored is None else stored.further_models.get(kind)
            source.complete(known, self._precision)

    @cached_property
    def opened(self) -> TextDocumentEncoder:
        """The encoder, after `complete`; its vectors are as long as the collection's."""
        # PyTorch is needed only to encode.
        from pyserini_repbert.encode.text_encoder import truncated_as
        from pyserini_repbert.systems.encoders import document_encoder, stored_name

        encoder = self._encoder
        if isinstance(encoder, str):
            is_stored = self._stored is not None and encoder == self._stored.encoder
            with stored_name('the collection') if is_stored else nullcontext():
                encoder = document_encoder(
                    encoder,
                    self.device,
                    precision=self._precision,
                    open_encoder=self.query_encoder,
                )
        if encoder is None:
            raise ValueError('complete() comes first')
        if self.truncate_dim is not None:
            return encoder.truncated(self.truncate_dim)
        if self._stored is not None:
            shortened: TextDocumentEncoder = truncated_as(encoder, self._stored)
            return shortened
        return encoder

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The opened encoder's, to cut texts with.

        Raises InputError for an encoder without one of the package tokenizers.
        """
        return cutting_tokenizer(self.opened)


class SparseKind(Choice, what='sparse ranking of a collection'):
    """What ranks a collection beside its vectors: Lucene's BM25 of whole documents, a learned model
    that weighs terms of passages, or nothing.
    """

    BM25 = 'bm25'
    LEARNED = 'learned'
    NONE = 'none'

    @classmethod
    def named(cls, name: str) -> SparseKind:
        """The kind that a user means: any name but 'bm25' and 'none' names a model."""
        return cls(name) if name in (cls.BM25, cls.NONE) else cls.LEARNED


@dataclass(frozen=True, config=ConfigDict(extra='forbid', defer_build=True))
class CollectionSettings:
    """All that decides a collection's vectors, passages and terms.

    The checksums of configuration and tokenizer are None if `weights_sha256` covers them.
    """

    encoder: Name  # catalog name or folder
    weights_sha256: Sha256
    config_sha256: Sha256 | None
    tokenizer_sha256: Sha256 | None
    pooling: str
    max_length: Length  # wordpieces that the encoder keeps of a passage
    dimension: Length
    precision: str  # that the model runs in
    passage_tokens: Length
    overlap: Annotated[int, Field(ge=0, le=2**20)]
    language: Name  # of Lucene's analyzer
    sparse: SparseKind
    # The models beside the dense encoder, by `Representation.setting`. Files have them beside the
    # other settings, under these names.
    further: dict[str, Any] = field(default_factory=dict)
    dtype: VectorDtype = 'float32'  # of the stored vectors
    # Lucene and filters compare words in one form.
    word_forms: Literal['united'] = 'united'

    @model_validator(mode='before')
    @classmethod
    def _read_models(cls, values: Any) -> Any:
        """Settings of a file, with its further models in `further`.

        Raises InputError for a model that no extension reads, and for words in other forms.
        """
        if not isinstance(values, dict):
            return values
        if values.get('word_forms') != 'united':
            raise InputError(
                'the collection was written before version 0.4.0 was finished: build it again, in '
                'another folder'
            )
        further = {}
        others = {}
        kinds = {kind.setting: kind for kind in representations()}
        for name, value in values.items():
            if name in kinds:
                further[name] = adapter(kinds[name].work.model_type).validate_python(value)
            elif name.endswith(_MODEL):
                raise InputError(
                    f"the collection has a '{name}', and no extension that is installed stores "
                    f'what it makes{missing_extension(name)}'
                )
            else:
                others[name] = value
        return {**others, 'further': further}

    @property
    def further_models(self) -> dict[Representation, RepresentationModel]:
        """The models beside the dense encoder."""
        kinds = (kind for kind in representations() if kind.setting in self.further)
        return {kind: self.further[kind.setting] for kind in kinds}

    def name_of(self, option: str) -> str:
        """What a user names to have the further model of this collection, or to have none.

        `option` is one of `model_options`.
        """
        model = self.further.get(f'{option}{_MODEL}')
        if model is not None:
            return str(model.encoder)
        # Only the sparse ranking has several ways to have no model.
        return str(self.sparse) if option == SPARSE else NONE

    @property
    def models_sha256(self) -> str:
        """A digest of the encoder and the sparse ranking by which a collection learns.

        With BM25 it is the digest of the encoder's weights.
        """
        if self.sparse is SparseKind.BM25:
            return self.weights_sha256
        model = self.further.get(f'{SPARSE}{_MODEL}')
        ranked_by = str(self.sparse) if model is None else model.key()
        return hashlib.sha256(f'{self.weights_sha256} {ranked_by}'.encode()).hexdigest()

    def model_key(self) -> bytes:
        """A digest of all that decides a vector, except for the text."""
        parts = [getattr(self, name) for name in _MODEL_PARTS]
        if self.dtype != 'float32':
            parts.append(self.dtype)
        return hashlib.sha256(repr(parts).encode()).digest()


_MODEL_PARTS = (*MODEL_DIGESTS, 'pooling', 'max_length', 'dimension', 'precision')
_CUTTING_PARTS = (*_MODEL_PARTS, 'dtype', 'passage_tokens', 'overlap')


@dataclass(frozen=True)
class WantedSettings:
    """What a user asks for; None means the collection's setting, or the default for a new one.

    `models` names further models, or none, by `Representation.option`: 'sparse' may be 'bm25',
    'none', or a model's name.
    """

    passage_tokens: int | None = None
    overlap: int | None = None
    language: str | None = None
    dtype: str | None = None
    models: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.dtype is not None:
            check_vector_dtype(self.dtype)
        if self.passage_tokens is not None:
            check_lengths(self.passage_tokens, 0)
        if self.overlap is not None and self.overlap < 0:
            raise InputError(f'an overlap of {self.overlap} wordpieces: expected at least 0')

    def check(self, stored: CollectionSettings) -> None:
        """Raises MismatchError if a wanted setting differs from the collection's."""
        for name in _OWN_SETTINGS:
            self._check(name, getattr(self, name), getattr(stored, name))
        for option, name in self.models.items():
            known = stored.name_of(option)
            # Whether two models are the same, their checksums say.
            if not (names_model(option, name) and names_model(option, known)):
                self._check(option, name, known)

    def _check(self, name: str, wanted: object, known: object) -> None:
        if wanted is not None and wanted != known:
            raise MismatchError(
                f"the collection has {name} '{known}', '{wanted}' was given: "
                'leave it out, or rebuild what depends on it',
                parameters=('rebuild',),
            )


# What a user may want beside models.
_OWN_SETTINGS = tuple(known.name for known in fields(WantedSettings) if known.name != 'models')


def encoder_parts(encoder: TextDocumentEncoder) -> dict[str, Any]:
    """The settings that an opened encoder decides."""
    parts: dict[str, Any] = {name: getattr(encoder, name, None) for name in MODEL_DIGESTS}
    return {
        **parts,
        'encoder': encoder.name,
        'pooling': encoder.pooling,
        'max_length': encoder.limit,
        'dimension': encoder.dimension,
        'precision': str(encoder.precision),
    }


def further_parts(names: Mapping[str, str], source: EncoderSource, dtype: str) -> dict[str, Any]:
    """The settings that the names of further models decide.

    Parameters
    ----------
    names : of models, or of none, by `model_options`
    source : opens the models
    dtype : in which the collection stores vectors
    """
    further = {
        kind.setting: model.model.stored_as(dtype)
        for kind, model in source.further.items()
        if names_model(kind.option, names[kind.option])
    }
    return {'sparse': SparseKind.named(names[SPARSE]), 'further': further}


def check_encoder(encoder: TextDocumentEncoder, settings: CollectionSettings) -> None:
    """Raises MismatchError for an encoder that did not make the collection's vectors."""
    for name, given in encoder_parts(encoder).items():
        expected = getattr(settings, name)
        if name != 'encoder' and given != expected:
            what = name.removesuffix('_sha256')
            # A checksum tells a person nothing.
            values = '' if what != name else f" ('{given}', expected '{expected}')"
            raise MismatchError(
                f"the collection was built with encoder '{settings.encoder}', and '{encoder.name}' "
                f'differs in {what}{values}: give that encoder, or rebuild the '
                'collection with this one',
                parameters=('encoder', 'rebuild'),
            )


def cuts_alike(one: CollectionSettings, other: CollectionSettings) -> bool:
    """Whether passages of one's settings are as `other` wants them, with the same vectors, and what
    the further models make that it asks for.
    """
    for kind, model in other.further_models.items():
        known = one.further_models.get(kind)
        if known is None or known.key() != model.key():
            return False
    return all(getattr(one, name) == getattr(other, name) for name in _CUTTING_PARTS)


def indexes_alike(one: CollectionSettings, other: CollectionSettings) -> bool:
    """Whether two settings give the same Lucene index."""
    return one.language == other.language and one.sparse == other.sparse


def choose_settings(
    wanted: WantedSettings,
    source: EncoderSource,
    stored: CollectionSettings | None,
    rebuild: bool,
    default_language: str = ENGLISH,
) -> CollectionSettings:
    """The settings of the next generation.

    Parameters
    ----------
    wanted : what the user names
    source : the user's encoder, completed
    stored : the collection's settings; None for a new one
    rebuild : let the user's settings replace the stored ones
    default_language : of a new collection

    Raises MismatchError if both differ and the collection is not to be rebuilt.
    """
    if stored is None:
        settings = _new_settings(wanted, source, default_language)
    elif rebuild:
        given = {
            name: getattr(wanted, name)
            for name in _OWN_SETTINGS
            if getattr(wanted, name) is not None
        }
        given.setdefault('overlap', _rebuilt_overlap(wanted, stored))
        names = {}
        for option in model_options():
            names[option] = wanted.models.get(option) or stored.name_of(option)
        dtype = given.get('dtype', stored.dtype)
        given |= further_parts(names, source, dtype)
        settings = replace(stored, **given, **encoder_parts(source.opened))
    else:
        _check_given(wanted, source, stored)
        settings = stored
    check_lengths(settings.passage_tokens, settings.overlap)
    check_language(settings.language)
    return settings


def _rebuilt_overlap(wanted: WantedSettings, stored: CollectionSettings) -> int:
    """The overlap of a rebuilt collection that the user does not name.

    A default follows the new length of passages. An overlap that was named stays.
    """
    is_default = stored.overlap == default_overlap(stored.passage_tokens)
    if is_default and wanted.passage_tokens is not None:
        return default_overlap(wanted.passage_tokens)
    return stored.overlap


def _new_settings(
    wanted: WantedSettings, source: EncoderSource, default_language: str
) -> CollectionSettings:
    """The settings of a new collection."""
    names = dict.fromkeys(model_options(), NONE)
    names |= {SPARSE: BM25, **wanted.models}
    dtype = wanted.dtype or 'float32'
    passage_tokens = wanted.passage_tokens
    if passage_tokens is None:
        passage_tokens = PASSAGE_TOKENS
    overlap = wanted.overlap
    if overlap is None:
        overlap = default_overlap(passage_tokens)
    return CollectionSettings(
        **encoder_parts(source.opened),
        passage_tokens=passage_tokens,
        overlap=overlap,
        language=wanted.language or default_language,
        dtype=dtype,
        **further_parts(names, source, dtype),
    )


def _check_given(wanted: WantedSettings, source: EncoderSource, stored: CollectionSettings) -> None:
    """Raises MismatchError if what the user gives differs from the collection's settings."""
    wanted.check(stored)
    if source.truncate_dim not in (None, stored.dimension):
        raise MismatchError(
            f'the collection has vectors of {stored.dimension} values, '
            f'{source.truncate_dim} were asked for: leave it out, or rebuild the collection',
            parameters=('truncate_dim', 'rebuild'),
        )
    if source.name != stored.encoder:
        check_encoder(source.opened, stored)
    for kind, model in stored.further_models.items():
        if source.further[kind].name != model.encoder:
            source.further[kind].check(model)
