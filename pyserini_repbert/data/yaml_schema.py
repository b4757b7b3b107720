"""YAML 1.2 with its core schema, by ruamel.yaml, which takes a while to import.

Numbers with zeros in front are text, since most are postal codes, numbers of books and films. A
date is text, too: filters know dates by their form.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, MaxDepthExceededError
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.resolver import BaseResolver
from ruamel.yaml.tag import Tag

MAX_DEPTH = 32  # of nested values, aliases included
# aliases can repeat a list of lists so often that no reader of the values comes to an end
MAX_VALUES = 100_000
_TOO_MANY = f'more than {MAX_VALUES} values, what aliases repeat included'
_TOO_DEEP = f'more than {MAX_DEPTH} values inside each other, what aliases repeat included'
_TAGS = 'tag:yaml.org,2002:'
_WHOLE = r'(?:0|[1-9][0-9]*)'
# YAML 1.2.2, section 10.3.2, and the key '<<' of merged mappings: kind, form, first characters.
_CORE_SCHEMA = (
    ('null', r'null|Null|NULL|~|', ['n', 'N', '~', '']),
    ('bool', r'true|True|TRUE|false|False|FALSE', list('tTfF')),
    ('int', rf'[-+]?{_WHOLE}|0o[0-7]+|0x[0-9a-fA-F]+', list('-+0123456789')),
    (
        'float',
        rf'[-+]?(?:\.[0-9]+|{_WHOLE}(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?'
        r'|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)',
        list('-+.0123456789'),
    ),
    ('merge', r'<<', ['<']),
)


class YamlFault(Exception):
    """An error in YAML text, and its line, from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


class _CoreResolver(BaseResolver):
    """Tells the kind of a value by its form."""

    # What a file says of its version changes nothing.
    processing_version = (1, 2)

    def __init__(self, version: Any = None, loader: Any = None, loadumper: Any = None) -> None:
        super().__init__(loader or loadumper)


for _kind, _form, _first in _CORE_SCHEMA:
    _CoreResolver.add_implicit_resolver_base(
        f'{_TAGS}{_kind}', re.compile(rf'(?:{_form})\Z'), _first
    )


class _CheckedComposer(Composer):
    """Refuses keys that occur twice, deep nesting and too many values."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader)
        self.warn_double_anchors = False
        self._depths: dict[int, int] = {}
        self._sizes: dict[int, int] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        """As ruamel.yaml's, for a node that passes the checks."""
        is_alias = self.parser.check_event(AliasEvent)
        node: Any = super().compose_node(parent, index)
        if not is_alias:
            _check_keys(node)
            self._check_size(node)
        return node

    def _check_size(self, node: Any) -> None:
        """Note a node's depth and number of values."""
        below: list[Any] = []
        if node.id == 'sequence':
            below = node.value
        elif node.id == 'mapping':
            for pair in node.value:
                below += pair
        # An alias inside the node that it refers to has no depth yet.
        depths = [self._depths.get(id(part), MAX_DEPTH) for part in below]
        depth = 1 + max(depths, default=0)
        if depth > MAX_DEPTH:
            raise _fault(node, _TOO_DEEP)
        size = 1 + sum(self._sizes[id(part)] for part in below)
        if size > MAX_VALUES:
            raise _fault(node, _TOO_MANY)
        self._depths[id(node)] = depth
        self._sizes[id(node)] = size


class _WrittenKeysComposer(_CheckedComposer):
    """Takes keys as written: '1.10', 'null' and '~' are text."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        """As ruamel.yaml's."""
        node = super().compose_mapping_node(anchor)
        for key, _ in node.value:
            # One with an anchor may be a value elsewhere.
            is_text = key.tag == f'{_TAGS}merge' or key.anchor is not None
            if key.id == 'scalar' and not is_text:
                key.ctag = Tag(suffix=f'{_TAGS}str')
        return node


def _check_keys(node: Any) -> None:
    """Raises YamlFault for a mapping with a key twice."""
    if node.id != 'mapping':
        return
    seen = set()
    for key, _ in node.value:
        if key.id == 'scalar' and (key.tag, key.value) in seen:
            raise _fault(key, f"'{key.value}' occurs twice: remove one")
        seen.add((key.tag, str(key.value)))


_CONSTRUCTORS = {
    f'{_TAGS}null': SafeConstructor.construct_yaml_null,
    f'{_TAGS}bool': SafeConstructor.construct_yaml_bool,
    f'{_TAGS}int': SafeConstructor.construct_yaml_int,
    f'{_TAGS}float': SafeConstructor.construct_yaml_float,
    f'{_TAGS}str': SafeConstructor.construct_yaml_str,
    f'{_TAGS}seq': SafeConstructor.construct_yaml_seq,
    f'{_TAGS}map': SafeConstructor.construct_yaml_map,
    None: SafeConstructor.construct_undefined,
}


class _CheckedConstructor(SafeConstructor):
    """Makes values of the core schema's kinds; an error for one that its tag does not allow."""

    def __init__(self, preserve_quotes: Any = None, loader: Any = None) -> None:
        super().__init__(preserve_quotes, loader)
        # Not ruamel.yaml's own tables: other packages change them for the whole process.
        self.yaml_constructors = _CONSTRUCTORS
        self.yaml_multi_constructors = {}

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """As ruamel.yaml's."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:
            given = repr(node.value[:40]) if node.id == 'scalar' else f'a {node.id}'
            kind = node.tag.rpartition(':')[2]
            raise _fault(node, f'not YAML: {given} is not of type {kind}') from error


def _fault(node: Any, message: str) -> YamlFault:
    return YamlFault(node.start_mark.line + 1, message)


class _CoreYaml(YAML):
    """Reads one text."""

    def __init__(self, has_written_keys: bool) -> None:
        super().__init__(typ='safe', pure=True)
        self.Resolver = _CoreResolver
        self.Composer = _WrittenKeysComposer if has_written_keys else _CheckedComposer
        self.Constructor = _CheckedConstructor
        self.max_depth = MAX_DEPTH

    @property
    def version(self) -> None:
        """The file's %YAML changes nothing; ruamel.yaml raises AssertionError for '%YAML 1.3'."""
        return None

    @version.setter
    def version(self, version: Any) -> None:
        pass

    def official_plug_ins(self) -> list[Any]:
        """None: looking for them takes longer than reading a header."""
        return []


class ComposedYaml(NamedTuple):
    """A YAML text as ruamel.yaml has it."""

    node: Any  # the root; None for an empty text
    value: Any


def compose_yaml(text: str, has_written_keys: bool = False) -> ComposedYaml:
    """The nodes and the values of a YAML text. Raises YamlFault.

    With `has_written_keys`, keys are text, as written: not None for 'null', nor 1 for '1'.
    """
    yaml = _CoreYaml(has_written_keys)
    try:
        node = yaml.compose(text)
        value = None if node is None else yaml.constructor.construct_document(node)
    except YAMLError as error:
        raise _fault_of(error, text) from error
    return ComposedYaml(node, value)


def _fault_of(error: Any, text: str) -> YamlFault:
    """What ruamel.yaml says, on one line."""
    if isinstance(error, ReaderError):
        line = text.count('\n', 0, error.position) + 1
        return YamlFault(line, f'not YAML: the character U+{error.character:04X} is not allowed')
    if isinstance(error, MaxDepthExceededError):
        return YamlFault(error.problem_mark.line + 1, _TOO_DEEP)
    mark = getattr(error, 'problem_mark', None) or getattr(error, 'context_mark', None)
    message = getattr(error, 'problem', None) or getattr(error, 'context', None) or error
    problem = ' '.join(str(message).split())
    return YamlFault(mark.line + 1 if mark else 1, f'not YAML: {problem}')
