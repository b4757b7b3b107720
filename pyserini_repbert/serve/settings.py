"""The settings of a service, and the file that holds them: Pyserini's (`indexes`, `api_keys`), with additions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pyserini_repbert import catalog
from pyserini_repbert.data.yaml_files import YamlFile, read_yaml
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath

RESERVED = ('indexes', 'progress')  # parts of addresses below /v1 that name no index

_Count = Annotated[int, Field(ge=1)]
_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)


class Limits(_Settings):
    """The most that a request may ask for and take, and how much may wait. Each query of a batch counts on its own.

    Attributes
    ----------
    query_characters : characters of a query
    hits : hits of a search
    rerank_depth : candidates of a reranking stage, and passages of an explanation
    inferences : model inputs of a search, in all its stages, or of an explanation
    batch_queries : queries of a batch
    body_bytes : bytes of a request's body
    waiting : jobs that wait in one queue; further requests are answered with 429
    search_seconds : seconds until a search without reranking is given up
    rerank_seconds : seconds until a search with reranking, or an explanation is given up
    stop_seconds : seconds that a stopping service has to finish its requests, rounded down
    """

    query_characters: _Count = 2000
    hits: _Count = 1000
    rerank_depth: _Count = 200
    inferences: _Count = 5000
    batch_queries: _Count = 100
    body_bytes: _Count = 1 << 20
    waiting: _Count = 256
    search_seconds: _Seconds = 10.0
    rerank_seconds: _Seconds = 120.0
    stop_seconds: _Seconds = 30.0


class IndexSettings(_Settings):
    """An index of the service: a folder (`path`), or a name of the catalog.

    Attributes
    ----------
    index_type : 'tf' (Lucene), 'dense' (a bundle of ours), 'faiss' (Pyserini's layout), 'impact' (EPIC's impacts);
        None: recognised by the files in the folder
    encoder : of dense indexes; None: the one that the index names
    base_index : the alias of the Lucene index that holds its passages, and which sparse systems search
    ann : whether its approximate index is a system too
    ray : the Ray cluster that searches its vectors, HOST:PORT or 'auto'; None: this machine
    sparse : sparse systems beside it, as `NAME`, `NAME@FOLDER` or `MODULE:CLASS`; None: those that fit its Lucene index
    adapted : a folder of `adapt`, whose search is a system named 'adapted'
    topics, qrels : queries and judgments for it, by name or file; None: the catalog's, for an index of the catalog
    """

    path: str | None = None
    name: str | None = None
    index_type: Literal['tf', 'dense', 'faiss', 'impact'] | None = None
    encoder: str | None = None
    base_index: str | None = None
    ann: bool = False
    ray: str | None = None
    sparse: list[str] | None = None
    adapted: str | None = None
    topics: str | None = None
    qrels: str | None = None

    @property
    def place(self) -> str:
        """The folder or the catalog name."""
        return self.name or str(self.path)

    def under(self, folder: Path) -> IndexSettings:
        """The same settings with paths relative to `folder`."""
        values = self.model_dump()
        if self.path is not None:
            values['path'] = str(folder / self.path)
        if self.encoder and not catalog.find('encoders', self.encoder):
            values['encoder'] = _file(folder, self.encoder)
        if self.sparse is not None:
            values['sparse'] = [_sparse(folder, spec) for spec in self.sparse]
        for key in ('adapted', 'topics', 'qrels'):
            values[key] = values[key] and _file(folder, values[key])
        return IndexSettings(**values)


class FileSettings(_Settings):
    """The contents of a settings file.

    Attributes
    ----------
    indexes : alias -> settings of an index; a string alone is its path
    api_keys : accepted keys; empty: none is needed
    rerankers : catalog names, checkpoint folders and `MODULE:CLASS` that clients may name, folders by their last part;
        None: those that come with the package
    limits : of requests
    """

    indexes: dict[str, IndexSettings] = Field(default_factory=dict)
    api_keys: list[str] = Field(default_factory=list)
    rerankers: list[str] | None = None
    limits: Limits = Limits()

    @field_validator('indexes', mode='before')
    @classmethod
    def _paths_alone(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            alias: {'path': value_of_alias} if isinstance(value_of_alias, str) else value_of_alias
            for alias, value_of_alias in value.items()
        }


class ServeSettings(FileSettings):
    """The settings of a service.

    Attributes
    ----------
    device, precision : of all models
    threads : queries of a batch that Lucene answers at a time
    log_queries : whether the access log holds the query strings of addresses; bodies are never logged
    """

    device: str = 'cpu'
    precision: str = 'float32'
    threads: int = 1
    log_queries: bool = False


def read_settings(path: StrPath) -> FileSettings:
    """Read a settings file; its paths are relative to its folder."""
    file = read_yaml(path, 'settings file')
    folder = Path(file.path).parent
    try:
        settings = FileSettings.model_validate(file.value or {})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = tuple(part for part in first['loc'] if isinstance(part, (str, int)))
        problem = first['msg']
        if first['type'] == 'extra_forbidden':
            problem = 'is unknown' + catalog.did_you_mean(str(place[-1]), _known(place))
        raise file.error(f"'{'.'.join(map(str, place))}': {problem}", *place) from error
    for alias, index_settings in settings.indexes.items():
        _check(file, folder, alias, index_settings)
    for number, key in enumerate(settings.api_keys):
        if not key.strip():
            raise file.error('an API key is empty', 'api_keys', number)
        if key != key.strip() or not key.isascii():
            raise file.error('an API key has to be ASCII, without blanks around it', 'api_keys', number)
    rerankers = settings.rerankers and [
        name if catalog.find('rerankers', name) else _file(folder, name) for name in settings.rerankers
    ]
    indexes = {alias: index_settings.under(folder) for alias, index_settings in settings.indexes.items()}
    return settings.model_copy(update={'indexes': indexes, 'rerankers': rerankers})


def check_alias(alias: str) -> None:
    """Raises InputError for an alias that cannot be a part of an address, or is one of `RESERVED`."""
    if not alias or '/' in alias or '%' in alias or alias != alias.strip() or alias in RESERVED:
        raise InputError(f"'{alias}' cannot be the name of an index: no slash, no % and none of {', '.join(RESERVED)}")


def _check(file: YamlFile, folder: Path, alias: str, settings: IndexSettings) -> None:
    try:
        check_alias(alias)
    except InputError as error:
        raise file.error(str(error), 'indexes', alias) from error
    if (settings.path is None) == (settings.name is None):
        raise file.error(f"index '{alias}': give its path, or the name of an index of the catalog", 'indexes', alias)
    if settings.path is not None and not (folder / settings.path).is_dir():
        raise file.error(
            f"index '{alias}' points to a folder that is not there: {settings.path}", 'indexes', alias, 'path'
        )


def _known(place: tuple[str | int, ...]) -> list[str]:
    if place[0] == 'limits':
        return list(Limits.model_fields)
    return list((IndexSettings if len(place) > 1 else FileSettings).model_fields)


def _sparse(folder: Path, spec: str) -> str:
    technique, at, index = spec.partition('@')
    if at:
        return f'{technique}@{_file(folder, index)}'
    return spec if catalog.find('sparse', spec) else _file(folder, spec)


def _file(folder: Path, given: str) -> str:
    return str(folder / given) if given and (folder / given).exists() else given
