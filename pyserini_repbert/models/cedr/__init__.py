"""CEDR (MacAvaney et al., 2019): contextual term matching for long documents, on a BERT that reads query and document.

Use it behind a sparse first stage, on documents of up to a few pages. https://arxiv.org/abs/1904.07094
"""

from typing import TYPE_CHECKING

from pyserini_repbert.lazy import exports

if TYPE_CHECKING:
    from pyserini_repbert.models.cedr.loading import load_ranker as load_ranker, new_ranker as new_ranker
    from pyserini_repbert.models.cedr.settings import (
        FIRST_STAGES as FIRST_STAGES,
        Architecture as Architecture,
        CedrSettings as CedrSettings,
    )

__getattr__, __dir__, __all__ = exports(__name__)
