"""Downloads from a server on this machine, which has the file of `https://HOST/PATH` at
`/HOST/PATH`.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from huggingface_hub import constants

from pyserini_repbert import download
from pyserini_repbert.regression import fetching, resources


@contextmanager
def redirected(server: str, verified: bool = True) -> Iterator[None]:
    """Fetch from `server`; stand-ins of files lack their published checksums, so `verified` is
    False for them.
    """
    fetch = download.fetch

    def fetch_unverified(
        address: str, target: Path, md5: str | None, *rest: Any, **named: Any
    ) -> Path:
        return fetch(address, target, None, *rest, **named)

    def here(address: str) -> str:
        return address if address.startswith(server) else f'{server}/{address.partition("://")[2]}'

    open_address = download._open

    def open_here(address: str, headers: Mapping[str, str]) -> Any:
        return open_address(here(address), headers)

    with ExitStack() as patches:
        patches.enter_context(patch.object(download, '_open', open_here))
        for name in ('ENDPOINT', 'HUGGINGFACE_CO_URL_TEMPLATE'):
            patches.enter_context(patch.object(constants, name, here(getattr(constants, name))))
        if not verified:
            for module in (download, fetching):
                patches.enter_context(patch.object(module, 'fetch', fetch_unverified))
            patches.enter_context(patch.object(fetching, '_check_sha256', lambda *_: None))
            patches.enter_context(
                patch.object(resources, '_expected_checksum', lambda *_: resources.ANY_CHECKSUM)
            )
        yield
