"""The layout of a regression file: which keys it has where, and what kind of value each has.

Values are checked as they are written: numbers stay texts, and `{names}` in texts are replaced afterwards.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.data.identifiers import has_surrogates
from pyserini_repbert.data.yaml_files import Place, YamlFile, read_nodes
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.numerals import decimal
from pyserini_repbert.regression.schema import replaced

# What `unpack` may begin with -> whether a pattern of members follows; `fetching.unpacking` does the work.
UNPACKINGS = {'gzip': False, 'join': False, 'member': True, 'members': True, 'candidates': True, 'paragraphs': True}
# pydantic's name of an error -> message for a value of another type.
_EXPECTED = {
    'string_type': 'expected a text',
    'list_type': 'expected a list',
    'dict_type': 'expected a mapping',
}


def checked_number(given: str) -> str:
    """`given`, a text that is a number of at least 0. Raises ValueError for another."""
    with contextlib.suppress(ValueError):
        if decimal(given) >= 0:
            return given
    raise PydanticCustomError('number', f"'{given[:40]}' is not a number of at least 0")


def _choice(given: str) -> str:
    if given not in ('equal', 'different'):
        raise PydanticCustomError('choice', f"'{given[:40]}': expected equal or different")
    return given


def _unpacking(given: str) -> str:
    word, _, pattern = given.partition(' ')
    if UNPACKINGS.get(word) is not bool(pattern):
        known = ', '.join(word + ' GLOB' * with_pattern for word, with_pattern in UNPACKINGS.items())
        raise PydanticCustomError('unpacking', f"'{given}': expected {known}")
    return given


def _labels(given: object) -> object:
    """An axis of a grid as texts by label; a list of labels gets none."""
    if isinstance(given, list) and all(isinstance(own, str) for own in given):
        return {own: {} for own in given}
    return given


Axis = Annotated[dict[str, dict[str, str]], BeforeValidator(_labels)]
Grid = dict[str, Axis]
Only = Annotated[str, AfterValidator(_choice)]


class Entry(BaseModel):
    """A mapping whose keys all have to be fields of the class."""

    model_config = ConfigDict(strict=True, frozen=True)

    @model_validator(mode='before')
    @classmethod
    def _keys(cls, given: Any) -> Any:
        required = [name for name, field in cls.model_fields.items() if field.is_required()]
        if not isinstance(given, dict):
            wanted = f'a mapping with {", ".join(required)}' if required else 'a mapping'
            raise PydanticCustomError('mapping', f'expected {wanted}')
        for key in given:
            if key not in cls.model_fields:
                near, known = did_you_mean(key, cls.model_fields), ', '.join(cls.model_fields)
                raise PydanticCustomError('key', f"'{key}' is no field here{near}: expected {known}", {'key': key})
        if missing := [name for name in required if name not in given]:
            raise PydanticCustomError('missing', f'{", ".join(missing)} is missing here')
        return given

    def at(self, axes: Mapping[str, str]) -> Self:
        """The entry for a cell of its grid: labels in place of `{axis}`, texts in place of `{axis.key}`."""
        return self.model_validate(_at(self.model_dump(exclude_unset=True, exclude={'grid', 'only'}), axes))


def _at(value: Any, axes: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {replaced(key, axes): _at(own, axes) for key, own in value.items()}
    if isinstance(value, list):
        return [_at(own, axes) for own in value]
    return replaced(value, axes) if isinstance(value, str) else value


class ResourceEntry(Entry):
    """Something that no command makes."""

    what: str
    path: str = ''
    catalog: str = ''
    size: str = ''
    get: str = ''
    address: Annotated[list[str], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)] = []
    file: str = ''
    unpack: Annotated[str, AfterValidator(_unpacking)] = ''
    page: str = ''
    agreement: str = ''
    recipe: str = ''
    unpublished: str = ''
    licence: str = ''
    md5: Annotated[str, StringConstraints(pattern=r'^[0-9a-f]{32}\z')] = ''
    sha256: Annotated[str, StringConstraints(pattern=r'^[0-9a-f]{64}\z')] = ''


class BuildEntry(Entry):
    """Something that commands make."""

    path: str
    commands: list[str]
    needs: list[str] = []
    grid: Grid = {}
    only: Only = ''


class SourceEntry(Entry):
    """Where scores come from."""

    text: str
    cells: str = ''
    commit: str = ''
    hardware: str = ''


class ToleranceEntry(Entry):
    """By how much scores may differ."""

    value: Annotated[str, AfterValidator(checked_number)]
    reason: str


class ScoreEntry(Entry):
    """An expected or a recorded score: a `value`, or `values` for the cells of a grid, nested by the axes `by`."""

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


class ExpectedEntry(ScoreEntry):
    """A score that is compared."""

    tolerance: str


class RecordedEntry(ScoreEntry):
    """A figure that is compared with nothing."""

    unit: str


class ConditionEntry(Entry):
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
    expected: list[ExpectedEntry] = []
    recorded: list[RecordedEntry] = []


class SharedFile(Entry):
    """What several regressions name."""

    resources: dict[str, ResourceEntry] = {}
    builds: dict[str, BuildEntry] = {}
    sources: dict[str, SourceEntry] = {}
    tolerances: dict[str, ToleranceEntry] = {}


class RegressionFile(SharedFile):
    """A regression file."""

    name: str
    title: str
    conditions: list[ConditionEntry]
    shared: str = ''


_File = TypeVar('_File', bound=SharedFile)


def read_layout(path: StrPath, kind: type[_File]) -> tuple[Place, _File]:
    """A file's root and its content. Raises InputError with file and line where it is not laid out as `kind`."""
    node = read_nodes(path, 'regression file')
    if node is None:
        raise InputError.at(path, 1, 'the file is empty: expected name, title and conditions')
    file = YamlFile(str(path), None, node)
    try:
        return Place(file), kind.model_validate(_plain(file, node))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = [key for key in first['loc'] if key != '[key]']
        place += [first['ctx']['key']] if first['type'] == 'key' else []
        message = _EXPECTED.get(first['type'], first['msg'])
        if first['type'] == 'string_pattern_mismatch':
            message = f'expected {32 if place[-1] == "md5" else 64} hexadecimal digits'
        raise file.error(message, *place) from error


def _plain(file: YamlFile, node: Any) -> Any:
    """A node as dicts, lists, None, and texts as they are written, but on one line."""
    if node.id == 'mapping':
        plain = {}
        for key, value in node.value:
            if key.id != 'scalar':
                raise InputError.at(file.path, key.start_mark.line + 1, 'expected a text')
            plain[key.value] = _plain(file, value)
        return plain
    if node.id == 'sequence':
        return [_plain(file, item) for item in node.value]
    if has_surrogates(node.value):
        raise InputError.at(file.path, node.start_mark.line + 1, 'expected a text')
    return None if node.tag.endswith(':null') else node.value.replace('\n', ' ')
