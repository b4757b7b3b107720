"""What a regression file says: resources, builds, and conditions with the scores that are expected of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

FOLDER = 'regressions'  # whose files commands take if none is named
_PLACE = re.compile(r'\{([^{}]+)\}')


@dataclass(frozen=True, slots=True)
class Source:
    """Where a score comes from.

    Attributes
    ----------
    text : the paper and its table, or 'this project'
    cells : the table's path in the list of published figures, '' for this project's own figures
    commit : of this project, for its own figures
    hardware : on which latencies were measured
    """

    text: str
    cells: str = ''
    commit: str = ''
    hardware: str = ''


class Tolerance(NamedTuple):
    """By how much a score may differ from the expected one, and why."""

    value: float
    reason: str


@dataclass(frozen=True, slots=True)
class Expected:
    """One expected score.

    Attributes
    ----------
    measure : in ir_measures' form, or the name of a recorded figure
    text : the value as published, with all its digits
    tolerance : None for a recorded figure
    cell : its path in the list of published figures, '' for this project's own
    place : row and column of the source, for readers
    where : column -> value, which name the row of the condition's table that holds the score
    unit : of a recorded figure, '' for the others
    """

    measure: str
    text: str
    source: Source
    tolerance: Tolerance | None
    cell: str = ''
    place: str = ''
    where: Mapping[str, str] = field(default_factory=dict)
    unit: str = ''

    @property
    def value(self) -> float:
        """The expected score."""
        return float(self.text)

    @property
    def rounding(self) -> float:
        """Half a unit of the last published digit: a score at most that far off agrees with all digits."""
        mantissa, _, exponent = self.text.lower().partition('e')
        return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition('.')[2]))


class Origin(StrEnum):
    """How a resource is obtained."""

    CATALOG = 'catalog'
    ADDRESS = 'address'
    PAGE = 'page'
    AGREEMENT = 'agreement'
    RECIPE = 'recipe'
    UNPUBLISHED = 'unpublished'
    GET = 'get'


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that conditions need and that no command here makes.

    Attributes
    ----------
    origin : how it is obtained, named after the YAML file's field that says so
    get : that field's value: addresses, one a line; the name in the catalog, 'rerankers/epic'; the web page that
        links it; whom to ask; the recipe that trains it; why it was not published; or a sentence
    path : where it is expected; `{data}`, `{downloads}` and `{pyserini}` stand for folders
    file : name of the download that is unpacked, '' for the address's
    unpack : how the path is made of the downloads (`fetching.unpacking.unpack`); '' if it is the download itself
    checksum : ('md5', hexadecimal) of the download, ('sha256', hexadecimal) of the file at `path`, or None
    """

    name: str
    what: str
    origin: Origin = Origin.GET
    get: str = ''
    path: str = ''
    file: str = ''
    unpack: str = ''
    size: str = ''
    licence: str = ''
    checksum: tuple[str, str] | None = None

    @property
    def catalog(self) -> str:
        """Its kind and name in the catalog, 'rerankers/epic'; '' if it is not from there."""
        return self.get if self.origin is Origin.CATALOG else ''

    @property
    def addresses(self) -> list[str]:
        """The addresses that it is downloaded from, parts of one file in order; empty for other origins."""
        return self.get.split('\n') if self.origin is Origin.ADDRESS else []


@dataclass(frozen=True, slots=True)
class Build:
    """A file or folder that commands make, shared by conditions."""

    name: str
    path: str
    commands: Sequence[str]
    needs: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """Commands, and the scores expected of them, as in one row of a paper's table.

    Attributes
    ----------
    needs : names of all resources and builds that it needs, those in braces in its commands included
    run, qrels : the run file to evaluate, and the judgments; '' with a table
    table : a CSV or TSV file that the commands write, with the scores in a column `value` or named after the measure
    heavy : what it takes, if it is left out unless asked for ('40 minutes of CPU'); '' for the others
    recorded : figures for reference, compared with nothing
    """

    name: str
    commands: Sequence[str] = ()
    needs: Sequence[str] = ()
    run: str = ''
    qrels: str = ''
    table: str = ''
    heavy: str = ''
    expected: Sequence[Expected] = ()
    recorded: Sequence[Expected] = ()


@dataclass(frozen=True, slots=True)
class Regression:
    """A regression file."""

    path: str
    name: str
    title: str
    resources: Mapping[str, Resource]
    builds: Mapping[str, Build]
    conditions: Sequence[Condition]


def places(text: str) -> list[str]:
    """The names in braces in a text, in order, once each."""
    return list(dict.fromkeys(_PLACE.findall(text)))


def filled(text: str, values: Mapping[str, str]) -> str:
    """`text` with each `{name}` replaced by its value. Raises KeyError for a name without one."""
    return _PLACE.sub(lambda found: values[found[1]], text)


def replaced(text: str, values: Mapping[str, str]) -> str:
    """`text` with each `{name}` that has a value replaced by it."""
    return _PLACE.sub(lambda found: values.get(found[1], found[0]), text)
