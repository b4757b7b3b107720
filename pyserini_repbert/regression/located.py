"""YAML values that know their file and line, so that a wrong one is refused where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, existing_file

_PLACE = re.compile(r'\{([^{}]+)\}')


@dataclass(frozen=True)
class Located:
    """A node of a YAML file; `axes` are the texts that stand for `{name}` in it and below it."""

    file: str
    node: Any  # yaml.Node, which has no annotations
    axes: Mapping[str, str]

    @classmethod
    def read(cls, path: StrPath) -> Located:
        """The root of a YAML file. Raises InputError with file and line for what is not YAML."""
        import yaml

        text = existing_file(path, 'regression file').read_text(encoding='utf-8')
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise InputError.at(path, mark.line + 1 if mark else 1, f'not YAML: {error.problem}') from error
        if node is None:
            raise InputError.at(path, 1, 'the file is empty: expected name, title and conditions')
        return cls(str(path), node, {})

    @property
    def line(self) -> int:
        """Where the value begins, from 1."""
        return int(self.node.start_mark.line) + 1

    def error(self, message: str) -> InputError:
        """An error about this value."""
        return InputError.at(self.file, self.line, message)

    def at(self, axes: Mapping[str, str]) -> Located:
        """The same value, with more names to replace."""
        return Located(self.file, self.node, {**self.axes, **axes})

    def fields(self, required: Iterable[str] = (), optional: Iterable[str] | None = None) -> dict[str, Located]:
        """A mapping's values by key; with `optional` (even empty) other keys than those named are refused."""
        required = list(required)
        if self.node.id != 'mapping':
            raise self.error(f'expected a mapping{" with " if required else ""}{", ".join(required)}')
        found: dict[str, Located] = {}
        for key, value in self.node.value:
            name = Located(self.file, key, self.axes).text()
            if name in found:
                raise InputError.at(self.file, key.start_mark.line + 1, f"'{name}' is there twice: remove one")
            if optional is not None and name not in (known := [*required, *optional]):
                message = f"'{name}' is no field here{did_you_mean(name, known)}: expected {', '.join(known)}"
                raise InputError.at(self.file, key.start_mark.line + 1, message)
            found[name] = Located(self.file, value, self.axes)
        if missing := [name for name in required if name not in found]:
            raise self.error(f'{", ".join(missing)} is missing here')
        return found

    def items(self) -> list[Located]:
        """A sequence's values."""
        if self.node.id != 'sequence':
            raise self.error('expected a list')
        return [Located(self.file, value, self.axes) for value in self.node.value]

    @property
    def is_mapping(self) -> bool:
        """Whether the value has keys."""
        return cast(bool, self.node.id == 'mapping')

    @property
    def is_null(self) -> bool:
        """Whether the value is `null`."""
        return cast(bool, self.node.id == 'scalar' and self.node.tag.endswith(':null'))

    def text(self) -> str:
        """A scalar as it is written, on one line, its axes replaced; other `{names}` stay."""
        if self.node.id != 'scalar' or self.is_null:
            raise self.error('expected a text')
        return _PLACE.sub(lambda found: self.axes.get(found[1], found[0]), self.node.value.replace('\n', ' '))

    def number(self) -> float:
        """A number of at least 0."""
        try:
            value = float(self.text())
        except ValueError:
            value = -1.0
        if not 0 <= value < float('inf'):
            raise self.error(f"'{self.text()}' is not a number of at least 0")
        return value

    def flag(self) -> bool:
        """true or false."""
        if self.text() not in ('true', 'false'):
            raise self.error(f"'{self.text()}': expected true or false")
        return self.text() == 'true'


def places(text: str) -> list[str]:
    """The names in braces in a text, in order, once each."""
    return list(dict.fromkeys(_PLACE.findall(text)))


def filled(text: str, values: Mapping[str, str]) -> str:
    """`text` with `{name}` replaced by its value; every name has to have one."""
    return _PLACE.sub(lambda found: values[found[1]], text)
