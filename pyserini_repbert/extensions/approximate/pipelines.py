"""The field of `PipelineSpec` that asks for approximate search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from pyserini_repbert.extensions.approximate.form import ANN
from pyserini_repbert.pipeline.parts import PipelinePart

_ASKED = Field(default=False, description='search approximate indexes: faster for single queries')


class AnnInPipelines(PipelinePart):
    """Asks for the scan by approximate indexes."""

    fields: ClassVar[Mapping[str, tuple[Any, Any]]] = {ANN: (bool, _ASKED)}


IN_PIPELINES = AnnInPipelines()
