"""The layout of a regression file: which keys stand where, and what kind of value each has.

Values are checked as they are written: a number is text here too, and `{names}` in it are replaced afterwards.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.errors import InputError
from pyserini_repbert.formats.identifiers import has_surrogates
from pyserini_repbert.formats.yaml_files import YamlFile
from pyserini_repbert.numerals import decimal


def _text(given: object) -> object:
    if not isinstance(given, str) or has_surrogates(given):
        raise PydanticCustomError('text', 'expected a text')
    return given


def _items(given: object) -> object:
    if not isinstance(given, list):
        raise PydanticCustomError('items', 'expected a list')
    return given


def _mapping(given: object) -> object:
    if not isinstance(given, dict):
        raise PydanticCustomError('mapping', 'expected a mapping')
    return given


def _number(given: str) -> str:
    try:
        fits = decimal(given) >= 0
    except ValueError:
        fits = False
    if not fits:
        raise PydanticCustomError('number', f"'{given[:40]}' is not a number of at least 0")
    return given


def _choice(given: str) -> str:
    if given not in ('equal', 'different'):
        raise PydanticCustomError('choice', f"'{given[:40]}': expected equal or different")
    return given


def _labels(given: object) -> object:
    """An axis of a grid: its labels, or texts by label; both as the latter."""
    if isinstance(given, list) and all(isinstance(own, str) for own in given):
        return {own: {} for own in given}
    return given


Text = Annotated[str, BeforeValidator(_text)]
Number = Annotated[Text, AfterValidator(_number)]
Texts = Annotated[list[Text], BeforeValidator(_items)]
ByName = BeforeValidator(_mapping)
Axis = Annotated[dict[str, Annotated[dict[str, Text], ByName]], ByName, BeforeValidator(_labels)]  # the last one first
Grid = Annotated[dict[str, Axis], ByName]


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


def _one_or_more(given: object) -> object:
    return [given] if isinstance(given, str) else given


class ResourceEntry(Entry):
    """Something that no command makes."""

    what: Text
    path: Text = ''
    catalog: Text = ''
    size: Text = ''
    get: Text = ''
    address: Annotated[Texts, BeforeValidator(_one_or_more)] = []
    file: Text = ''
    unpack: Text = ''
    page: Text = ''
    agreement: Text = ''
    recipe: Text = ''
    unpublished: Text = ''
    licence: Text = ''
    md5: Text = ''
    sha256: Text = ''


class BuildEntry(Entry):
    """Something that commands make."""

    path: Text
    commands: Texts
    needs: Texts = []
    grid: Grid = {}
    only: Annotated[Text, AfterValidator(_choice)] = ''


class SourceEntry(Entry):
    """Where scores come from."""

    text: Text
    cells: Text = ''
    commit: Text = ''
    hardware: Text = ''


class ToleranceEntry(Entry):
    """By how much scores may differ."""

    value: Number
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
    only: Annotated[Text, AfterValidator(_choice)] = ''
    commands: Texts = []
    needs: Texts = []
    run: Text = ''
    qrels: Text = ''
    table: Text = ''
    heavy: Text = ''
    expected: Annotated[list[ExpectedEntry], BeforeValidator(_items)] = []
    recorded: Annotated[list[RecordedEntry], BeforeValidator(_items)] = []


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
    conditions: Annotated[list[ConditionEntry], BeforeValidator(_items)]
    shared: Text = ''


def check_layout(kind: type[Entry], path: str, node: Any) -> None:
    """Raises InputError with file and line where the nodes of a YAML file have another layout than `kind`'s."""
    file = YamlFile(path, None, node)
    try:
        kind.model_validate(_plain(file, node))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = [key for key in first['loc'] if key != '[key]']
        place += [first['ctx']['key']] if first['type'] == 'key' else []
        raise file.error(first['msg'], *place) from error


def _plain(file: YamlFile, node: Any) -> Any:
    """Dicts, lists, texts as they are written, and None."""
    if node.id == 'mapping':
        plain = {}
        for key, value in node.value:
            if key.id != 'scalar':
                raise InputError.at(file.path, key.start_mark.line + 1, 'expected a text')
            plain[key.value] = _plain(file, value)
        return plain
    if node.id == 'sequence':
        return [_plain(file, item) for item in node.value]
    return None if node.tag.endswith(':null') else node.value
