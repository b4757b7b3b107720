"""Fusion of rankings of the same queries: interleaving, reciprocal rank fusion, interpolation."""

from typing import TYPE_CHECKING

from pyserini_repbert.lazy import exports

if TYPE_CHECKING:
    from pyserini_repbert.fusion.fused import Fusion as Fusion
    from pyserini_repbert.fusion.interleaving import interleave as interleave, provenance as provenance
    from pyserini_repbert.fusion.methods import FusionMethod as FusionMethod, fuse as fuse

__getattr__, __dir__, __all__ = exports(__name__)
