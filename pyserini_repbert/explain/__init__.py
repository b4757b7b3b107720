"""Why passages get their scores: EPIC's weights, CEDR's similarity matrices, duoBERT's pairs, monoBERT's scores."""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily

if TYPE_CHECKING:
    from pyserini_repbert.explain.epic import (
        Explanation as Explanation,
        explain_indexed as explain_indexed,
        explain_text as explain_text,
    )
    from pyserini_repbert.explain.explaining import explanation as explanation
    from pyserini_repbert.explain.similarity import similarity_maps as similarity_maps

_NAMES = {
    'pyserini_repbert.explain.epic': ('Explanation', 'explain_indexed', 'explain_text'),
    'pyserini_repbert.explain.explaining': ('explanation',),
    'pyserini_repbert.explain.similarity': ('similarity_maps',),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
