"""Serves the stand-ins from 127.0.0.1 as their real hosts would: files by address, and part of
the hub's API.
"""

import hashlib
import json
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from web_stub import Answer, Web, running

COMMIT = '0123456789abcdef0123456789abcdef01234567'
HUB = 'huggingface.co/'


class Site(Web):
    """Files by address, and the folders of the hub's repositories."""

    hub: Mapping[str, Path]

    def answer(self, path: str) -> Answer:
        """What the hub gives, or a file."""
        path = urllib.parse.unquote(path)
        for repository, folder in self.hub.items():
            model = f'{HUB}api/models/{repository}'
            commits = [part for part in path.split('/') if re.fullmatch('[0-9a-f]{40}', part)]
            commit = commits[0] if commits else COMMIT
            files = sorted(folder.iterdir())
            if path.startswith(f'{model}/tree/'):
                sizes = {own.name: own.stat().st_size for own in files}
                return as_json(
                    [
                        {'type': 'file', 'path': name, 'size': sizes[name], 'oid': commit}
                        for name in sizes
                    ],
                    commit,
                )
            if path == model or path.startswith(f'{model}/'):
                siblings = [{'rfilename': own.name} for own in files]
                return as_json({'id': repository, 'sha': commit, 'siblings': siblings}, commit)
            name = path.rpartition('/')[2]
            if path.startswith(f'{HUB}{repository}/resolve/') and (folder / name).is_file():
                return of_hub((folder / name).read_bytes(), commit)
        return super().answer(path)


def as_json(value: object, commit: str) -> Answer:
    return of_hub(json.dumps(value).encode(), commit)


def of_hub(content: bytes, commit: str) -> Answer:
    return Answer(
        content,
        headers={'ETag': f'"{hashlib.sha256(content).hexdigest()}"', 'X-Repo-Commit': commit},
    )


@contextmanager
def serving(files: Mapping[str, Path], hub: Mapping[str, Path]) -> Iterator[str]:
    """Yields the address of a server of files, `address/HOST/PATH`, and of the hub's
    repositories.
    """
    site = Site()
    site.hub = hub
    for address, path in files.items():
        site.add(address, path.read_bytes())
    with running(site):
        yield site.address
