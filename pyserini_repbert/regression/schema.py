"""The values of a regression file, checked as written, and the conditions made from them.

Numbers stay texts, because their digits count. `{names}` in braces are replaced later.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from pyserini_repbert.addresses import address_problem
from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.data.values import decimal
from pyserini_repbert.regression.placeholders import (
    DOWNLOAD_FOLDERS,
    FOLDERS,
    braced_name_problem,
    file_name_problem,
    fill,
    path_problem,
)

# What `unpack` may begin with -> whether a pattern of members follows. `fetching.unpack` does the
# work.
UNPACKINGS = {
    'gzip': False,
    'join': False,
    'member': True,
    'members': True,
    'candidates': True,
    'paragraphs': True,
}


# The most characters of a text after a cell's labels are inserted.
MAX_TEXT = 10_000
# Of `unpack`: makes one file of several downloads.
_OF_SEVERAL = 'join'


def check_number(given: object) -> str:
    """`given`, text that is a number of at least 0. Raises ValueError for another."""
    with contextlib.suppress(ValueError):
        if isinstance(given, str) and decimal(given) >= 0:
            return given
    raise PydanticCustomError('number', f"'{str(given)[:40]}' is not a number of at least 0")


def _check_folders(given: str) -> str:
    problem = braced_name_problem(given, FOLDERS)
    if problem:
        raise PydanticCustomError('folder', problem)
    return given


def _check_path(given: str) -> str:
    problem = path_problem(given, FOLDERS) if given else ''
    if problem:
        raise PydanticCustomError('path', problem)
    return given


def _check_file_name(given: str) -> str:
    problem = file_name_problem(given) if given else ''
    if problem:
        raise PydanticCustomError('file_name', problem)
    return given


def _check_address(given: str) -> str:
    problem = address_problem(given)
    if problem:
        raise PydanticCustomError('address', problem)
    return given


def _check_unpacking(given: str) -> str:
    word, _, pattern = given.partition(' ')
    if UNPACKINGS.get(word) is not bool(pattern):
        known = []
        for name, takes_pattern in UNPACKINGS.items():
            known.append(f'{name} GLOB' if takes_pattern else name)
        raise PydanticCustomError('unpacking', f"'{given}': expected {', '.join(known)}")
    return given


def _one_or_more(given: object) -> object:
    return [given] if isinstance(given, str) else given


def _number(given: object) -> float:
    return decimal(check_number(given))


def _texts_by_label(given: object) -> object:
    """An axis of a grid as texts by label; a list of labels gets none."""
    if isinstance(given, list) and all(isinstance(label, str) for label in given):
        return {label: {} for label in given}
    return given


Text = Annotated[str, AfterValidator(_check_folders)]
FolderPath = Annotated[str, AfterValidator(_check_folders), AfterValidator(_check_path)]
FileName = Annotated[str, AfterValidator(_check_file_name)]
Address = Annotated[str, AfterValidator(_check_address)]
Grid = dict[str, Annotated[dict[str, dict[str, str]], BeforeValidator(_texts_by_label)]]
Only = Literal['', 'equal', 'different']


class FileEntry(BaseModel):
    """A mapping whose keys all have to be fields of the class.

    A `name` with a default is its key in the file.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    @model_validator(mode='before')
    @classmethod
    def _check_keys(cls, given: Any) -> Any:
        required = [name for name, info in cls.model_fields.items() if info.is_required()]
        known = [name for name in cls.model_fields if name != 'name' or name in required]
        if not isinstance(given, dict):
            wanted = 'a mapping'
            if required:
                wanted += f' with {", ".join(required)}'
            raise PydanticCustomError('mapping', f'expected {wanted}')
        for key in given:
            if key not in known:
                message = (
                    f"'{key}' is not a field here{did_you_mean(key, known)}: expected "
                    f'{", ".join(known)}'
                )
                raise PydanticCustomError('entry', message, {'key': key})
        missing = [name for name in required if name not in given]
        if missing:
            raise PydanticCustomError('missing', f'{", ".join(missing)} is missing here')
        return given

    def in_cell(self, axes: Mapping[str, str]) -> Self:
        """The entry for a cell of its grid.

        Labels replace `{axis}`, and their texts replace `{axis.key}`.
        """
        content = self.model_dump(exclude_unset=True, exclude={'grid', 'only'})
        return self.model_validate(_fill_all(content, axes))


def _fill_all(value: Any, axes: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {fill(key, axes): _fill_all(below, axes) for key, below in value.items()}
    if isinstance(value, list):
        return [_fill_all(item, axes) for item in value]
    if isinstance(value, str):
        filled = fill(value, axes)
        if len(filled) > MAX_TEXT:
            raise PydanticCustomError('text', f'a text of more than {MAX_TEXT:,} characters')
        return filled
    return value


class ResourceOrigin(StrEnum):
    """How a resource is obtained, named after the field that says so."""

    CATALOG = 'catalog'
    ADDRESS = 'address'
    PAGE = 'page'
    AGREEMENT = 'agreement'
    RECIPE = 'recipe'
    OTHER_SYSTEM = 'other_system'
    UNPUBLISHED = 'unpublished'
    GET = 'get'


class Resource(FileEntry):
    """Something that conditions need and no command makes.

    docs/formats/regressions.md says what its fields mean.
    """

    name: str = ''
    what: str
    path: FolderPath = ''
    catalog: str = ''
    size: str = ''
    get: Text = ''
    address: Annotated[list[Address], BeforeValidator(_one_or_more)] = []
    file: FileName = ''
    unpack: Annotated[str, AfterValidator(_check_unpacking)] = ''
    page: str = ''
    agreement: str = ''
    recipe: str = ''
    other_system: str = ''
    unpublished: str = ''
    licence: str = ''
    md5: Annotated[str, StringConstraints(pattern=r'^[0-9a-f]{32}\z')] = ''
    sha256: Annotated[str, StringConstraints(pattern=r'^[0-9a-f]{64}\z')] = ''

    @model_validator(mode='after')
    def _check_origin(self) -> Self:
        origins = [origin for origin in ResourceOrigin if origin in self.model_fields_set]
        if len(origins) != 1:
            raise PydanticCustomError(
                'origin', f'expected one of {", ".join(ResourceOrigin)}: how is it obtained?'
            )
        if self.origin is ResourceOrigin.CATALOG and not self._is_in_catalog():
            message = f"'{self.catalog}' is not in the catalog: expected KIND/NAME"
            raise PydanticCustomError('entry', message, {'key': 'catalog'})
        if self.origin is ResourceOrigin.ADDRESS:
            self._check_download()
        return self

    def _check_download(self) -> None:
        """Raise an error for addresses whose files have no target, or several."""
        if not self.address:
            raise PydanticCustomError('address', 'no address: expected at least one')
        if not self.path:
            raise PydanticCustomError('path', 'path is missing here: where is it expected?')
        problem = path_problem(self.path, DOWNLOAD_FOLDERS)
        if problem:
            raise PydanticCustomError('path', problem)
        if len(self.address) > 1 and (self.unpack != _OF_SEVERAL or self.file):
            raise PydanticCustomError(
                'address', 'several addresses: expected `unpack: join`, and no `file`'
            )

    def _is_in_catalog(self) -> bool:
        kind, _, name = self.catalog.partition('/')
        return kind in catalog.KINDS and catalog.find(kind, name) is not None

    @property
    def origin(self) -> ResourceOrigin:
        """How it is obtained."""
        return next(origin for origin in ResourceOrigin if origin in self.model_fields_set)

    @property
    def source(self) -> str:
        """What the field of its origin says; of addresses, one a line."""
        if self.address:
            return '\n'.join(self.address)
        return str(getattr(self, self.origin))

    @property
    def source_line(self) -> str:
        """`source` on one line."""
        return self.source.replace('\n', ' and ')


class Build(FileEntry):
    """A file or folder that commands make, shared by conditions."""

    name: str = ''
    path: str
    commands: list[str]
    needs: list[str] = []
    grid: Grid = {}
    only: Only = ''


class Evaluator(FileEntry):
    """How published scores were computed, as far as their source says.

    `gain` is of a grade, `cut` how many hits count where the measure's name does not say it, `ties`
    how hits of equal scores are ordered, and what else decides a value.
    """

    program: str
    gain: str
    ties: str
    cut: str = ''

    @property
    def text(self) -> str:
        """All of it in one line."""
        return '; '.join(part for part in (self.program, self.gain, self.cut, self.ties) if part)


class ScoreSource(FileEntry):
    """Where scores come from.

    `cells` is a path in the list of published figures, `commit` one of this project. `evaluators`
    has the name of an evaluator for each measure.
    """

    text: str
    cells: str = ''
    commit: str = ''
    hardware: str = ''
    evaluators: dict[str, str] = {}

    @model_validator(mode='after')
    def _check_kind(self) -> Self:
        if ('cells' in self.model_fields_set) == ('commit' in self.model_fields_set):
            message = 'expected cells, the path in the list of published figures, or a commit'
            raise PydanticCustomError('source', message)
        return self


class Tolerance(FileEntry):
    """How much scores may differ from the expected ones, and why."""

    value: Annotated[float, BeforeValidator(_number)]
    reason: str


class ScoreEntry(FileEntry):
    """An expected or a recorded score.

    It has a `value`, or `values` for the cells of a grid, nested by the axes `by`.
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


class ConditionEntry(FileEntry):
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


class SharedFile(FileEntry):
    """What several regressions name."""

    resources: dict[str, Resource] = {}
    builds: dict[str, Build] = {}
    evaluators: dict[str, Evaluator] = {}
    sources: dict[str, ScoreSource] = {}
    tolerances: dict[str, Tolerance] = {}


class RegressionFile(SharedFile):
    """A regression file as written."""

    name: str
    title: str
    conditions: list[ConditionEntry]
    shared: str = ''


@dataclass(frozen=True, slots=True)
class Expected:
    """One expected score, or a figure that is only recorded.

    Attributes
    ----------
    measure : in ir_measures' form, or the name of a recorded figure
    text : the value as published, with all its digits
    evaluator : how its source computed it; None if the source is this project, or is silent
    tolerance : None for a recorded figure
    cell : its path in the list of published figures, '' for this project's own
    row_and_column : of the source, for readers
    where : column -> value, of its row in the condition's table
    unit : of a recorded figure, '' for the others
    """

    measure: str
    text: str
    source: ScoreSource
    evaluator: Evaluator | None = None
    tolerance: Tolerance | None = None
    cell: str = ''
    row_and_column: str = ''
    where: Mapping[str, str] = field(default_factory=dict)
    unit: str = ''

    @property
    def value(self) -> float:
        """The expected score."""
        return float(self.text)

    @property
    def rounding(self) -> float:
        """Half a unit of the last published digit.

        A score at most that far off agrees with all digits.
        """
        mantissa, _, exponent = self.text.lower().partition('e')
        n_decimals = len(mantissa.partition('.')[2])
        return 0.5 * 10.0 ** (int(exponent or 0) - n_decimals)


@dataclass(frozen=True, slots=True)
class Condition:
    """Commands, and the scores expected of them, as in one row of a paper's table.

    Attributes
    ----------
    needs : all resources and builds that it needs, those in braces in its commands included
    run, qrels : the run file to evaluate, and the judgments; '' with a table
    table : a CSV or TSV file that the commands write, with scores in a column `value` or named
        after the measure
    heavy : its cost, if it runs only on request ('40 minutes of CPU'); '' for others
    recorded : figures for reference, compared with nothing
    """

    name: str
    commands: Sequence[str]
    needs: Sequence[str]
    run: str
    qrels: str
    table: str
    heavy: str
    expected: Sequence[Expected]
    recorded: Sequence[Expected]


@dataclass(frozen=True, slots=True)
class Regression:
    """A regression file, ready to run."""

    path: str
    name: str
    title: str
    resources: Mapping[str, Resource]
    builds: Mapping[str, Build]
    conditions: Sequence[Condition]
