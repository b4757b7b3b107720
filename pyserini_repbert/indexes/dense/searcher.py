"""A dense first stage by the names of its index and its encoder: RepBERT, or any other."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.faiss_layout import FaissFolder
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.names.indexes import ready_folder
from pyserini_repbert.search.dense import (
    QueryEncoder,
    VectorSearcher,
    check_settings,
    open_dense_index,
)
from pyserini_repbert.search.scans import asked_scan
from pyserini_repbert.search.scores import VectorSearch
from pyserini_repbert.systems.encoders import query_encoder as open_query_encoder, stored_name

log = logging.getLogger(__name__)


class DenseSearcher(VectorSearcher, recorded_as='RepBertSearcher'):
    """Dense search with RepBERT (its eq. 3) or another encoder.

    The index is a dense bundle, or a folder of Pyserini's FAISS layout, which is searched exactly.

    Parameters
    ----------
    index_dir : a dense bundle, or a folder with Pyserini's files `index` and `docid`
    query_encoder : an encoder, a catalog name or a checkpoint folder; default: the one that the
        bundle names
    device : where queries are encoded and vectors are multiplied
    verify : compare the index's files with their checksums (the first time, then only if they have
        changed)
    device_dtype : 'float16' or 'float32': the type in which a CUDA device stores and multiplies
        vectors; a CPU multiplies in float32
    spread : makes, from the bundle, a search of its vectors on other machines, which verify the
        files they open
    precision, max_length : of the query encoder, unless that is open already; as in
        `RepBertQueryEncoder`
    scans : a scan by its name, as `ann=True`: how the nearest vectors of a bundle are found
    """

    def __init__(
        self,
        index_dir: StrPath,
        query_encoder: QueryEncoder | str | Path | None = None,
        device: str = 'cpu',
        verify: bool = True,
        device_dtype: str = 'float16',
        spread: Callable[[DenseBundle], VectorSearch] | None = None,
        precision: Precision | str = Precision.FLOAT32,
        max_length: int | None = None,
        **scans: bool,
    ) -> None:
        scan = asked_scan(scans)
        check_settings(device_dtype=device_dtype, scan=scan, spreads=spread is not None)
        settings = {'precision': Precision(precision), 'max_length': max_length}
        index = open_dense_index(index_dir, verify and spread is None)
        if query_encoder is None:
            with stored_name(f'index {index.folder}'):
                query_encoder = open_query_encoder(_named_encoder(index), device, **settings)
        elif isinstance(query_encoder, (str, Path)):
            query_encoder = open_query_encoder(query_encoder, device, **settings)
        if isinstance(index, FaissFolder):
            _warn_of_unknown_encoder(index, query_encoder)
        super().__init__(
            index,
            query_encoder,
            device,
            verify=verify,
            scan=scan,
            device_dtype=device_dtype,
            spread=spread,
        )

    @classmethod
    def from_prebuilt_index(
        cls,
        name: str,
        query_encoder: str | Path | None = None,
        device: str = 'cpu',
        build: bool = False,
        **scans: Any,
    ) -> DenseSearcher:
        """A searcher for an index of the catalog.

        Parameters
        ----------
        name : of the index; a small one ('demo') is built on first use
        query_encoder : default: the one that the catalog names
        device : as in the searcher
        build : build an index that is missing
        scans : as in the searcher
        """
        encoder = None if query_encoder is None else str(query_encoder)
        return cls(ready_folder(name, encoder, device, build), encoder, device, **scans)


RepBertSearcher = DenseSearcher
"""`DenseSearcher`, as it was called when RepBERT was the only encoder."""


def _named_encoder(index: DenseBundle | FaissFolder) -> str:
    """The encoder that an index names."""
    if isinstance(index, FaissFolder):
        raise InputError(f'FAISS folder {index.folder} does not name its encoder: pass one')
    return index.settings.encoder


def _warn_of_unknown_encoder(index: FaissFolder, encoder: QueryEncoder) -> None:
    """Say that nothing tells whether an encoder made the vectors of a FAISS folder."""
    log.warning(
        "FAISS folder %s does not name its encoder: its hits mean something only if '%s' made its "
        'vectors; another encoder of %d dimensions ranks at random',
        index.folder,
        getattr(encoder, 'name', type(encoder).__name__),
        index.dimension,
    )
