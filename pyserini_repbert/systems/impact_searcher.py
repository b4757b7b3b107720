"""Term weights as a first stage in Lucene: an index of impacts, searched with query weights.

The index is made from a bundle: EPIC's, or of a `SparseEncoder`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyserini_repbert.encode.term_weights import TermWeightsEncoder
from pyserini_repbert.encode.text_encoder import check_model
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.lucene.impacts import ImpactSearcher
from pyserini_repbert.lucene.index_record import record_of
from pyserini_repbert.lucene.searcher import index_folder
from pyserini_repbert.systems.encoders import term_weights_encoder

# Query weights are sent in hundredths: Anserini takes whole numbers.
QUERY_UNIT = 100


class EpicImpactQueryEncoder:
    """Encodes queries as {term: whole weight}, as Pyserini's LuceneImpactSearcher expects.

    Give that searcher `min_idf=-1`; otherwise it drops tokens that all passages have.

    Parameters
    ----------
    model : catalog name, checkpoint folder, or an encoder: EPIC's, or of a `SparseEncoder`
    device : where a model that is opened here runs
    """

    def __init__(self, model: str | Path | TermWeightsEncoder, device: str = 'cpu') -> None:
        if isinstance(model, (str, Path)):
            model = term_weights_encoder(model, device)
        self.encoder = model

    def encode(self, query: str, **_: object) -> dict[str, int]:
        """{term: hundredths of its weight}; a weight that rounds to 0 is left out."""
        vector = self.encoder.encode_query(query)
        names = self.encoder.term_names(vector.terms.tolist())
        levels = {}
        for name, weight in zip(names, vector.weights.tolist(), strict=True):
            level = round(QUERY_UNIT * weight)
            if level > 0:
                levels[name] = level
        return levels


class EpicImpactSearcher(ImpactSearcher, recorded_as='EpicImpactSearcher'):
    """Searches a Lucene index of the variant 'epic-impact'; safe to use from several threads.

    Scores approximate EPIC's (its eq. 5), on the same scale: inner products of quantised weights.

    Parameters
    ----------
    index : the index's folder or name
    model : catalog name, checkpoint folder or encoder; default: the one that the index names
    device : where queries are encoded
    """

    def __init__(
        self,
        index: StrPath,
        model: str | Path | TermWeightsEncoder | None = None,
        device: str = 'cpu',
    ) -> None:
        folder = index_folder(index)
        self.settings: dict[str, Any] = record_of(folder)
        try:
            built_with = str(self.settings['encoder'])
            unit = float(self.settings['step']) / QUERY_UNIT
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f'{folder} is not an EPIC impact index: build one of that variant'
            ) from error
        if model is None:
            model = built_with
        encoder = EpicImpactQueryEncoder(model, device)
        check_model(folder, self.settings, encoder.encoder)
        super().__init__(folder, encoder, unit)
