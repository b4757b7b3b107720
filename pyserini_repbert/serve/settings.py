"""The settings of a service, and the file that holds them: Pyserini's (`indexes`, `api_keys`),
with additions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, Field, ValidationError, model_validator

from pyserini_repbert import catalog
from pyserini_repbert.data.yaml_files import read_yaml
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension_words import missing_extension
from pyserini_repbert.files import StrPath, existing_file
from pyserini_repbert.search.scans import scans
from pyserini_repbert.serve.added_fields import with_added_settings
from pyserini_repbert.serve.setting_values import (
    Alias,
    ApiKey,
    EncoderName,
    HostName,
    IndexFolders,
    LanguageCode,
    NewFile,
    PathOrName,
    RerankerName,
    SparseName,
    StrictSettings,
)

# The variable that names the folder in which prometheus_client adds up the metrics of processes.
# That package reads it when it is imported.
METRICS_FOLDER = 'PROMETHEUS_MULTIPROC_DIR'


_Count = Annotated[int, Field(ge=1)]
_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Settings(StrictSettings):
    @classmethod
    def of(cls, **values: Any) -> Self:
        """The settings. Raises InputError for a wrong value."""
        try:
            return cls(**values)
        except ValidationError as error:
            raise InputError(_problem(error)) from error


@with_added_settings('limits')
class Limits(_Settings):
    """The most that a request may ask for and take, and how much may wait.

    Each query of a batch counts separately. Extensions add limits.

    Attributes
    ----------
    query_characters : of a question
    hits : of an answer
    rerank_depth : candidates of a reranking stage, and passages of an explanation
    inferences : model inputs of a search, in all its stages, or of an explanation
    batch_queries : queries of a batch
    body_bytes : of a request
    answer_bytes : of an answer whose length depends on stored data
    waiting : jobs that wait in one queue; further requests are answered with 429
    search_seconds : until a search without reranking is given up
    rerank_seconds : until a search with reranking, or an explanation, is given up
    write_seconds : until writes, or a sync, are given up
    request_seconds : that a client has to send a request, header and body
    stop_seconds : that a stopping service has to finish its requests
    """

    query_characters: _Count = 2000
    hits: _Count = 1000
    rerank_depth: _Count = 200
    inferences: _Count = 5000
    batch_queries: _Count = 100
    body_bytes: _Count = 1 << 20
    answer_bytes: _Count = 10 << 20
    waiting: _Count = 256
    search_seconds: _Seconds = 10.0
    rerank_seconds: _Seconds = 120.0
    write_seconds: _Seconds = 3600.0
    request_seconds: _Seconds = 10.0
    stop_seconds: _Seconds = 30.0


@with_added_settings('index_settings')
class IndexSettings(_Settings):
    """An index of the service: a folder (`path`), or a name of the catalog; a plain string is a
    path.

    The descriptions are the help of the flags that `serve` makes from the fields. Extensions add
    settings.

    Attributes
    ----------
    path : the index folder
    name : of an index of the catalog, instead of a path
    index_type : 'tf' (Lucene), 'dense' (a bundle of ours), 'faiss' (Pyserini's layout), 'impact'
        (term weights: EPIC's, a SparseEncoder's, or with an encoder another program's) or
        'collection'; None: recognised by the files in the folder
    encoder : of the queries of a dense index or of a bundle of term weights; of another
        program's impacts MODULE:CLASS@MODEL
    base_index : the alias of the Lucene index that has the passages, which sparse systems search
    ray : the Ray cluster that searches the vectors, HOST:PORT or 'auto'; None: this machine
    sparse : sparse systems beside the vectors, as `NAME`, `NAME@FOLDER` or `MODULE:CLASS`; None:
        those that fit the Lucene index
    adapted : a folder of `adapt`, whose search is a system named 'adapted'
    language : of a Lucene index that does not record it: 'de', for its analyzer
    topics, qrels : files or catalog names; None: the catalog collection's
    writable : of a collection: whether clients with a key of `write_keys` may change it
    source : of a writable collection: the corpus that /v1/NAME/sync brings it up to date with
    judgments : a file in which judgments of people are kept; False: none are taken; None: a
        collection keeps them itself, other indexes take none
    """

    path: IndexFolders | None = None
    name: str | None = None
    index_type: Literal['tf', 'dense', 'faiss', 'impact', 'collection'] | None = None
    encoder: EncoderName | None = Field(
        default=None, description='the encoder of --index; default: the one that the index names'
    )
    base_index: str | None = None
    ray: str | None = None
    sparse: list[SparseName] | None = None
    adapted: PathOrName | None = None
    language: LanguageCode | None = Field(
        default=None,
        description='language of a Lucene index that does not record it, such as de; default: en',
    )
    topics: PathOrName | None = Field(
        default=None, description='topics of --index, if only one is given'
    )
    qrels: PathOrName | None = Field(
        default=None, description='judgments of --index, if only one is given'
    )

    writable: bool = False
    source: PathOrName | None = None
    judgments: NewFile | bool | None = None

    @property
    def location(self) -> str:
        """The folder or the catalog name."""
        return self.name or str(self.path)

    @property
    def scans(self) -> list[str]:
        """The names of the scans that are offered, too, of each ranking that can be scanned so."""
        return [name for name in scans() if getattr(self, name, False)]

    @model_validator(mode='before')
    @classmethod
    def _from_path(cls, value: Any) -> Any:
        return {'path': value} if isinstance(value, str) else value

    @model_validator(mode='after')
    def _has_one_location(self) -> Self:
        if (self.path is None) == (self.name is None):
            raise ValueError('give its path, or the name of an index of the catalog')
        if self.source and not self.writable:
            raise ValueError("source is for a writable collection: add 'writable: true'")
        if self.judgments is True:
            raise ValueError('judgments: give a file, or false')
        return self


@with_added_settings('service_settings')
class FileSettings(_Settings):
    """The contents of a settings file. Extensions add settings.

    Attributes
    ----------
    indexes : by alias
    api_keys : accepted keys; empty if none is needed
    write_keys : keys that may also write into collections that are `writable`
    rerankers : those that clients may name; None: those in the package
    allowed_hosts : None: any host is taken, as an application within another server needs it
    limits : of each request
    """

    indexes: dict[Alias, IndexSettings] = Field(default_factory=dict)
    api_keys: list[ApiKey] = Field(default_factory=list)
    write_keys: list[ApiKey] = Field(default_factory=list)
    rerankers: list[RerankerName] | None = Field(
        default=None,
        description='rerankers: catalog names, folders, MODULE:CLASS; default: those in the '
        'package',
    )
    allowed_hosts: list[HostName] | None = Field(
        default=None,
        description="hosts that clients may ask for, besides this machine's; *: any; "
        'default: none at --host 127.0.0.1, any at another address',
    )
    limits: Limits = Limits()


class ServeSettings(FileSettings):
    """The settings of a service.

    Attributes
    ----------
    device, precision : of all models
    threads : queries that Lucene answers at a time
    log_queries : whether the log has the text of searches
    shows_files : whether hits have addresses of files on this machine, which only this machine's
        user may see
    """

    device: str = 'cpu'
    precision: str = 'float32'
    threads: int = Field(default=2, description='queries that Lucene answers at a time')
    log_queries: bool = Field(default=False, description='also log the text of searches')
    shows_files: bool = False


def read_settings(path: StrPath) -> FileSettings:
    """Read a settings file; its paths are relative to its folder.

    Raises InputError, with file and line, for the first wrong value.
    """
    file = read_yaml(path, 'settings file')
    try:
        return FileSettings.model_validate(file.value or {}, context=Path(file.path).parent)
    except ValidationError as error:
        raise file.error(_problem(error), *_location(error)) from error


def read_keys(path: StrPath) -> list[str]:
    """The keys of a file, one a line; blank lines and those that begin with # do not count."""
    text = existing_file(path, 'keys file').read_text(encoding='utf-8-sig', errors='replace')
    lines = [line.strip() for line in text.splitlines()]
    keys = [line for line in lines if line and not line.startswith('#')]
    if not keys:
        raise InputError(f'keys file {path} has no keys: write one on each line')
    return keys


def _location(error: ValidationError) -> list[str | int]:
    """The keys and numbers that lead to the first wrong value."""
    first = error.errors(include_url=False)[0]
    return [part for part in first['loc'] if part != '[key]']


def _problem(error: ValidationError) -> str:
    """The error in the first wrong value."""
    first = error.errors(include_url=False)[0]
    location = _location(error)
    name = '.'.join(map(str, location))
    if first['type'] == 'bool_type':
        return f"'{name}': true or false was expected, found {first['input']!r:.40}"
    if first['type'] != 'extra_forbidden':
        return f"'{name}': {first['msg'].removeprefix('Value error, ')}"
    near = catalog.did_you_mean(str(location[-1]), _settings_at(location).model_fields)
    advice = missing_extension(str(location[-1]))
    return f"'{name}': is unknown{advice or near}"


def _settings_at(location: list[str | int]) -> type[BaseModel]:
    """The settings that have the value at a location of the file."""
    if len(location) == 1:
        return FileSettings
    if location[0] == 'indexes':
        return IndexSettings
    annotation = FileSettings.model_fields[str(location[0])].annotation
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return FileSettings
