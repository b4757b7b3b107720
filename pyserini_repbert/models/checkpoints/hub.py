"""Checkpoints of the Hugging Face hub, in its client's cache; older weight files become
safetensors in our cache.
"""

from __future__ import annotations

import pkgutil
import shutil
from pathlib import Path
from typing import Any

from pyserini_repbert import catalog
from pyserini_repbert.checksums import write_checksums
from pyserini_repbert.download import is_offline, status_text
from pyserini_repbert.errors import DamagedFileError, MissingResourceError, exhausted
from pyserini_repbert.files import atomic_folder, cache_folder
from pyserini_repbert.models.checkpoints.folder import TOKENIZER, WEIGHTS, Checkpoint

_FILES = ['config.json', *TOKENIZER]
_HUB = 'https://huggingface.co'
_LEGACY = 'pytorch_model.bin'


def hub_checkpoint(entry: catalog.Entry) -> Path:
    """The checkpoint folder of a catalog entry with a `hub` source, fetched on first use."""
    converted = cache_folder() / 'checkpoints' / entry.name
    if converted.is_dir():
        return converted
    snapshot = _snapshot(entry)
    has_tokenizer = any((snapshot / name).is_file() for name in ('vocab.txt', 'tokenizer.json'))
    if (snapshot / WEIGHTS).is_file() and has_tokenizer:
        return snapshot
    if not (snapshot / 'config.json').is_file() or not any(
        (snapshot / n).is_file() for n in (WEIGHTS, _LEGACY)
    ):
        raise DamagedFileError(
            f'{snapshot} holds no config.json with {WEIGHTS} or {_LEGACY}: it is no checkpoint'
        )
    from safetensors.torch import save_file

    from pyserini_repbert.models.convert.pytorch import load_legacy, uncased_vocabulary

    with atomic_folder(converted) as folder:
        for name in (*_FILES, WEIGHTS):
            if (snapshot / name).is_file():
                shutil.copyfile(snapshot / name, folder / name)
        if not has_tokenizer:
            shutil.copyfile(uncased_vocabulary(), folder / 'vocab.txt')
        if not (folder / WEIGHTS).is_file():
            tensors = load_legacy(snapshot / _LEGACY)
            save_file(
                {name: value.contiguous().clone() for name, value in tensors.items()},
                folder / WEIGHTS,
            )
        write_checksums(folder)
    return converted


def downloaded_checkpoint(entry: catalog.Entry) -> Path:
    """The checkpoint folder of a catalog entry in the cache; on first use it is downloaded,
    verified and converted.
    """
    folder = cache_folder() / 'checkpoints' / entry.name
    if not folder.is_dir():
        from pyserini_repbert.download import fetch_entry

        convert = pkgutil.resolve_name(entry.values['convert'])
        convert(fetch_entry(entry), folder, entry.values['ranking'])
    return folder


def upload_checkpoint(checkpoint: Checkpoint, repository: str, private: bool = False) -> str:
    """Upload a checkpoint's folder as it is, with the user's own token.

    Returns the repository's address.

    `repository` is OWNER/NAME. It is made if there is none, `private` or not.
    """
    from huggingface_hub import HfApi

    if is_offline():
        raise MissingResourceError(f"'{repository}' cannot be uploaded: this process is offline")
    hub = HfApi()
    try:
        address = hub.create_repo(repository, private=private, exist_ok=True)
        hub.upload_folder(repo_id=repository, folder_path=str(checkpoint.folder))
    except (OSError, ValueError) as error:  # the client's errors are of these
        raise MissingResourceError(
            f"'{repository}' was not uploaded ({_reason(error)}): log in with 'hf auth login'"
        ) from error
    return str(address)


def _snapshot(entry: catalog.Entry) -> Path:
    from huggingface_hub import snapshot_download

    source = entry.values['hub']
    offline = is_offline()
    repository = source['repository']
    hub: dict[str, Any] = {'revision': source.get('revision'), 'local_files_only': offline}
    try:
        snapshot = Path(snapshot_download(repository, allow_patterns=[*_FILES, WEIGHTS], **hub))
        if not (snapshot / WEIGHTS).is_file():
            snapshot = Path(snapshot_download(repository, allow_patterns=[*_FILES, _LEGACY], **hub))
    except (
        Exception
    ) as error:  # the client raises errors of its HTTP library, and of its parser for other pages
        if limit := exhausted(error):
            raise limit from error
        reason = 'downloads are off' if offline else _reason(error)
        raise MissingResourceError(
            f"'{entry.name}' ({source['size']}) is not here and could not be fetched from "
            f'{_HUB}/{repository} '
            f'({reason}): fetch its files and give their folder instead of the name'
        ) from error
    return snapshot


def _reason(error: BaseException) -> str:
    from huggingface_hub.errors import HfHubHTTPError

    cause: BaseException | None = error
    while (
        cause is not None
    ):  # an HTTP error may be wrapped in 'not in the cache, and could not be reached'
        if isinstance(cause, HfHubHTTPError):
            return status_text(cause.response.status_code)
        cause = cause.__cause__
    if isinstance(error, (ValueError, TypeError, LookupError)):
        return 'what answers there is not the hub, a page that wants a login say'
    return next(iter(str(error).splitlines()), '') or type(error).__name__
