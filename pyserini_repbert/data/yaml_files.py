"""YAML files that a user wrote, with the line of every entry."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, numbered_lines

MAX_DEPTH = 32  # of nested values, aliases included
# aliases can repeat a list of lists so often that no reader of the values comes to an end
MAX_VALUES = 100_000
_TOO_MANY = f'more than {MAX_VALUES} values, what aliases repeat included'
_TOO_DEEP = f'more than {MAX_DEPTH} values inside each other, what aliases repeat included'


@dataclass(frozen=True)
class YamlFile:
    """The content of a YAML file."""

    path: str  # as given
    value: Any  # as in PyYAML's `safe_load`; None for an empty file
    node: Any  # the root `yaml.Node`; None for an empty file

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


def parse_yaml(text: str, where: str) -> YamlFile:
    """The values of a YAML text; `where` stands for the file in errors. Raises as `read_yaml`."""
    import yaml

    try:
        loader = _loader()(text)
        # Its marks repeat the name.
        loader.name = where
        node = loader.get_single_node()
        value = None if node is None else loader.construct_document(node)
        return YamlFile(where, value, node)
    except yaml.reader.ReaderError as error:
        line = text.count('\n', 0, error.position) + 1
        why = f'not YAML: the character U+{error.character:04X} is not allowed'
        raise InputError.at(where, line, why) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ' '.join(str(error.problem or error.context).split())
        line = mark.line + 1 if mark else 1
        raise InputError.at(where, line, f'not YAML: {problem}') from error
    except RecursionError as error:
        raise InputError.at(where, 1, _TOO_DEEP) from error


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


@cache
def _loader() -> Any:
    """The loader's class, made on first use: importing this module does not import PyYAML."""
    import yaml

    class Loader(yaml.SafeLoader):
        """PyYAML's safe loader.

        It has errors for keys that occur twice, deep nesting, and values of another kind.
        """

        def compose_node(self, parent: Any, index: Any) -> Any:
            is_alias = self.check_event(yaml.AliasEvent)
            node: Any = super().compose_node(parent, index)
            if not is_alias:
                _check_keys(node)
                _check_size(node)
            return node

        def construct_object(self, node: Any, deep: bool = False) -> Any:
            try:
                return super().construct_object(node, deep)
            except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:
                given = repr(node.value[:40]) if node.id == 'scalar' else f'a {node.id}'
                kind = node.tag.rpartition(':')[2]
                raise _error(node, f'not YAML: {given} is no {kind}') from error

    return Loader


def _check_keys(node: Any) -> None:
    """Raises InputError for a mapping with a key twice."""
    if node.id != 'mapping':
        return
    seen = set()
    for key, _ in node.value:
        if key.id == 'scalar' and (key.tag, key.value) in seen:
            raise _error(key, f"'{key.value}' is there twice: remove one")
        seen.add((key.tag, str(key.value)))


def _check_size(node: Any) -> None:
    """Note a node's depth and number of values; raises InputError for too great ones."""
    below: list[Any] = []
    if node.id == 'sequence':
        below = node.value
    elif node.id == 'mapping':
        for pair in node.value:
            below += pair
    # An alias within the node that it stands for has no depth yet.
    depths = [getattr(part, 'depth', MAX_DEPTH) for part in below]
    node.depth = 1 + max(depths, default=0)
    if node.depth > MAX_DEPTH:
        raise _error(node, _TOO_DEEP)
    node.size = 1 + sum(part.size for part in below)
    if node.size > MAX_VALUES:
        raise _error(node, _TOO_MANY)


def _error(node: Any, message: str) -> InputError:
    return InputError.at(node.start_mark.name, node.start_mark.line + 1, message)
