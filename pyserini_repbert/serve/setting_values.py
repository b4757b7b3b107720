"""The values of a service's settings: checks of text, and paths relative to the settings file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo

from pyserini_repbert import catalog
from pyserini_repbert.errors import InputError
from pyserini_repbert.lucene.languages import check_language

# Parts of addresses below /v1 that name no index.
RESERVED = ('embeddings', 'indexes', 'models', 'progress', 'rerank')


class StrictSettings(BaseModel):
    """Settings of a file, which never change. Values are not converted to other types."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)


def _alias(text: str) -> str:
    if not text or '/' in text or '%' in text or text != text.strip() or text in RESERVED:
        raise ValueError(
            f"'{text}' cannot be the name of an index: no slash, no % and none of "
            f'{", ".join(RESERVED)}'
        )
    return text


def _key(text: str) -> str:
    if not text or text != text.strip() or not text.isascii():
        raise ValueError('an API key has to be ASCII, not empty, without blanks around it')
    return text


def _host(text: str) -> str:
    if not text or '/' in text or ':' in text or text != text.strip():
        raise ValueError(f"'{text}' is not a host: give a name or '*', without a scheme and a port")
    return text.lower()


def _resolve(text: str, info: ValidationInfo) -> str:
    """A path beside the settings file, if there is something; otherwise the text, which may be a
    name.

    `info.context` is the folder of the settings file; None without one.
    """
    if info.context and text:
        path: Path = info.context / text
        if path.exists():
            return str(path)
    return text


def _new_file(text: str, info: ValidationInfo) -> str:
    """A path beside the settings file, of a file that may not be there yet."""
    if not text:
        raise ValueError('the name of the file is empty')
    return str(info.context / text) if info.context else text


def _folder(text: str, info: ValidationInfo) -> str:
    folders = [text]
    if info.context and not (info.context / text).exists():
        # Several collections may be one index.
        folders = text.split(os.pathsep)
    for folder in folders:
        if info.context and not (info.context / folder).is_dir():
            raise ValueError(f'points to a folder that does not exist: {folder}')
    return os.pathsep.join(_resolve(folder, info) for folder in folders)


def _language(text: str) -> str:
    try:
        check_language(text)
    except InputError as error:
        raise ValueError(str(error)) from error
    return text


def _named(kind: str) -> AfterValidator:
    """A name of the catalog, or a path."""

    def resolve_unknown(text: str, info: ValidationInfo) -> str:
        return text if catalog.find(kind, text) else _resolve(text, info)

    return AfterValidator(resolve_unknown)


def _sparse(text: str, info: ValidationInfo) -> str:
    if catalog.find('sparse', text):
        return text
    technique, at, index = text.rpartition('@')
    return f'{technique}{at}{_resolve(index, info)}'


Alias = Annotated[str, AfterValidator(_alias)]
ApiKey = Annotated[str, AfterValidator(_key)]
HostName = Annotated[str, AfterValidator(_host)]
# An existing path, relative to the settings file.
PathOrName = Annotated[str, AfterValidator(_resolve)]
# The same, of a file that may not be there yet.
NewFile = Annotated[str, AfterValidator(_new_file)]
# The folder of an index, or several.
IndexFolders = Annotated[str, AfterValidator(_folder)]
LanguageCode = Annotated[str, AfterValidator(_language)]
EncoderName = Annotated[str, _named('encoders')]
RerankerName = Annotated[str, _named('rerankers')]
# A technique, with its index after an '@'.
SparseName = Annotated[str, AfterValidator(_sparse)]
