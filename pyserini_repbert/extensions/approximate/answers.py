"""The field `approximate` in the description of an index, over HTTP and MCP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from pyserini_repbert.extensions.approximate.form import ANN
from pyserini_repbert.serve.answer_parts import AnswerPart

if TYPE_CHECKING:
    from pyserini_repbert.serve.indexes import ServedIndex

_FIELD = 'approximate'


class AnnInAnswers(AnswerPart):
    """Says which rankings an approximate index finds."""

    index_fields: ClassVar[Mapping[str, Any]] = {
        _FIELD: Annotated[
            dict[str, str],
            Field(
                description='for each ranking of an approximate index, the exact ranking whose '
                'hits it finds'
            ),
        ]
    }

    def about(self, index: ServedIndex) -> dict[str, Any]:
        exact_of = {
            name: ranking.exact for name, ranking in index.scanned.items() if ranking.scan == ANN
        }
        return {_FIELD: exact_of}


IN_ANSWERS = AnnInAnswers()
