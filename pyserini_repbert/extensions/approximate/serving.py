"""The setting of an index of a service: `ann`, which also offers its approximate indexes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from pyserini_repbert.extensions.approximate.form import ANN
from pyserini_repbert.serve.service_parts import ServicePart

_OFFERED = Field(default=False, description='also offer the approximate indexes of --index')


class AnnInServices(ServicePart):
    """Offers approximate search for each ranking that has an index."""

    index_settings: ClassVar[Mapping[str, tuple[Any, Any]]] = {ANN: (bool, _OFFERED)}


IN_SERVICES = AnnInServices()
