"""Fusion of rankings of the same queries: interleaving, reciprocal rank fusion, interpolation."""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily

if TYPE_CHECKING:
    from pyserini_repbert.fusion.fused import Fusion as Fusion
    from pyserini_repbert.fusion.fusing import fuse as fuse
    from pyserini_repbert.fusion.interleaving import (
        interleave as interleave,
        provenance as provenance,
    )
    from pyserini_repbert.fusion.methods import FusionMethod as FusionMethod
    from pyserini_repbert.fusion.settings import FusionSettings as FusionSettings

_NAMES = {
    'pyserini_repbert.fusion.fused': ('Fusion',),
    'pyserini_repbert.fusion.fusing': ('fuse',),
    'pyserini_repbert.fusion.interleaving': ('interleave', 'provenance'),
    'pyserini_repbert.fusion.methods': ('FusionMethod',),
    'pyserini_repbert.fusion.settings': ('FusionSettings',),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
