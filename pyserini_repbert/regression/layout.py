"""The layout of a regression file, checked as it is written: numbers stay texts, `{names}` are
replaced later.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    model_validator,
)
from pydantic_core import PydanticCustomError

from pyserini_repbert import catalog
from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.data.values import decimal

FOLDERS = (
    'data',
    'downloads',
    'pyserini',
    'here',
    'out',
    'shared',
)  # names in braces that stand for folders
# What `unpack` may begin with -> whether a pattern of members follows; `fetching.unpack` does the
# work.
UNPACKINGS = {
    'gzip': False,
    'join': False,
    'member': True,
    'members': True,
    'candidates': True,
    'paragraphs': True,
}
_PLACE = re.compile(r'\{([^{}]+)\}')


def places(text: str) -> list[str]:
    """The names in braces in a text, in order, once each."""
    return list(dict.fromkeys(_PLACE.findall(text)))


def filled(text: str, values: Mapping[str, str]) -> str:
    """`text` with each `{name}` that has a value replaced by it."""
    return _PLACE.sub(lambda match: values.get(match[1], match[0]), text)


def unknown_place(text: str, known: Iterable[str]) -> str:
    """What is wrong with the names in braces in a text; '' if all are known."""
    wrong = next((name for name in places(text) if name not in known), None)
    if wrong is None:
        return ''
    return f"'{{{wrong}}}' is neither a resource, a build nor an axis{did_you_mean(wrong, known)}"


def checked_number(given: object) -> str:
    """`given`, a text that is a number of at least 0. Raises ValueError for another."""
    with contextlib.suppress(ValueError):
        if isinstance(given, str) and decimal(given) >= 0:
            return given
    raise PydanticCustomError('number', f"'{str(given)[:40]}' is not a number of at least 0")


def _below_folders(given: str) -> str:
    if wrong := unknown_place(given, FOLDERS):
        raise PydanticCustomError('place', wrong)
    return given


def _unpacking(given: str) -> str:
    word, _, pattern = given.partition(' ')
    if UNPACKINGS.get(word) is not bool(pattern):
        known = ', '.join(
            word + ' GLOB' * with_pattern for word, with_pattern in UNPACKINGS.items()
        )
        raise PydanticCustomError('unpacking', f"'{given}': expected {known}")
    return given


def _labels(given: object) -> object:
    """An axis of a grid as texts by label; a list of labels gets none."""
    if isinstance(given, list) and all(isinstance(label, str) for label in given):
        return {label: {} for label in given}
    return given


Text = Annotated[str, AfterValidator(_below_folders)]
Grid = dict[str, Annotated[dict[str, dict[str, str]], BeforeValidator(_labels)]]
Only = Literal['', 'equal', 'different']


class LayoutEntry(BaseModel):
    """A mapping whose keys all have to be fields of the class.

    A `name` with a default is its key in the file.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    @model_validator(mode='before')
    @classmethod
    def _keys(cls, given: Any) -> Any:
        required = [name for name, field in cls.model_fields.items() if field.is_required()]
        known = [name for name in cls.model_fields if name != 'name' or name in required]
        if not isinstance(given, dict):
            wanted = f'a mapping with {", ".join(required)}' if required else 'a mapping'
            raise PydanticCustomError('mapping', f'expected {wanted}')
        for key in given:
            if key not in known:
                message = (
                    f"'{key}' is no field here{did_you_mean(key, known)}: expected "
                    f'{", ".join(known)}'
                )
                raise PydanticCustomError('entry', message, {'key': key})
        if missing := [name for name in required if name not in given]:
            raise PydanticCustomError('missing', f'{", ".join(missing)} is missing here')
        return given

    def at(self, axes: Mapping[str, str]) -> Self:
        """The entry for a cell of its grid: labels in place of `{axis}`, texts in place of
        `{axis.key}`.
        """
        return self.model_validate(
            _at(self.model_dump(exclude_unset=True, exclude={'grid', 'only'}), axes)
        )


def _at(value: Any, axes: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {filled(key, axes): _at(below, axes) for key, below in value.items()}
    if isinstance(value, list):
        return [_at(item, axes) for item in value]
    return filled(value, axes) if isinstance(value, str) else value


class Origin(StrEnum):
    """How a resource is obtained, named after the field that says so."""

    CATALOG = 'catalog'
    ADDRESS = 'address'
    PAGE = 'page'
    AGREEMENT = 'agreement'
    RECIPE = 'recipe'
    UNPUBLISHED = 'unpublished'
    GET = 'get'


class Resource(LayoutEntry):
    """Something that conditions need and no command makes; docs/formats/regressions.md says what
    its fields mean.
    """

    name: str = ''
    what: str
    path: Text = ''
    catalog: str = ''
    size: str = ''
    get: Text = ''
    address: Annotated[
        list[str], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)
    ] = []
    file: str = ''
    unpack: Annotated[str, AfterValidator(_unpacking)] = ''
    page: str = ''
    agreement: str = ''
    recipe: str = ''
    unpublished: str = ''
    licence: str = ''
    md5: Annotated[str, StringConstraints(pattern=r'^[0-9a-f]{32}\z')] = ''
    sha256: Annotated[str, StringConstraints(pattern=r'^[0-9a-f]{64}\z')] = ''

    @model_validator(mode='after')
    def _one_origin(self) -> Self:
        if sum(origin in self.model_fields_set for origin in Origin) != 1:
            raise PydanticCustomError(
                'origin', f'expected one of {", ".join(Origin)}: how is it come by?'
            )
        kind, _, known = self.catalog.partition('/')
        if self.origin is Origin.CATALOG and (
            kind not in catalog.KINDS or catalog.find(kind, known) is None
        ):
            message = f"'{self.catalog}' is not in the catalog: expected KIND/NAME"
            raise PydanticCustomError('entry', message, {'key': 'catalog'})
        if self.address and not self.path:
            raise PydanticCustomError('path', 'path is missing here: where is it expected?')
        return self

    @property
    def origin(self) -> Origin:
        """How it is obtained."""
        return next(origin for origin in Origin if origin in self.model_fields_set)

    @property
    def source(self) -> str:
        """What the field of its origin says; of addresses, one a line."""
        return '\n'.join(self.address) if self.address else str(getattr(self, self.origin))


class Build(LayoutEntry):
    """A file or folder that commands make, shared by conditions."""

    name: str = ''
    path: str
    commands: list[str]
    needs: list[str] = []
    grid: Grid = {}
    only: Only = ''


class ScoreSource(LayoutEntry):
    """Where scores come from: `cells` is a path in the list of published figures, `commit` one
    of this project.
    """

    text: str
    cells: str = ''
    commit: str = ''
    hardware: str = ''

    @model_validator(mode='after')
    def _of_one_kind(self) -> Self:
        if ('cells' in self.model_fields_set) == ('commit' in self.model_fields_set):
            message = 'expected cells, the path in the list of published figures, or a commit'
            raise PydanticCustomError('source', message)
        return self


class Tolerance(LayoutEntry):
    """By how much scores may differ from the expected ones, and why."""

    value: Annotated[float, BeforeValidator(lambda given: decimal(checked_number(given)))]
    reason: str


class ScoreEntry(LayoutEntry):
    """An expected or a recorded score: a `value`, or `values` for the cells of a grid, nested by
    the axes `by`.
    """

    measure: str
    source: str
    tolerance: str = ''
    unit: str = ''
    where: dict[str, str] = {}
    value: str | None = ''
    values: dict[str, Any] = {}
    by: list[str] = []
    row: str = ''
    column: str = ''
    cell: str = ''


class ConditionEntry(LayoutEntry):
    """A condition, or several by a grid."""

    name: str
    grid: Grid = {}
    only: Only = ''
    commands: list[str] = []
    needs: list[str] = []
    run: str = ''
    qrels: str = ''
    table: str = ''
    heavy: str = ''
    expected: list[ScoreEntry] = []
    recorded: list[ScoreEntry] = []


class SharedFile(LayoutEntry):
    """What several regressions name."""

    resources: dict[str, Resource] = {}
    builds: dict[str, Build] = {}
    sources: dict[str, ScoreSource] = {}
    tolerances: dict[str, Tolerance] = {}


class RegressionFile(SharedFile):
    """A regression file."""

    name: str
    title: str
    conditions: list[ConditionEntry]
    shared: str = ''
