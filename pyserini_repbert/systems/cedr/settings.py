"""The settings of a CEDR model: the `ranking` object of its config.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from pyserini_repbert.data.values import Choice
from pyserini_repbert.errors import InputError

NAME = 'cedr'
MAX_QUERY_TOKENS = 20  # the released code; in the paper, queries are never cut
MAX_DOCUMENT_TOKENS = 800  # CEDR section 3.1
K_MAX = 2  # the released code and its checkpoints; 30 in CEDR section 3.1
# How many hits CEDR reranks on its two collections, of BM25 and of query likelihood (section 3.1).
FIRST_STAGE_DEPTHS = {'robust04': 150, 'webtrack': 100}


class Architecture(Choice, what='CEDR architecture'):
    """The head that turns similarities and [CLS] into a score."""

    VANILLA = 'vanilla'
    KNRM = 'knrm'
    PACRR = 'pacrr'
    DRMM = 'drmm'


@dataclass(frozen=True)
class CedrSettings:
    """The settings of a CEDR model.

    Raises InputError for an unknown architecture, or values that do not go together. With
    `pad_query`, a document begins at the same position after any query, as in the released code;
    without it, positions continue after the query, and DRMM sums only over its tokens.
    """

    architecture: Architecture = Architecture.VANILLA
    # [CLS] joins the signals (CEDR section 2.3); False: Table 1's rows "BERT (fine-tuned)"
    joint: bool = True
    k_max: int = (
        K_MAX  # how many of the strongest matches PACRR keeps for each query token and n-gram size
    )
    max_query_length: int = MAX_QUERY_TOKENS  # wordpieces kept, special tokens not counted
    max_doc_length: int = MAX_DOCUMENT_TOKENS  # likewise
    pad_query: bool = True  # leave room for `max_query_length` query tokens
    static: bool = False  # word vectors in place of a BERT (Table 1's rows "GloVe")

    def __post_init__(self) -> None:
        object.__setattr__(self, 'architecture', Architecture(self.architecture))
        if self.architecture == Architecture.VANILLA and not self.joint:
            raise InputError(
                'Vanilla BERT scores by [CLS] alone: joint=false is for knrm, pacrr and drmm'
            )
        if self.static and self.joint:
            raise InputError('static word vectors have no [CLS]: set joint=false')
        if self.architecture == Architecture.PACRR and not self.pad_query:
            raise InputError(
                'PACRR has weights for a fixed number of query tokens: pad_query=false is for the '
                'others'
            )
        for name in ('k_max', 'max_query_length', 'max_doc_length'):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InputError(
                    f"CEDR's {name} is {value!r}, an integer of at least 1 was expected"
                )

    @classmethod
    def from_ranking(cls, ranking: Mapping[str, Any]) -> CedrSettings:
        """From the `ranking` object of a config.json; other keys are ignored."""
        return cls(
            **{field.name: ranking[field.name] for field in fields(cls) if field.name in ranking}
        )

    def ranking(self) -> dict[str, Any]:
        """The `ranking` object for a config.json."""
        return {'system': NAME, **asdict(self), 'architecture': str(self.architecture)}
