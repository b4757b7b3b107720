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
        """The line, from 1, of the entry at `keys` (names and positions from the root), or of
        its nearest parent.
        """
        begin = node = self.node
        for key in keys:
            entry = _entry(node, key)
            if entry is None:
                break
            begin, node = entry
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
    """The values of a YAML file in UTF-8, plain or .gz, and their lines; `what` names the file in
    errors.

    Raises InputError, with file and line, for text that is not YAML, has a key twice, an unknown
    tag or values nested too deeply.
    """
    return parse_yaml(''.join(f'{line}\n' for _, line in numbered_lines(path, what)), str(path))


def parse_yaml(text: str, where: str) -> YamlFile:
    """The values of a YAML text; `where` stands for the file in errors. Raises as `read_yaml`."""
    import yaml

    try:
        loader = _loader()(text)
        loader.name = where  # which its marks repeat
        node = loader.get_single_node()
        return YamlFile(where, None if node is None else loader.construct_document(node), node)
    except yaml.reader.ReaderError as error:
        line = text.count('\n', 0, error.position) + 1
        why = f'not YAML: the character U+{error.character:04X} is not allowed'
        raise InputError.at(where, line, why) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ' '.join(str(error.problem or error.context).split())
        raise InputError.at(where, mark.line + 1 if mark else 1, f'not YAML: {problem}') from error
    except RecursionError as error:
        raise InputError.at(where, 1, _TOO_DEEP) from error


def _entry(node: Any, key: str | int) -> tuple[Any, Any] | None:
    """(the node that an entry begins with, its value) of a mapping or a list; None if there is
    no such entry.
    """
    if node is not None and node.id == 'mapping':
        pairs = reversed(node.value)  # merged entries come first; the mapping's own override them
        return next(
            (
                (name, value)
                for name, value in pairs
                if name.id == 'scalar' and name.value == str(key)
            ),
            None,
        )
    if (
        node is not None
        and node.id == 'sequence'
        and isinstance(key, int)
        and key < len(node.value)
    ):
        return node.value[key], node.value[key]
    return None


@cache
def _loader() -> Any:
    """The loader's class, made on first use: importing this module does not import PyYAML."""
    import yaml

    class Loader(yaml.SafeLoader):
        """PyYAML's safe loader, with errors for keys that occur twice, deep nesting, and values
        of another kind.
        """

        def compose_node(self, parent: Any, index: Any) -> Any:
            is_alias = self.check_event(yaml.AliasEvent)
            node: Any = super().compose_node(parent, index)
            if is_alias:
                return node
            below = node.value if node.id == 'sequence' else []
            if node.id == 'mapping':
                below = [part for pair in node.value for part in pair]
                seen = set()
                for key, _ in node.value:
                    if key.id == 'scalar' and (key.tag, key.value) in seen:
                        raise _error(key, f"'{key.value}' is there twice: remove one")
                    seen.add((key.tag, str(key.value)))
            # an alias within the node that it stands for has no depth yet
            node.depth = 1 + max((getattr(part, 'depth', MAX_DEPTH) for part in below), default=0)
            if node.depth > MAX_DEPTH:
                raise _error(node, _TOO_DEEP)
            node.size = 1 + sum(part.size for part in below)
            if node.size > MAX_VALUES:
                raise _error(node, _TOO_MANY)
            return node

        def construct_object(self, node: Any, deep: bool = False) -> Any:
            try:
                return super().construct_object(node, deep)
            except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:
                given = repr(node.value[:40]) if node.id == 'scalar' else f'a {node.id}'
                raise _error(
                    node, f'not YAML: {given} is no {node.tag.rpartition(":")[2]}'
                ) from error

    return Loader


def _error(node: Any, message: str) -> InputError:
    return InputError.at(node.start_mark.name, node.start_mark.line + 1, message)
