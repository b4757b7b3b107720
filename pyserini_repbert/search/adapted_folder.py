"""The folder that `adapt` writes: `adapted.json` and `query_map.npy`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from pyserini_repbert.checksums import digest
from pyserini_repbert.data.values import MAX_COUNT
from pyserini_repbert.errors import DamagedFileError, MismatchError
from pyserini_repbert.files import StrPath, atomic_folder, existing_file
from pyserini_repbert.fusion.methods import RRF_K, FusionMethod, FusionName, NormalizationName
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.index.bundle import mapped
from pyserini_repbert.record import Sha256
from pyserini_repbert.search.adapted_form import ADAPTED, ADAPTED_FORM, QUERY_MAP
from pyserini_repbert.search.aggregation import AggregationName

if TYPE_CHECKING:
    from pyserini_repbert.search.dense import QueryEncoder


@dataclass(frozen=True, config=ConfigDict(strict=True, extra='forbid', defer_build=True))
class AdaptedSearch:
    """The settings of every search with the folder.

    Attributes
    ----------
    index, encoder : as they were given
    encoder_weights : SHA-256
    sparse : in the order of fusion, after the dense index
    query_map : SHA-256 of the file; None: queries are searched as they are encoded
    weights : of the dense ranking and of each sparse one, of min-max normalised scores
    depth : hits of each ranking that are fused; None: as `FusionSettings.depth_for` says
    estimate : what `adapt` printed: `adapt.adaptation.Estimate`
    stages : the reranker with its share of the score, if one was given
    rankings : of a collection, those that are searched, in the order of fusion; none: all
    method, normalize, rrf_k : how the rankings are fused, as in `FusionSettings`
    sparse_first : the sparse rankings lead the fusion
    aggregate : of a collection, how scores of passages become scores of documents
    k1, b : of a collection's BM25; None: the usual ones
    chosen : names of the attributes that a person set, with `index settings`
    version : 2 if one of the last nine differs from its default, or if there is no query map;
        version 1 lacks these
    """

    index: str
    encoder: str
    encoder_weights: str
    sparse: tuple[str, ...]
    query_map: Sha256 | None
    weights: tuple[Annotated[float, Field(allow_inf_nan=False)], ...]
    depth: Annotated[int, Field(ge=1, le=MAX_COUNT)] | None
    estimate: dict[str, Any]
    stages: tuple[str, ...] = ()
    rankings: tuple[Literal['dense', 'bm25', 'sparse'], ...] = ()
    method: FusionName = 'interpolation'
    normalize: NormalizationName = 'minmax'
    rrf_k: Annotated[float, Field(ge=0, allow_inf_nan=False)] = RRF_K
    sparse_first: bool = False
    aggregate: AggregationName = 'max'
    k1: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None
    b: Annotated[float | None, Field(ge=0, le=1)] = None
    chosen: tuple[str, ...] = ()
    format: Literal['pyserini_repbert.adapted'] = 'pyserini_repbert.adapted'
    version: Literal[1, 2] = 1


_FORM = TypeAdapter(AdaptedSearch)
# What version 2 added.
_NEWER = (
    'rankings',
    'method',
    'normalize',
    'rrf_k',
    'sparse_first',
    'aggregate',
    'k1',
    'b',
    'chosen',
)


def write_adapted(
    folder: StrPath, query_map: NDArray[np.float32] | None, overwrite: bool = False, **values: Any
) -> None:
    """Write the folder.

    Parameters
    ----------
    folder : where
    query_map : float32 (d, d); None: queries are searched as they are encoded
    overwrite : replace a folder that exists, once the new one is complete
    values : the attributes of `AdaptedSearch`, except for the checksum of the query map
    """
    with atomic_folder(folder, ADAPTED_FORM if overwrite else None) as written:
        sha256 = None
        if query_map is not None:
            np.save(written / QUERY_MAP, query_map)
            sha256 = digest(written / QUERY_MAP)
        adapted = AdaptedSearch(query_map=sha256, **values)
        is_newer = any(_differs_from_default(adapted, name) for name in _NEWER)
        if is_newer or query_map is None:
            adapted = replace(adapted, version=2)
        (written / ADAPTED).write_bytes(_FORM.dump_json(adapted, indent=1) + b'\n')


def _differs_from_default(adapted: AdaptedSearch, name: str) -> bool:
    """Whether an attribute is other than a folder of version 1 has it."""
    return bool(getattr(adapted, name) != getattr(AdaptedSearch, name))


def read_adapted(folder: StrPath) -> AdaptedSearch:
    """What the folder says, once its query map is compared with its checksum."""
    adapted = read_description(folder)
    query_map = Path(folder) / QUERY_MAP
    if adapted.query_map is None:
        return adapted
    if digest(existing_file(query_map, 'query map')) != adapted.query_map:
        raise DamagedFileError(
            f'{query_map} is not the map that {Path(folder) / ADAPTED} names: adapt again'
        )
    return adapted


def read_description(folder: StrPath) -> AdaptedSearch:
    """What `adapted.json` says, without a look at the query map."""
    path = Path(folder) / ADAPTED
    try:
        return _FORM.validate_json(existing_file(path, 'adapted search').read_bytes())
    except ValidationError as error:
        problem = error.errors()[0]['msg']
        raise DamagedFileError(
            f'{path} is not what `adapt` writes ({problem}): adapt again'
        ) from error


def learned_fusion(adapted: AdaptedSearch) -> FusionSettings | None:
    """How the rankings are fused; None for a single ranking."""
    is_interpolation = FusionMethod(adapted.method) is FusionMethod.INTERPOLATION
    if is_interpolation and len(adapted.weights) < 2:
        return None
    return FusionSettings(
        adapted.method,
        weights=adapted.weights,
        rrf_k=adapted.rrf_k,
        normalize=adapted.normalize,
        depth=adapted.depth,
    )


def read_query_map(
    query_encoder: QueryEncoder, adapted: AdaptedSearch, *, folder: StrPath, dimension: int
) -> NDArray[np.float32] | None:
    """The folder's query map, float32 (d, d); None if it has none.

    Parameters
    ----------
    query_encoder : encodes the queries
    adapted : what the folder says
    folder : what `adapt` wrote
    dimension : d, the length of an index's vectors

    Raises
    ------
    MismatchError
        If the map was not learned for the encoder's weights.
    DamagedFileError
        For a map of another shape, and for one that is not finite.
    """
    if adapted.query_map is None:
        return None
    if getattr(query_encoder, 'weights_sha256', None) != adapted.encoder_weights:
        name = getattr(query_encoder, 'name', type(query_encoder).__name__)
        raise MismatchError(
            f"{folder} was learned for encoder '{adapted.encoder}', and '{name}' has "
            'other weights: adapt again'
        )
    return open_query_map(folder, dimension)


def open_query_map(folder: StrPath, dimension: int) -> NDArray[np.float32] | None:
    """The map in a folder, float32 (dimension, dimension), for any encoder.

    None for a map of zeros, which does not change queries: earlier releases wrote it if only a
    fusion was chosen.

    Raises DamagedFileError for a map of another shape, and for one that is not finite.
    """
    path = Path(folder) / QUERY_MAP
    shape = (dimension, dimension)
    query_map = np.array(mapped(path, np.float32, shape, advice='adapt again'))
    if not np.isfinite(query_map).all():
        raise DamagedFileError(f'{path} holds values that are not finite: adapt again')
    return query_map if query_map.any() else None
