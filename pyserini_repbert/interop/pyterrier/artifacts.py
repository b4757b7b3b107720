"""Index folders as PyTerrier's artifacts: `pt.Artifact.load(folder)` opens them, `to_hf` and `to_zenodo` share them.

PyTerrier finds these classes by this package's entry points; nothing is added to the folders.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.index.manifest import MANIFEST, manifest_kind
from pyserini_repbert.interop.pyterrier.frames import pt
from pyserini_repbert.interop.pyterrier.rerankers import Epic
from pyserini_repbert.interop.pyterrier.retrievers import HITS, RepBertRetriever
from pyserini_repbert.interop.pyterrier.texts import PassageText

FORMAT = 'pyserini_repbert'
PACKAGE = 'pyserini-repbert[pyterrier]'
DENSE, EPIC = 'dense_index', 'epic_index'


class DenseArtifact(pt.Artifact):  # type: ignore[misc]
    """A dense bundle."""

    ARTIFACT_TYPE = DENSE
    ARTIFACT_FORMAT = FORMAT
    ARTIFACT_PACKAGE_HINT = PACKAGE

    def retriever(self, encoder: str | Path | None = None, num_results: int = HITS, **settings: Any) -> Any:
        """A `RepBertRetriever` of the bundle; default encoder: the one that it was built with."""
        return RepBertRetriever(self.path, encoder, num_results, **settings)

    def text(self) -> Any:
        """A `PassageText` of the bundle. Raises InputError by `transform` if it stores no text."""
        return PassageText(self.path)


class EpicArtifact(pt.Artifact):  # type: ignore[misc]
    """An EPIC bundle."""

    ARTIFACT_TYPE = EPIC
    ARTIFACT_FORMAT = FORMAT
    ARTIFACT_PACKAGE_HINT = PACKAGE

    def reranker(self, model: str | Path, **settings: Any) -> Any:
        """An `Epic` that reads the passages' vectors from the bundle."""
        return Epic(model, self.path, **settings)


def bundle_metadata(path: str, listing: Sequence[str]) -> dict[str, str] | None:
    """PyTerrier's metadata of a dense or an EPIC bundle, which its manifest tells; None for any other folder."""
    if MANIFEST not in listing or not any(name.startswith('shard-') for name in listing):
        return None
    kind = EPIC if manifest_kind(path) == EpicBundle.settings_kind.kind else DENSE
    return {'type': kind, 'format': FORMAT, 'package_hint': PACKAGE}
