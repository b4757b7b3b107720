"""The layout of a regression file: which keys stand where, and what kind of value each has.

Values are checked as they are written: a number is text here too, and `{names}` in it are replaced afterwards.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.formats.identifiers import has_surrogates
from pyserini_repbert.formats.yaml_files import Place, YamlFile, read_nodes
from pyserini_repbert.numerals import decimal
from pyserini_repbert.regression.schema import replaced

# What `unpack` may begin with, and whether a pattern of members follows; `fetching.unpacking` does it.
UNPACKINGS = {'gzip': False, 'join': False, 'member': True, 'members': True, 'candidates': True, 'paragraphs': True}
_MD5, _SHA256 = re.compile('[0-9a-f]{32}'), re.compile('[0-9a-f]{64}')


def _check(fits: Callable[[Any], object], message: str) -> Callable[[Any], Any]:
    """What refuses a value that does not fit."""

    def check(given: Any) -> Any:
        if not fits(given):
            raise PydanticCustomError('value', message)
        return given

    return check


def checked_number(given: str) -> str:
    """A text that is a number of at least 0. Raises a ValueError for another."""
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
    """An axis of a grid: its labels, or texts by label; both as the latter."""
    if isinstance(given, list) and all(isinstance(own, str) for own in given):
        return {own: {} for own in given}
    return given


_text = _check(lambda given: isinstance(given, str) and not has_surrogates(given), 'expected a text')
Text = Annotated[str, BeforeValidator(_text)]
Items = BeforeValidator(_check(lambda given: isinstance(given, list), 'expected a list'))
ByName = BeforeValidator(_check(lambda given: isinstance(given, dict), 'expected a mapping'))
Texts = Annotated[list[Text], Items]
Axis = Annotated[dict[str, Annotated[dict[str, Text], ByName]], ByName, BeforeValidator(_labels)]  # the last one first
Grid = Annotated[dict[str, Axis], ByName]
Only = Annotated[Text, AfterValidator(_choice)]


class Entry(BaseModel):
    """A mapping of which every key is known."""

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
        """A cell of the grid: the same with the axes' labels in the place of `{axis}`."""
        return self.model_validate(_at(self.model_dump(exclude_unset=True, exclude={'grid', 'only'}), axes))


def _at(value: Any, axes: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {replaced(key, axes): _at(own, axes) for key, own in value.items()}
    if isinstance(value, list):
        return [_at(own, axes) for own in value]
    return replaced(value, axes) if isinstance(value, str) else value


class ResourceEntry(Entry):
    """Something that no command makes."""

    what: Text
    path: Text = ''
    catalog: Text = ''
    size: Text = ''
    get: Text = ''
    address: Annotated[Texts, BeforeValidator(lambda given: [given] if isinstance(given, str) else given)] = []
    file: Text = ''
    unpack: Annotated[Text, AfterValidator(_unpacking)] = ''
    page: Text = ''
    agreement: Text = ''
    recipe: Text = ''
    unpublished: Text = ''
    licence: Text = ''
    md5: Annotated[Text, AfterValidator(_check(_MD5.fullmatch, 'expected 32 hexadecimal digits'))] = ''
    sha256: Annotated[Text, AfterValidator(_check(_SHA256.fullmatch, 'expected 64 hexadecimal digits'))] = ''


class BuildEntry(Entry):
    """Something that commands make."""

    path: Text
    commands: Texts
    needs: Texts = []
    grid: Grid = {}
    only: Only = ''


class SourceEntry(Entry):
    """Where scores come from."""

    text: Text
    cells: Text = ''
    commit: Text = ''
    hardware: Text = ''


class ToleranceEntry(Entry):
    """By how much scores may differ."""

    value: Annotated[Text, AfterValidator(checked_number)]
    reason: Text


class ScoreEntry(Entry):
    """An expected or a recorded score; `values` is a grid of them, looked into for each cell."""

    measure: Text
    source: Text
    tolerance: Text = ''
    unit: Text = ''
    where: Annotated[dict[str, Text], ByName] = {}
    value: Text | None = ''
    values: Annotated[dict[str, Any], ByName] = {}
    by: Texts = []
    row: Text = ''
    column: Text = ''
    cell: Text = ''


class ExpectedEntry(ScoreEntry):
    """A score that is compared."""

    tolerance: Text


class RecordedEntry(ScoreEntry):
    """A figure that is compared with nothing."""

    unit: Text


class ConditionEntry(Entry):
    """A condition, or several by a grid."""

    name: Text
    grid: Grid = {}
    only: Only = ''
    commands: Texts = []
    needs: Texts = []
    run: Text = ''
    qrels: Text = ''
    table: Text = ''
    heavy: Text = ''
    expected: Annotated[list[ExpectedEntry], Items] = []
    recorded: Annotated[list[RecordedEntry], Items] = []


class SharedFile(Entry):
    """What several regressions name."""

    resources: Annotated[dict[str, ResourceEntry], ByName] = {}
    builds: Annotated[dict[str, BuildEntry], ByName] = {}
    sources: Annotated[dict[str, SourceEntry], ByName] = {}
    tolerances: Annotated[dict[str, ToleranceEntry], ByName] = {}


class RegressionFile(SharedFile):
    """A regression file."""

    name: Text
    title: Text
    conditions: Annotated[list[ConditionEntry], Items]
    shared: Text = ''


_File = TypeVar('_File', bound=SharedFile)


def read_layout(path: StrPath, kind: type[_File]) -> tuple[Place, _File]:
    """A file and what it says. Raises InputError with file and line where it is not laid out as `kind`."""
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
        raise file.error(first['msg'], *place) from error


def _plain(file: YamlFile, node: Any) -> Any:
    """Dicts, lists, texts as they are written but on one line, and None."""
    if node.id == 'mapping':
        plain = {}
        for key, value in node.value:
            if key.id != 'scalar':
                raise InputError.at(file.path, key.start_mark.line + 1, 'expected a text')
            plain[key.value] = _plain(file, value)
        return plain
    if node.id == 'sequence':
        return [_plain(file, item) for item in node.value]
    return None if node.tag.endswith(':null') else node.value.replace('\n', ' ')
