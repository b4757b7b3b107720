"""Why a passage gets its score: EPIC's weights and expansion terms, CEDR's similarity matrices."""

from typing import TYPE_CHECKING

from pyserini_repbert.lazy import exports

if TYPE_CHECKING:
    from pyserini_repbert.explain.epic import (
        Explanation as Explanation,
        explain_indexed as explain_indexed,
        explain_text as explain_text,
    )
    from pyserini_repbert.explain.similarity import SimilarityModel as SimilarityModel

__getattr__, __dir__, __all__ = exports(__name__)
