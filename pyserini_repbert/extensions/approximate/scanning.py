"""The scan by an approximate index: `ann=True`, and --ann."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyserini_repbert.collection.scans import CollectionScan
from pyserini_repbert.extensions.approximate.form import ANN

if TYPE_CHECKING:
    from pyserini_repbert.collection.generation import Generation
    from pyserini_repbert.collection.passage_vectors import PassageVectors
    from pyserini_repbert.extension import Representation
    from pyserini_repbert.extensions.approximate.bundles import BundleAnn
    from pyserini_repbert.extensions.approximate.passages import CandidateAnn, PassageAnn
    from pyserini_repbert.index.dense import DenseBundle
    from pyserini_repbert.search.quick_exact import QuickIndex


class ApproximateScan(CollectionScan):
    """Approximate search, with exact scores."""

    name = ANN

    def of_bundle(self, bundle: DenseBundle, verify: bool) -> BundleAnn:
        from pyserini_repbert.extensions.approximate.bundles import BundleAnn

        return BundleAnn(bundle, verify)

    def of_passages(
        self, vectors: PassageVectors, exact: QuickIndex, device_name: str
    ) -> PassageAnn:
        from pyserini_repbert.extensions.approximate.passages import PassageAnn

        return PassageAnn(vectors, exact, device_name)

    def of_representation(
        self, generation: Generation, kind: Representation, passages: PassageVectors
    ) -> CandidateAnn:
        from pyserini_repbert.extensions.approximate.passages import CandidateAnn

        return CandidateAnn(generation, kind, passages)


SCAN = ApproximateScan()
