"""Export of dense bundles to the FLEX index of pyterrier-dr; tested with its version 0.8.1 and npids 0.1.3."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pyserini_repbert.errors import InputError, MissingDependencyError
from pyserini_repbert.files import StrPath, atomic_folder
from pyserini_repbert.index.dense import DenseBundle

VECTORS = 'vecs.f4'
DOCNOS = 'docnos.npids'
META = 'pt_meta.json'
_ROWS = 65536  # rows written at a time


def export_flex(bundle: DenseBundle, output: StrPath, on_progress: Callable[[int], object] | None = None) -> None:
    """Write a dense bundle as `pyterrier_dr.FlexIndex` reads it: float32 vectors by inner product, and docnos.

    Parameters
    ----------
    output : the folder, which must not exist; it appears only when whole
    on_progress : called with the number of vectors written since the last call

    Raises
    ------
    InputError
        where `output` exists
    MissingDependencyError
        where npids, which writes docnos, is not installed
    """
    try:
        from npids import Lookup
    except ImportError as error:
        raise MissingDependencyError.of('npids', 'a FLEX index', "'pyserini-repbert[pyterrier]'") from error
    target = Path(output)
    if target.exists():
        raise InputError(f'output {target} exists: remove it, or give another folder')
    with atomic_folder(target) as folder:
        with open(folder / VECTORS, 'wb') as stream, Lookup.builder(folder / DOCNOS) as docnos:
            for first, vectors in bundle.blocks(_ROWS):
                stream.write(np.ascontiguousarray(vectors, dtype='<f4').data)
                for row in range(first, first + len(vectors)):
                    docnos.add(bundle.docid(row))
                if on_progress is not None:
                    on_progress(len(vectors))
        meta = {
            'type': 'dense_index',
            'format': 'flex',
            'vec_size': bundle.settings.dimension,
            'doc_count': len(bundle),
        }
        (folder / META).write_text(json.dumps(meta), encoding='utf-8')
