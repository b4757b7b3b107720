"""Checkpoints of the Hugging Face hub, in its client's cache; older weight files become
safetensors in our cache.
"""

from __future__ import annotations

import pkgutil
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pyserini_repbert import catalog
from pyserini_repbert.checksums import write_checksums
from pyserini_repbert.errors import DamagedFileError, MissingResourceError, exhausted
from pyserini_repbert.files import atomic_folder, cache_folder, locked
from pyserini_repbert.models.checkpoints.folder import TOKENIZER, WEIGHTS, Checkpoint
from pyserini_repbert.offline import is_offline

_FILES = ['config.json', *TOKENIZER]
_HUB = 'https://huggingface.co'
_LEGACY = 'pytorch_model.bin'
_TOKENIZERS = ('vocab.txt', 'tokenizer.json')


def hub_checkpoint(entry: catalog.Entry) -> Path:
    """The checkpoint folder of a catalog entry with a `hub` source, fetched on first use."""
    converted = cache_folder() / 'checkpoints' / entry.name
    if converted.is_dir():
        return converted
    snapshot = _snapshot(entry)
    if (snapshot / WEIGHTS).is_file() and _has_any(snapshot, _TOKENIZERS):
        return snapshot
    if not (snapshot / 'config.json').is_file() or not _has_any(snapshot, (WEIGHTS, _LEGACY)):
        raise DamagedFileError(
            f'{snapshot} holds no config.json with {WEIGHTS} or {_LEGACY}: it is not a checkpoint'
        )
    with atomic_folder(converted) as folder:
        _complete(snapshot, folder)
        write_checksums(folder)
    return converted


def _has_any(folder: Path, names: Iterable[str]) -> bool:
    """Whether a folder has one of these files."""
    return any((folder / name).is_file() for name in names)


def _complete(snapshot: Path, folder: Path) -> None:
    """Copy a checkpoint, with weights in safetensors, and with a vocabulary if it has none."""
    from safetensors.torch import save_file

    from pyserini_repbert.models.checkpoints.legacy import load_legacy, uncased_vocabulary

    for name in (*_FILES, WEIGHTS):
        if (snapshot / name).is_file():
            shutil.copyfile(snapshot / name, folder / name)
    if not _has_any(snapshot, _TOKENIZERS):
        shutil.copyfile(uncased_vocabulary(), folder / 'vocab.txt')
    if not (folder / WEIGHTS).is_file():
        tensors = load_legacy(snapshot / _LEGACY)
        copies = {name: value.contiguous().clone() for name, value in tensors.items()}
        save_file(copies, folder / WEIGHTS)


def downloaded_checkpoint(entry: catalog.Entry) -> Path:
    """The checkpoint folder of a catalog entry in the cache; on first use it is downloaded,
    verified and converted.
    """
    from pyserini_repbert.download import fetch_entry

    return _converted(entry, lambda: fetch_entry(entry))


def packaged_checkpoint(entry: catalog.Entry) -> Path:
    """The checkpoint folder of a catalog entry whose package has it, or has a `file` of another
    form, which is converted on first use, in the cache.
    """
    file = entry.values['package'].get('file')
    if file is None:
        return catalog.package_folder(entry)
    return _converted(entry, lambda: catalog.package_folder(entry) / file)


def _converted(entry: catalog.Entry, get_file: Callable[[], Path]) -> Path:
    """The checkpoint folder of an entry in the cache, which is made from its file on first use.

    Raises BusyError while another process makes it.
    """
    folder = cache_folder() / 'checkpoints' / entry.name
    if folder.is_dir():
        return folder
    file = get_file()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(f'{folder.name}.lock'), f"checkpoint '{entry.name}'"):
        # Another process may have made it meanwhile.
        if not folder.is_dir():
            convert = pkgutil.resolve_name(entry.values['convert'])
            convert(file, folder, entry.values['ranking'])
    return folder


def upload_checkpoint(checkpoint: Checkpoint, repository: str, private: bool = False) -> str:
    """Upload a checkpoint's folder unchanged, with the user's token.

    Returns the repository's address.

    `repository` is OWNER/NAME. If the repository does not exist, it is created, `private` or not.
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
    # The client raises errors of its HTTP library, and of its parser for other pages.
    except Exception as error:
        limit = exhausted(error)
        if limit:
            raise limit from error
        reason = 'downloads are off' if offline else _reason(error)
        raise MissingResourceError(
            f"'{entry.name}' ({source['size']}) is missing, and could not be fetched from "
            f'{_HUB}/{repository} '
            f'({reason}): fetch its files and give their folder instead of the name'
        ) from error
    return snapshot


def _reason(error: BaseException) -> str:
    from huggingface_hub.errors import HfHubHTTPError

    cause: BaseException | None = error
    # An HTTP error may be wrapped in 'not in the cache, and could not be reached'.
    while cause is not None:
        if isinstance(cause, HfHubHTTPError):
            from pyserini_repbert.download import status_text

            return status_text(cause.response.status_code)
        cause = cause.__cause__
    if isinstance(error, (ValueError, TypeError, LookupError)):
        return 'what answers there is not the hub, but another page, such as a login'
    return next(iter(str(error).splitlines()), '') or type(error).__name__
