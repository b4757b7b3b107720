"""Dense bundles to the FLEX index of pyterrier-dr and back; tested with its version 0.8.1 and npids 0.1.3."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.corpus import dense_encoding
from pyserini_repbert.encode.encoders import document_encoder
from pyserini_repbert.encode.sharding import build_bundle
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError, needs
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
        where `output` exists, or the bundle holds fewer than two passages, whose docnos npids cannot write
    MissingDependencyError
        where npids, which writes docnos, is not installed
    """
    Lookup = _lookup()
    target = Path(output)
    if target.exists():
        raise InputError(f'output {target} exists: remove it, or give another folder')
    if len(bundle) < 2:  # npids stores what docnos do not share, and fails if that is empty
        raise InputError(f'index {bundle.folder} holds one passage: a FLEX index takes two at least')
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


def import_flex(
    folder: StrPath,
    output: StrPath,
    encoder: str | Path,
    *,
    dtype: str = 'float32',
    on_progress: Callable[[int], object] | None = None,
) -> None:
    """Write a FLEX index as a dense bundle with the same vectors and docnos, without texts.

    Parameters
    ----------
    folder : the FLEX index
    output : the index folder to write
    encoder : the encoder that made the vectors, and encodes queries: catalog name or folder; a FLEX index does not
        name it
    dtype : 'float32' or 'float16', of the stored vectors
    on_progress : called with the number of vectors written since the last call

    Raises
    ------
    InputError
        where `output` holds something, or `folder` is no FLEX index
    MismatchError
        where the encoder's vectors have another length
    DamagedFileError
        where the FLEX index has another number of docnos than of vectors
    MissingDependencyError
        where npids, which reads docnos, is not installed
    """
    Lookup = _lookup()
    source = Path(folder)
    count, size = _described(source)
    made_by = document_encoder(encoder)
    if made_by.dimension != size:
        raise MismatchError(f"{source} has vectors of {size}, encoder '{made_by.name}' gives {made_by.dimension}")
    vectors = np.memmap(source / VECTORS, dtype='<f4', mode='r', shape=(count, size))
    docnos = Lookup(source / DOCNOS)
    if len(docnos) != count:
        raise DamagedFileError(f'{source} has {len(docnos)} docnos for {count} vectors: make it again')
    passages = (Passage(docnos.fwd[row], '') for row in range(count))
    done = 0

    def next_rows(some: Sequence[Passage]) -> NDArray[np.float32]:
        nonlocal done
        found = np.asarray(vectors[done : done + len(some)], dtype=np.float32)
        done += len(some)
        if on_progress is not None:
            on_progress(len(some))
        return found

    encoding = replace(dense_encoding(made_by, dtype=dtype), encode=next_rows, window=_ROWS)
    build_bundle(passages, output, encoding)


def _described(folder: Path) -> tuple[int, int]:
    """(number of vectors, their length) of a FLEX index. Raises InputError for any other folder."""
    try:
        meta = json.loads((folder / META).read_text(encoding='utf-8'))
        kind, count, size = (meta['type'], meta['format']), int(meta['doc_count']), int(meta['vec_size'])
        found = (folder / VECTORS).stat().st_size
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f'{folder} is no FLEX index ({error!r})') from error
    if kind != ('dense_index', 'flex') or count < 1 or size < 1 or found != 4 * count * size:
        raise InputError(f'{folder} is no FLEX index of {count} vectors of {size}: {VECTORS} has {found} bytes')
    return count, size


def _lookup() -> Any:
    """The class that reads and writes docnos."""
    with needs('npids', 'a FLEX index', 'pyterrier'):
        from npids import Lookup
    return Lookup
