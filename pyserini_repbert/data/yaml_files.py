"""YAML files that a user wrote, with the line of every entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, numbered_lines


@dataclass(frozen=True)
class YamlFile:
    """The content of a YAML file."""

    path: str  # as given
    value: Any  # by the core schema of YAML 1.2; None for an empty file
    node: Any  # ruamel.yaml's root node; None for an empty file

    def line(self, *keys: str | int) -> int:
        """The line, from 1, of the entry at `keys`, or of its nearest parent.

        `keys` are names and positions from the root.
        """
        begin = self.node
        value = self.node
        for key in keys:
            entry = _entry(value, key)
            if entry is None:
                break
            begin = entry.begin
            value = entry.value
        return 1 if begin is None else begin.start_mark.line + 1

    def written(self, *keys: str | int) -> str:
        """The value at `keys` as written, without quotes: '007', '1.10'.

        '' if it is missing, or is a list or a mapping.
        """
        value = self.node
        for key in keys:
            entry = _entry(value, key)
            if entry is None:
                return ''
            value = entry.value
        return str(value.value) if value is not None and value.id == 'scalar' else ''

    def error(self, message: str, *keys: str | int) -> InputError:
        """An error about the entry at `keys`, with file and line."""
        return InputError.at(self.path, self.line(*keys), message)


class KeyPath(NamedTuple):
    """An entry of a YAML file, at `keys`: names and positions from the root."""

    file: YamlFile
    keys: tuple[str | int, ...] = ()

    def error(self, message: str, *keys: str | int) -> InputError:
        """An error about this entry, or about the one at `keys` below it."""
        return self.file.error(message, *self.keys, *keys)

    def below(self, *keys: str | int) -> KeyPath:
        """The entry at `keys` below this one."""
        return KeyPath(self.file, (*self.keys, *keys))


def read_yaml(path: StrPath, what: str = 'YAML file') -> YamlFile:
    """The values of a YAML file in UTF-8, plain or .gz, and their lines.

    `what` names the file in errors. Raises InputError, with file and line, for text that is not
    YAML, has a key twice, an unknown tag or values nested too deeply.
    """
    return parse_yaml(''.join(f'{line}\n' for _, line in numbered_lines(path, what)), str(path))


def parse_yaml(text: str, where: str, has_written_keys: bool = False) -> YamlFile:
    """The values of a YAML text; `where` names the file in errors. Raises as `read_yaml`.

    With `has_written_keys`, keys are text, as written: 'null', '1.10'.
    """
    from pyserini_repbert.data.yaml_schema import YamlFault, compose_yaml

    try:
        composed = compose_yaml(text, has_written_keys)
    except YamlFault as fault:
        raise InputError.at(where, fault.line, fault.message) from fault
    return YamlFile(where, composed.value, composed.node)


class _Entry(NamedTuple):
    """An entry of a mapping or a list."""

    begin: Any  # the node that it begins with: its key, or itself in a list
    value: Any


def _entry(node: Any, key: str | int) -> _Entry | None:
    """The entry of a node; None if there is no such entry."""
    if node is None:
        return None
    if node.id == 'mapping':
        # Merged entries come first; the mapping's own override them.
        for name, value in reversed(node.value):
            if name.id == 'scalar' and name.value == str(key):
                return _Entry(name, value)
    elif node.id == 'sequence' and isinstance(key, int) and key < len(node.value):
        item = node.value[key]
        return _Entry(item, item)
    return None
