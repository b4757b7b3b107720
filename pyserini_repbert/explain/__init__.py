"""Why a passage gets its score: EPIC's weights and expansion terms, CEDR's similarity matrices."""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily

if TYPE_CHECKING:
    from pyserini_repbert.explain.epic import (
        Explanation as Explanation,
        explain_indexed as explain_indexed,
        explain_text as explain_text,
    )
    from pyserini_repbert.explain.similarity import SimilarityModel as SimilarityModel

_NAMES = {
    'pyserini_repbert.explain.epic': ('Explanation', 'explain_indexed', 'explain_text'),
    'pyserini_repbert.explain.similarity': ('SimilarityModel',),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
