"""The settings file of a service: the form of Pyserini's server (`indexes`, `api_keys`), with additions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pyserini_repbert import catalog
from pyserini_repbert.data.yaml_files import YamlFile, read_yaml
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.serve.settings import IndexSettings, Limits

RESERVED = ('indexes', 'progress')  # parts of addresses below /v1 that name no index


class _Index(BaseModel):
    model_config = ConfigDict(extra='forbid', strict=True)

    path: str | None = None
    name: str | None = None
    index_type: Literal['tf', 'dense', 'faiss', 'impact'] | None = None
    encoder: str | None = None
    base_index: str | None = None
    ann: bool = False
    ray: str | None = None
    sparse: list[str] | None = None
    topics: str | None = None
    qrels: str | None = None


class ServeFile(BaseModel):
    """The contents of a settings file.

    Attributes
    ----------
    indexes : alias -> settings of an index; a string alone is its path
    api_keys : accepted keys
    rerankers : catalog names and checkpoint folders; None: those that come with the package
    limits : of requests
    """

    model_config = ConfigDict(extra='forbid', strict=True)

    indexes: dict[str, _Index] = Field(default_factory=dict)
    api_keys: list[str] = Field(default_factory=list)
    rerankers: list[str] | None = None
    limits: Limits = Limits()

    @field_validator('indexes', mode='before')
    @classmethod
    def _paths_alone(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {alias: {'path': own} if isinstance(own, str) else own for alias, own in value.items()}

    def index_settings(self, folder: Path) -> tuple[IndexSettings, ...]:
        """The settings of each index; paths are relative to `folder`, the settings file's."""
        found = []
        for alias, own in self.indexes.items():
            values = own.model_dump(exclude={'path', 'name'})
            if own.sparse is not None:
                values['sparse'] = tuple(_sparse(folder, spec) for spec in own.sparse)
            if own.encoder and not catalog.find('encoders', own.encoder) and (folder / own.encoder).is_dir():
                values['encoder'] = str(folder / own.encoder)
            for key in ('topics', 'qrels'):
                values[key] = values[key] and _file(folder, values[key])
            found.append(IndexSettings(alias, own.name or str(folder / str(own.path)), **values))
        return tuple(found)

    def reranker_names(self, folder: Path) -> tuple[str, ...] | None:
        """Names and folders of rerankers, None for those that come with the package; relative to `folder`."""
        if self.rerankers is None:
            return None
        return tuple(name if catalog.find('rerankers', name) else _file(folder, name) for name in self.rerankers)


def read_config(path: StrPath) -> ServeFile:
    """Read a settings file."""
    file = read_yaml(path, 'settings file')
    try:
        found = ServeFile.model_validate(file.value or {})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = tuple(part for part in first['loc'] if isinstance(part, (str, int)))
        named = '.'.join(map(str, place))
        problem = first['msg']
        if first['type'] == 'extra_forbidden':
            problem = 'is unknown' + catalog.did_you_mean(str(place[-1]), _known(place))
        raise file.error(f"'{named}': {problem}", *place) from error
    for alias, own in found.indexes.items():
        _check(file, alias, own)
    for number, key in enumerate(found.api_keys):
        if not key.strip():
            raise file.error('an API key is empty', 'api_keys', number)
        if key != key.strip() or not key.isascii():
            raise file.error('an API key has to be ASCII, without blanks around it', 'api_keys', number)
    return found


def check_alias(alias: str) -> None:
    """Raises InputError for an alias that cannot be a part of an address, or is one of `RESERVED`."""
    if not alias or '/' in alias or '%' in alias or alias != alias.strip() or alias in RESERVED:
        raise InputError(f"'{alias}' cannot be the name of an index: no slash, no % and none of {', '.join(RESERVED)}")


def _check(file: YamlFile, alias: str, own: _Index) -> None:
    try:
        check_alias(alias)
    except InputError as error:
        raise file.error(str(error), 'indexes', alias) from error
    if (own.path is None) == (own.name is None):
        raise file.error(f"index '{alias}': give its path, or the name of an index of the catalog", 'indexes', alias)
    if own.path is not None and not (Path(file.path).parent / own.path).is_dir():
        raise file.error(f"index '{alias}' points to a folder that is not there: {own.path}", 'indexes', alias, 'path')


def _known(place: tuple[str | int, ...]) -> list[str]:
    if place[0] == 'limits':
        return list(Limits.model_fields)
    return list(_Index.model_fields if len(place) > 1 else ServeFile.model_fields)


def _sparse(folder: Path, spec: str) -> str:
    technique, at, index = spec.partition('@')
    if at:
        return f'{technique}@{_file(folder, index)}'
    return spec if catalog.find('sparse', spec) else _file(folder, spec)


def _file(folder: Path, given: str) -> str:
    return str(folder / given) if given and (folder / given).exists() else given
