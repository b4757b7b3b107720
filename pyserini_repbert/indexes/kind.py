"""Kinds of indexes: an `IndexKind` recognises and opens an index, an `Index` is open until it is
closed.

A kind is a folder of this package, whose `__init__` defines `KIND`, or what an extension adds.
Nothing else lists kinds.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import loaded
from pyserini_repbert.extension_words import missing_extension
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.index.manifest import is_collection
from pyserini_repbert.indexes.generations import Generations
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.indexes.offered import OfferedRankings
from pyserini_repbert.names.building import OnBuild, build_silently
from pyserini_repbert.ranking import Ranker
from pyserini_repbert.record import Input
from pyserini_repbert.search.scans import scans

if TYPE_CHECKING:
    from pyserini_repbert.index.numbers import DocumentNumbers
    from pyserini_repbert.index.term_weights import TermWeightsBundle
    from pyserini_repbert.indexes.stores import DocumentStore

# The kind of a name that no kind knows, which reports what is missing.
_USUAL = 'dense'
# The ranking of the dense vectors of an index.
USUAL_RANKING = 'dense'
# What the options are for that only some kinds of indexes take.
_PURPOSES = {
    'rankings': 'a collection',
    'aggregate': 'a collection',
    'filter': 'a collection',
    'only_ids': 'a collection',
    'not_ids': 'a collection',
    'adapted': 'dense vectors',
    'ray': 'dense vectors',
    'build': 'an index of the catalog',
    'max_length': 'a model that reads queries',
}


@dataclass(frozen=True)
class ExplainingModel:
    """A model whose scores an index has, as the reranker that explains them is opened.

    Attributes
    ----------
    encoder : a catalog name or a folder, as the index has it
    settings : of the reranker
    """

    encoder: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class SearchOptions:
    """How a user wants an index to be searched. The index decides everything that is not set.

    The attributes are fields of `PipelineSpec`.

    Attributes
    ----------
    encoder : of queries, a catalog name or a checkpoint folder
    precision, max_length : of that encoder
    scan : the name of the scan of vectors; '': exact search
    device_dtype : how a GPU holds vectors
    k1, b : of BM25
    language : of a Lucene index that does not say its own
    rankings : names of a collection's rankings; none: all
    aggregate : how scores of passages become scores of documents
    filter, only_ids, not_ids : which documents count
    adapted : a folder that `adapt` wrote, whose query map is used
    corpus : of the passages, where an index of the catalog is built
    uses_learned : whether a collection's rankings and their fusion are as it learned from
        judgments, or as a person set them
    uses_settings : whether its k1, b and rerankers are as a person set them
    """

    encoder: str | None = None
    precision: str = 'float32'
    max_length: int | None = None
    scan: str = ''
    device_dtype: str = 'float16'
    k1: float | None = None
    b: float | None = None
    language: str | None = None
    rankings: tuple[str, ...] = ()
    aggregate: str = 'max'
    filter: str | None = None
    only_ids: str | None = None
    not_ids: str | None = None
    adapted: str | None = None
    corpus: str | None = None
    uses_learned: bool = False
    uses_settings: bool = False

    @classmethod
    def of(cls, values: Any, **changes: Any) -> Self:
        """The options among the attributes of an object, and these changes."""
        known = {
            field.name: getattr(values, field.name)
            for field in fields(cls)
            if hasattr(values, field.name)
        }
        return cls(**{**known, **changes})

    def given(self) -> set[str]:
        """The names of the options that differ from their defaults; of a scan, its own name."""
        names = {field.name for field in fields(self) if getattr(self, field.name) != field.default}
        if self.scan:
            names ^= {'scan', self.scan}
        return names


class IndexKind(ABC):
    """A kind of index: recognises a folder, and opens it.

    Attributes
    ----------
    name : of the kind
    what : an index of this kind, in prose
    takes : the options that an index of this kind takes, among those that only some kinds take
    has_scans : whether it takes the scans that extensions add
    finds_passages : whether its hits are documents, whose passages are found by their vectors
    is_writable : whether documents come and go: it has generations, and learns from judgments
    """

    name: str
    what: str
    takes: frozenset[str] = frozenset()
    has_scans: bool = False
    finds_passages: bool = False
    is_writable: bool = False

    @abstractmethod
    def holds(self, folder: Path) -> bool:
        """Whether a folder is an index of this kind."""

    @abstractmethod
    def index_type(self, location: str) -> str:
        """The type of an index in Pyserini's words: 'tf' (Lucene), 'dense', 'faiss' or 'impact';
        'collection' for one of ours.
        """

    @abstractmethod
    def open(self, location: str, options: SearchOptions, before: Any = None) -> Index:
        """Open an index.

        Parameters
        ----------
        location : a folder or a name of the catalog
        options : how it is searched
        before : an index of this kind that was opened for the same location and options; what both
            have is shared

        Raises InputError for an option that this kind does not take.
        """

    def check_writable(self, location: str, advice: str = 'name one') -> None:
        """Raise InputError for an index whose documents do not come and go; `advice` says what to
        do.
        """
        if not self.is_writable:
            raise InputError(f"'{location}' is not a collection: {advice}", parameters=('index',))

    def verify(self, folder: Path, on_difference: Callable[[str], object]) -> str:
        """Compare all files of an index with their recorded checksums.

        Returns a description of the index.

        Parameters
        ----------
        folder : of the index
        on_difference : called with each difference, before the first becomes an error

        Raises DamagedFileError if something differs.
        """
        from pyserini_repbert.index.check import check_index

        return check_index(folder)

    def check(self, location: str, options: SearchOptions, machine: Machine | None = None) -> None:
        """Raise InputError for an option that an index of this kind does not take, and for a
        machine with a cluster, or that builds, where it is searched as it is on one machine.
        """
        given = options.given()
        if machine is not None and machine.ray is not None:
            given.add('ray')
        if machine is not None and machine.build:
            given.add('build')
        if self.has_scans:
            given -= scans().keys()
        refuse_options(given - self.takes, f"'{location}' is {self.what}")


def refuse_options(given: set[str], what_is_searched: str) -> None:
    """Raise InputError if options are given that only some kinds of indexes take.

    Parameters
    ----------
    given : names of options
    what_is_searched : a clause that says what the user named instead
    """
    purposes = _PURPOSES | dict.fromkeys(scans(), 'dense vectors')
    for name, purpose in purposes.items():
        if name in given:
            raise InputError(
                f'{name} is for {purpose}, and {what_is_searched}: leave it out',
                parameters=(name,),
            )


class Index(Generations, ABC):
    """An index that is open until it is closed.

    Commands, the service and other programs know only this of an index. A kind writes `rankings`,
    `searcher`, `store`, `n_passages` and `inputs`, and replaces what else it has.

    Attributes
    ----------
    kind : what kind of index it is
    location : as a user named it
    options : how it is searched
    adapted : the folder of what `adapt` learned, or a person set, and is used; None without one
    stages : rerankers that a person set, as NAME@K
    """

    def __init__(self, kind: IndexKind, location: str, options: SearchOptions) -> None:
        kind.check(location, options)
        self.kind = kind
        self.location = location
        self.options = options
        self.adapted = options.adapted
        self.stages: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """A clause that says what it is: "'mine' is a collection"."""
        return f"'{self.location}' is {self.kind.what}"

    @property
    @abstractmethod
    def rankings(self) -> tuple[str, ...]:
        """The names of the rankings that are searched, in the order of their fusion."""

    @property
    def fusion(self) -> FusionSettings:
        """How the rankings are fused unless a user says."""
        return FusionSettings()

    @abstractmethod
    def searcher(
        self,
        machine: Machine,
        fusion: FusionSettings | None = None,
        on_build: OnBuild = build_silently,
    ) -> Ranker:
        """The search of all its rankings, which is opened when it is first asked for.

        Parameters
        ----------
        machine : where it runs
        fusion : how several rankings are fused; None: as the index says
        on_build : called before an index of the catalog is built
        """

    @property
    def offered(self) -> OfferedRankings:
        """The rankings that `ranking` gives."""
        return OfferedRankings(self.rankings)

    def ranking(self, name: str, machine: Machine) -> Ranker:
        """A single ranking of the index. Raises InputError for one that the index does not have."""
        if name not in self.offered.names:
            raise InputError(
                f'{self.description} with the rankings '
                f"{' '.join(self.offered.names)}, and '{name}' was asked for",
                parameters=('rankings',),
            )
        return self.searcher(machine)

    @property
    def encoder(self) -> str | None:
        """The encoder of its vectors: a catalog name or a folder; None without vectors."""
        return None

    def fusion_of(self, rankings: Sequence[str]) -> FusionSettings | None:
        """How these rankings are fused unless a user says; None if the index does not say."""
        return None

    def is_open(self, name: str) -> bool:
        """Whether `ranking` gives a ranking at once."""
        return False

    def prepare(self, machine: Machine) -> None:
        """Do now what the first search would wait for."""

    def within(self, wanted: Any) -> Index:
        """The same index, of the documents that a filter of its kind lets through.

        Raises InputError if documents have no fields, and for a filter that cannot be read.
        """
        raise InputError(
            f'{self.description}, and a filter needs the fields of a '
            "collection's documents: leave it out",
            parameters=('filter',),
        )

    def warnings(self) -> list[str]:
        """What to tell a user about its filter, such as that no document matches."""
        return []

    @abstractmethod
    def store(self, machine: Machine) -> DocumentStore | None:
        """The documents, or passages, that it stores; None if it stores none."""

    def numbers(self, machine: Machine) -> DocumentNumbers | None:
        """The numbers of its documents, which stay as long as the index does; None without any."""
        return None

    @abstractmethod
    def n_passages(self, machine: Machine) -> int:
        """How many passages it has."""

    def n_hits(self, machine: Machine) -> int:
        """How many hits a ranking can have: passages, or documents."""
        return self.n_passages(machine)

    @abstractmethod
    def inputs(self) -> tuple[Input, ...]:
        """What a record says of the index; the searcher is open."""

    @property
    def searches_vectors(self) -> bool:
        """Whether the first of the rankings that are searched is of vectors."""
        return self.rankings[0] in self.offered.of_vectors

    @property
    def searches_words(self) -> bool:
        """Whether BM25 is among the rankings that are searched."""
        return False

    @property
    def needs_java(self) -> bool:
        """Whether Lucene searches it."""
        return self.searches_words

    @property
    def term_weights(self) -> TermWeightsBundle | None:
        """The term weights of its passages if they are a bundle, otherwise None."""
        return None

    @property
    def explaining_model(self) -> ExplainingModel | None:
        """The model that explains its scores by default; None without one."""
        return None

    def about(self) -> dict[str, Any]:
        """What clients are told of it besides its passages and rankings."""
        return {}

    def learned(self) -> str | None:
        """The folder with what it learned or a user set, if it is used; None if not."""
        return None

    def taught_by(self) -> str | None:
        """The language model, as a judge, whose grades taught its search, too; None without one."""
        return None

    def as_learned(self, folder: str, machine: Machine) -> Ranker | None:
        """The search of the open index as `adapt` learned it, without a reranker.

        None if the index is opened again instead.
        """
        return None

    def close(self) -> None:
        """Release everything that is open."""


@cache
def kinds() -> Mapping[str, IndexKind]:
    """All kinds of indexes by name: extensions', then the folders of this package."""
    package = __name__.rpartition('.')[0]
    found: dict[str, IndexKind] = {kind.name: kind for kind in loaded('index_kinds')}
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if module.ispkg:
            kind: IndexKind = importlib.import_module(f'{package}.{module.name}').KIND
            found[kind.name] = kind
    return found


def kind_of(location: str) -> IndexKind:
    """The kind of the index that a folder is, or that a name of the catalog means.

    Raises InputError for one that only an extension opens which is not installed.
    """
    for kind in kinds().values():
        if kind.holds(Path(location)):
            return kind
    what = _what_is_missing(location)
    if what:
        advice = missing_extension(what)
        problem = f"'{location}' is {what}, which this installation does not open{advice}"
        raise InputError(problem, parameters=('index',))
    return kinds()[_USUAL]


def _what_is_missing(location: str) -> str:
    """What a location is that no kind knows, as the kinds of extensions call it; '' for others."""
    if is_collection(Path(location)):
        return 'a collection'
    folders = location.split(os.pathsep)
    if len(folders) > 1 and all(is_collection(Path(folder)) for folder in folders):
        return 'several collections'
    return ''
