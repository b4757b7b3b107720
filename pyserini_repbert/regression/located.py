"""YAML values that know their file and line, so that a wrong one is refused where it stands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.formats.yaml_files import read_nodes
from pyserini_repbert.numerals import decimal
from pyserini_repbert.regression.layout import Entry, check_layout

_PLACE = re.compile(r'\{([^{}]+)\}')


@dataclass(frozen=True)
class Located:
    """A node of a YAML file; `axes` are the texts that stand for `{name}` in it and below it."""

    file: str
    node: Any  # yaml.Node, which has no annotations
    axes: Mapping[str, str]

    @classmethod
    def read(cls, path: StrPath, kind: type[Entry]) -> Located:
        """The root of a YAML file. Raises InputError with file and line unless it is YAML as in `kind`."""
        node = read_nodes(path, 'regression file')
        if node is None:
            raise InputError.at(path, 1, 'the file is empty: expected name, title and conditions')
        check_layout(kind, str(path), node)
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

    def fields(self) -> dict[str, Located]:
        """A mapping's values by key, in which axes are replaced too."""
        if self.node.id != 'mapping':
            raise self.error('expected a mapping')
        found: dict[str, Located] = {}
        for key, value in self.node.value:
            name = Located(self.file, key, self.axes).text()
            if name in found:
                raise InputError.at(self.file, key.start_mark.line + 1, f"'{name}' is there twice: remove one")
            found[name] = Located(self.file, value, self.axes)
        return found

    def items(self) -> list[Located]:
        """A sequence's values."""
        if self.node.id != 'sequence':
            raise self.error('expected a list')
        return [Located(self.file, value, self.axes) for value in self.node.value]

    def one_or_more(self) -> list[Located]:
        """A sequence's values, or the value itself."""
        return self.items() if self.node.id == 'sequence' else [self]

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
            value = decimal(self.text())
        except ValueError:
            value = -1.0
        if value < 0:
            raise self.error(f"'{self.text()}' is not a number of at least 0")
        return value


def places(text: str) -> list[str]:
    """The names in braces in a text, in order, once each."""
    return list(dict.fromkeys(_PLACE.findall(text)))


def filled(text: str, values: Mapping[str, str]) -> str:
    """`text` with `{name}` replaced by its value; every name has to have one."""
    return _PLACE.sub(lambda found: values[found[1]], text)
