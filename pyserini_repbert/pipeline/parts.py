"""`PipelinePart`: what an extension adds to pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from pyserini_repbert.pipeline.pipeline import Pipeline
    from pyserini_repbert.pipeline.spec import PipelineSpec


class PipelinePart:
    """What an extension adds to pipelines; each method does nothing unless it is replaced.

    Attributes
    ----------
    fields : of `PipelineSpec`: an annotation and a default, by name, as for pydantic's
        `create_model`. The description of a field is the help of its flag
    """

    fields: ClassVar[Mapping[str, tuple[Any, Any]]] = {}

    def reranker_settings(self, spec: PipelineSpec) -> Mapping[str, Any]:
        """Keyword arguments for the rerankers that have them.

        Raises InputError for fields that do not go together.
        """
        return {}

    def needs_identities(self, spec: PipelineSpec) -> bool:
        """Whether names and checksums do not say all that decides the ranking, so that the record
        of a run has the identity of each ranker.
        """
        return False

    def wrap(self, pipeline: Pipeline, spec: PipelineSpec) -> Pipeline:
        """The open pipeline as the fields of the spec change it."""
        return pipeline
