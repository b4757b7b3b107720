"""A first stage by term weights, by the names of its index and its encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyserini_repbert.encode.term_weights import check_fits
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.impact_index import vocabulary_of
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.indexes.term_weights.searcher import TermWeightsSearcher
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.systems.encoders import stored_name, term_weights_encoder
from pyserini_repbert.systems.sparse_encoder.encoder import SparseTextEncoder


def open_term_weights_searcher(
    folder: StrPath,
    encoder: str | Path | None = None,
    device: str = 'cpu',
    precision: Precision | str = Precision.FLOAT32,
    query_length: int | None = None,
) -> TermWeightsSearcher:
    """Open the exact search of a bundle of term weights.

    Parameters
    ----------
    folder : of the bundle
    encoder : of queries; default: the one that the bundle names
    device : where queries are encoded
    precision : of the encoder
    query_length : tokens kept of a query, for a `SparseEncoder`; default: as its folder says

    Raises InputError for a length with another encoder, and the errors of `TermWeightsSearcher`.
    """
    settings: dict[str, Any] = {'precision': Precision(precision)}
    bundle = TermWeightsBundle(folder)
    if query_length is not None:
        if bundle.settings.variant != SparseTextEncoder.variant:
            raise InputError(
                f"index {folder} is EPIC's, whose checkpoint says how much of a query is read: "
                'leave the length out',
                parameters=('max_length',),
            )
        settings['query_length'] = query_length
    if encoder:
        opened = term_weights_encoder(encoder, device, **settings)
    else:
        with stored_name(f'index {folder}'):
            opened = term_weights_encoder(bundle.settings.encoder, device, **settings)
    return TermWeightsSearcher(bundle, opened)


def term_names_of(bundle: TermWeightsBundle, encoder: str | None = None) -> list[str]:
    """The names of a bundle's terms, by the encoder that it names or by `encoder`.

    Raises MismatchError for another encoder.
    """
    if bundle.settings.variant != SparseTextEncoder.variant:
        return vocabulary_of(bundle, encoder)
    opened = SparseTextEncoder(encoder or bundle.settings.encoder)
    check_fits(bundle, opened)
    return opened.term_names(range(opened.vocabulary))
