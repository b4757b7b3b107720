"""The files of an index in Pyserini's FAISS layout."""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert.checksums import CHECKSUMS
from pyserini_repbert.files import StrPath
from pyserini_repbert.folder_forms import FolderForm

INDEX = 'index'
DOCIDS = 'docid'
FAISS_FILES = (INDEX, DOCIDS)
FAISS_FORM = FolderForm('FAISS index', (*FAISS_FILES, CHECKSUMS))


def is_faiss_folder(folder: StrPath) -> bool:
    """Whether a folder holds Pyserini's two files."""
    return all((Path(folder) / name).is_file() for name in FAISS_FILES)
