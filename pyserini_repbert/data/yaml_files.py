"""YAML files that a user wrote, with the line of every entry."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, existing_file, open_binary

MAX_DEPTH = 32  # of nested values, aliases included


@dataclass(frozen=True)
class YamlFile:
    """The content of a YAML file."""

    path: str  # as given
    value: Any  # as in PyYAML's `safe_load`; None for an empty file
    node: Any  # the root `yaml.Node`; None for an empty file

    def line(self, *keys: str | int) -> int:
        """The line, from 1, of the entry at `keys` (names and positions from the root), or of its nearest parent."""
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
    """The values of a YAML file in UTF-8, plain or .gz, and their lines; `what` names the file in errors.

    Raises InputError, with file and line, for text that is not YAML, has a key twice, an unknown tag or values nested
    too deeply.
    """
    node = read_nodes(path, what)
    return YamlFile(str(path), _value(node, str(path)), node)


def read_nodes(path: StrPath, what: str = 'YAML file') -> Any:
    """The root `yaml.Node` of a YAML file, None for an empty one; scalars are as written. Raises as `read_yaml`."""
    with open_binary(existing_file(path, what)) as stream:
        raw = stream.read()
    try:
        text = raw.decode('utf-8-sig')
    except UnicodeDecodeError as error:
        line = raw.count(b'\n', 0, error.start) + 1
        raise InputError.at(path, line, f'not valid UTF-8 ({error.reason}): save the file as UTF-8') from error
    return _nodes(text, str(path))


def parse_yaml(text: str, where: str) -> Any:
    """The value of a YAML text; `where` stands for the file in errors. Raises as `read_yaml`."""
    return _value(_nodes(text, where), where)


def _entry(node: Any, key: str | int) -> tuple[Any, Any] | None:
    """(the node that an entry begins with, its value) of a mapping or a list; None if there is no such entry."""
    if node is not None and node.id == 'mapping':
        pairs = reversed(node.value)  # merged entries come first; the mapping's own override them
        return next(((name, value) for name, value in pairs if name.id == 'scalar' and name.value == str(key)), None)
    if node is not None and node.id == 'sequence' and isinstance(key, int) and key < len(node.value):
        return node.value[key], node.value[key]
    return None


def _nodes(text: str, where: str) -> Any:
    import yaml

    try:
        root = _loader()(text).get_single_node()
    except yaml.YAMLError as error:
        raise _input_error(error, text, where) from error
    except RecursionError as error:
        raise InputError.at(where, 1, f'more than {MAX_DEPTH} values inside each other') from error
    if root is not None:
        _check(root, where)
    return root


def _check(node: Any, where: str, depth: int = 1) -> None:
    """Raise InputError for a key that occurs twice, and for values nested more than `MAX_DEPTH` deep."""
    if depth > MAX_DEPTH:
        limit = f'more than {MAX_DEPTH} values inside each other, what aliases repeat included'
        raise InputError.at(where, node.start_mark.line + 1, limit)
    below = node.value if node.id == 'sequence' else []
    if node.id == 'mapping':
        seen = set()
        for key, _ in node.value:
            if key.id == 'scalar' and (key.tag, key.value) in seen:
                raise InputError.at(where, key.start_mark.line + 1, f"'{key.value}' is there twice: remove one")
            seen.add((key.tag, str(key.value)))
        below = [part for pair in node.value for part in pair]
    for part in below:
        _check(part, where, depth + 1)


def _value(node: Any, where: str) -> Any:
    import yaml

    try:
        return None if node is None else _loader()('').construct_document(node)
    except yaml.YAMLError as error:
        raise _input_error(error, '', where) from error


def _input_error(error: Any, text: str, where: str) -> InputError:
    import yaml

    if isinstance(error, yaml.reader.ReaderError):
        line = text.count('\n', 0, error.position) + 1
        return InputError.at(where, line, f'not YAML: the character U+{error.character:04X} is not allowed')
    mark = error.problem_mark or error.context_mark
    problem = ' '.join(str(error.problem or error.context).split())
    return InputError.at(where, mark.line + 1 if mark else 1, f'not YAML: {problem}')


@cache
def _loader() -> Any:
    """The loader's class, made on first use: importing this module does not import PyYAML."""
    import yaml

    class Loader(yaml.SafeLoader):
        """PyYAML's safe loader; a value that its tag does not allow is an error with its place."""

        def construct_object(self, node: Any, deep: bool = False) -> Any:
            try:
                return super().construct_object(node, deep)
            except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:
                given = repr(node.value[:40]) if node.id == 'scalar' else f'a {node.id}'
                problem = f'{given} is no {node.tag.rpartition(":")[2]}'
                raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error

    return Loader
