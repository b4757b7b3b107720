"""The settings of a service: its indexes, its rerankers and its limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_Count = Annotated[int, Field(ge=1)]
_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Limits(BaseModel):
    """The most that a request may ask for and take, and how much may wait. Each query of a batch counts on its own.

    Attributes
    ----------
    query_characters : characters of a query
    hits : hits of a search
    rerank_depth : candidates of a reranking stage, and passages of an explanation
    inferences : model inputs of a search, in all its stages, or of an explanation
    batch_queries : queries of a batch
    body_bytes : bytes of a request's body
    waiting : jobs that wait for one lane; further requests are answered with 429
    search_seconds : seconds until a search without reranking is given up
    rerank_seconds : seconds until a search with reranking, or an explanation is given up
    stop_seconds : seconds that a stopping service has to finish its requests, rounded down
    """

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

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


@dataclass(frozen=True)
class IndexSettings:
    """An index of the service.

    Attributes
    ----------
    alias : its name in addresses
    place : folder or catalog name
    index_type : 'tf' (Lucene), 'dense' (a bundle of ours), 'faiss' (Pyserini's layout), 'impact' (EPIC's impacts);
        None: recognised by the files in the folder
    encoder : of dense indexes; None: the one that the index names
    base_index : the alias of the Lucene index that holds its passages, and which sparse systems search
    ann : whether its approximate index is a system too
    ray : the Ray cluster that searches its vectors, HOST:PORT or 'auto'; None: this machine
    sparse : sparse systems beside it, as `NAME` or `NAME@FOLDER`; None: those that fit its Lucene index
    topics, qrels : queries and judgments for it, by name or file; None: the catalog's, for an index of the catalog
    """

    alias: str
    place: str
    index_type: str | None = None
    encoder: str | None = None
    base_index: str | None = None
    ann: bool = False
    ray: str | None = None
    sparse: tuple[str, ...] | None = None
    topics: str | None = None
    qrels: str | None = None


@dataclass(frozen=True)
class ServeSettings:
    """The settings of a service.

    Attributes
    ----------
    indexes : at least one
    rerankers : catalog names and checkpoint folders that clients may name; folders by their last part
    limits : of requests
    device, precision : of all models
    threads : queries of a batch that Lucene answers at a time
    api_keys : accepted keys; empty: none is needed
    log_queries : whether the access log holds the query strings of addresses; bodies are never logged
    """

    indexes: tuple[IndexSettings, ...]
    rerankers: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    device: str = 'cpu'
    precision: str = 'float32'
    threads: int = 1
    api_keys: tuple[str, ...] = ()
    log_queries: bool = False
