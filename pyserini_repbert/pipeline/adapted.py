"""What `adapt` learnt, a folder with `adapted.json` and `query_map.npy`, and the spec that
searches with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from pyserini_repbert.checksums import digest
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.files import StrPath, atomic_folder, existing_file
from pyserini_repbert.pipeline.spec import PipelineSpec, parse_stage
from pyserini_repbert.record import Sha256
from pyserini_repbert.search.dense import RepBertSearcher

ADAPTED = 'adapted.json'
QUERY_MAP = 'query_map.npy'
_DECIDED = ('fusion', 'weights', 'normalize', 'depth', 'alpha', 'rrf_k', 'sparse_first')


@dataclass(frozen=True, config=ConfigDict(strict=True, extra='forbid'))
class Adapted:
    """What holds for every search with the folder.

    Attributes
    ----------
    index, encoder : as they were given
    encoder_weights : SHA-256
    sparse : in the order of fusion, after the dense index
    query_map : SHA-256 of the file
    weights : of the dense ranking and of each sparse one, of min-max normalised scores
    depth : hits of each ranking that are fused
    estimate : what `adapt` printed: `train.adapting.Estimate`
    stages : the reranker with its share of the score, if one was given
    """

    index: str
    encoder: str
    encoder_weights: str
    sparse: tuple[str, ...]
    query_map: Sha256
    weights: tuple[float, ...]
    depth: int
    estimate: dict[str, Any]
    stages: tuple[str, ...] = ()
    format: Literal['pyserini_repbert.adapted'] = 'pyserini_repbert.adapted'
    version: Literal[1] = 1


_FORM = TypeAdapter(Adapted)


def write_adapted(
    folder: StrPath, query_map: NDArray[np.float32], overwrite: bool = False, **values: Any
) -> None:
    """Write the folder; one that exists needs `overwrite`. `values` are those of `Adapted`."""
    with atomic_folder(folder, replace=overwrite) as written:
        np.save(written / QUERY_MAP, query_map)
        adapted = Adapted(query_map=digest(written / QUERY_MAP), **values)
        (written / ADAPTED).write_bytes(_FORM.dump_json(adapted, indent=1) + b'\n')


def read_adapted(folder: StrPath) -> Adapted:
    """What the folder says."""
    path = Path(folder) / ADAPTED
    try:
        adapted = _FORM.validate_json(existing_file(path, 'adapted search').read_bytes())
    except ValidationError as error:
        problem = error.errors()[0]['msg']
        raise DamagedFileError(
            f'{path} is not what `adapt` writes ({problem}): adapt again'
        ) from error
    if digest(existing_file(path.with_name(QUERY_MAP), 'query map')) != adapted.query_map:
        raise DamagedFileError(
            f'{path.with_name(QUERY_MAP)} is not the map that {path} names: adapt again'
        )
    return adapted


def with_adapted(spec: PipelineSpec) -> PipelineSpec:
    """The spec with what its `adapted` folder decides; index, encoder and sparse techniques may
    be elsewhere by now.
    """
    if spec.adapted is None:
        return spec
    learnt = read_adapted(spec.adapted)
    fused = {
        'fusion': 'interpolation',
        'weights': learnt.weights,
        'normalize': 'minmax',
        'depth': learnt.depth,
    }
    decided = fused if len(learnt.weights) > 1 else {}
    for name in _DECIDED:
        if getattr(spec, name) not in (PipelineSpec.model_fields[name].default, decided.get(name)):
            raise InputError(
                f'{spec.adapted} decides how rankings are fused: leave it out', parameters=(name,)
            )
    given = _techniques(spec.sparse or learnt.sparse)
    expected = _techniques(learnt.sparse)
    if given != expected:
        raise MismatchError(
            f'sparse techniques {given} were given, {spec.adapted} learnt to fuse {expected}: use '
            f'them'
        )
    opened = {
        name: getattr(spec, name) or getattr(learnt, name)
        for name in ('index', 'encoder', 'sparse')
    }
    stages = spec.stages or tuple(map(parse_stage, learnt.stages))
    return spec.model_copy(update=decided | opened | {'stages': stages})


def _techniques(sparse: Sequence[str]) -> str:
    """The names without their indexes, as an error shows them."""
    return ' '.join(name.partition('@')[0] for name in sparse) or 'none'


def with_query_map(searcher: RepBertSearcher, folder: str) -> RepBertSearcher:
    """The searcher with the folder's query map."""
    learnt = read_adapted(folder)
    if getattr(searcher.query_encoder, 'weights_sha256', None) != learnt.encoder_weights:
        raise MismatchError(
            f"{folder} was learnt for encoder '{learnt.encoder}', '{searcher.name}' has other "
            f'weights: adapt again'
        )
    return searcher.with_settings(query_map=np.load(Path(folder) / QUERY_MAP))
