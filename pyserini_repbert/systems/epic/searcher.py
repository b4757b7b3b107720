"""EPIC as a first stage: a Lucene index of its impacts, searched with its query weights.

Indexes of the impacts of a `SparseEncoder` are searched the same way.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyserini_repbert.encode.impact_encoder import ImpactEncoder
from pyserini_repbert.encode.text_encoder import check_model
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.lucene.impacts import ImpactSearcher
from pyserini_repbert.lucene.searcher import index_folder
from pyserini_repbert.lucene.sparse_settings import record_of
from pyserini_repbert.systems.epic.encoder import QUERY_UNIT, EpicImpactQueryEncoder


class EpicImpactSearcher(ImpactSearcher):
    """Searches a Lucene index of the variant 'epic-impact'; safe to use from several threads.

    Scores approximate EPIC's (its eq. 5), on the same scale: inner products of quantised weights.

    Parameters
    ----------
    index : the index's folder or name
    model : catalog name, checkpoint folder or encoder; default: the one that the index names
    device : where queries are encoded
    """

    def __init__(
        self, index: StrPath, model: str | Path | ImpactEncoder | None = None, device: str = 'cpu'
    ) -> None:
        folder = index_folder(index)
        self.settings: dict[str, Any] = record_of(folder)
        try:
            built_with = str(self.settings['encoder'])
            unit = float(self.settings['step']) / QUERY_UNIT
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f'{folder} is no EPIC impact index: build one of that variant'
            ) from error
        if model is None:
            model = built_with
        encoder = EpicImpactQueryEncoder(model, device)
        check_model(folder, self.settings, encoder.encoder)
        super().__init__(folder, encoder, unit)
