"""Regression files read, checked, and their grids expanded. Every error names file and line."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.files import StrPath
from pyserini_repbert.regression.layout import RegressionFile, SharedFile
from pyserini_repbert.regression.located import Located, places
from pyserini_repbert.regression.schema import Build, Condition, Origin, Regression, Resource
from pyserini_repbert.regression.scores import Names, read_scores

FOLDERS = ('data', 'downloads', 'pyserini', 'here', 'out', 'shared')
CHECKSUMS = {'md5': 32, 'sha256': 64}
# What `unpack` may begin with, and whether a pattern of members follows; `fetching.unpacking` does it.
UNPACKINGS = {'gzip': False, 'join': False, 'member': True, 'members': True, 'candidates': True, 'paragraphs': True}


def read_regression(path: StrPath) -> Regression:
    """The regression file `path`.

    Raises
    ------
    InputError
        with file and line, for anything that is not as it should be
    """
    top = Located.read(path, RegressionFile).fields()
    if top['name'].text() != Path(path).name.removesuffix('.yaml'):
        raise top['name'].error(f"'{top['name'].text()}' is not the name of the file: one and the same was expected")
    parts = [top]
    if 'shared' in top:  # a file of resources, builds, sources and tolerances that several regressions name
        parts.insert(0, Located.read(Path(path).parent / top['shared'].text(), SharedFile).fields())
    names = Names.read(parts)
    resources: dict[str, Resource] = {}
    builds: dict[str, Build] = {}
    for part in parts:
        resources |= {name: _resource(name, value) for name, value in _optional(part, 'resources').items()}
    known = {*resources, *FOLDERS}
    for name, value in [item for part in parts for item in _optional(part, 'builds').items()]:
        for cell in _cells(value):
            build = _build(name, cell, known)
            if build.name in known:
                raise value.error(f"'{build.name}' is there twice: give it another name")
            builds[build.name] = build
            known.add(build.name)
    conditions: list[Condition] = []
    for value in top['conditions'].items():
        for cell in _cells(value):
            conditions.append(_condition(cell, names, known))
            if [other.name for other in conditions].count(conditions[-1].name) > 1:
                raise value.error(f"condition '{conditions[-1].name}' is there twice: give it another name")
    if not conditions:
        raise top['conditions'].error('no conditions: expected at least one')
    return Regression(str(path), top['name'].text(), top['title'].text(), resources, builds, conditions)


def _optional(top: Mapping[str, Located], name: str) -> dict[str, Located]:
    return top[name].fields() if name in top else {}


def _resource(name: str, value: Located) -> Resource:
    fields = value.fields()
    given = [origin for origin in Origin if origin.value in fields]
    if len(given) != 1:
        raise value.error(f'expected one of {", ".join(Origin)}: how is it come by?')
    origin = given[0]
    if origin is Origin.ADDRESS:
        get = '\n'.join(own.text() for own in fields['address'].one_or_more())
    else:
        get = fields[origin.value].text()
    texts = {key: field.text() for key, field in fields.items() if key != origin.value}
    checksum = None
    for algorithm, length in CHECKSUMS.items():
        if algorithm in fields:
            checksum = (algorithm, texts.pop(algorithm))
            if len(checksum[1]) != length or set(checksum[1]) - set('0123456789abcdef'):
                raise fields[algorithm].error(f'expected {length} hexadecimal digits')
    if origin is Origin.CATALOG:
        from pyserini_repbert import catalog

        if 'path' in texts:
            raise value.error('path and catalog: expected one of them')
        kind, _, entry = get.partition('/')
        if kind not in catalog.KINDS or catalog.find(kind, entry) is None:
            raise fields['catalog'].error(f"'{get}' is not in the catalog: expected KIND/NAME")
    elif origin is Origin.ADDRESS and 'path' not in texts:
        raise value.error('path is missing here: where is it expected?')
    if 'unpack' in texts:
        word, _, pattern = texts['unpack'].partition(' ')
        if UNPACKINGS.get(word) is not bool(pattern):
            raise fields['unpack'].error(
                f"'{texts['unpack']}': expected {', '.join(w + ' GLOB' * own for w, own in UNPACKINGS.items())}"
            )
    _check_places(fields.get('path'), FOLDERS)
    _check_places(fields.get('get'), FOLDERS)
    return Resource(name, origin=origin, get=get, checksum=checksum, **texts)


def _cells(value: Located) -> Iterator[Located]:
    """The value once for each cell of its grid; the axes' labels replace `{axis}` in it.

    `only: equal` or `different` keeps the cells where the last two axes have the same label, or not.
    """
    fields = value.fields()
    axes: dict[str, dict[str, dict[str, str]]] = {}
    for axis, labels in _optional(fields, 'grid').items():
        if labels.is_mapping:
            axes[axis] = {
                label: {f'{axis}.{key}': text.text() for key, text in values.fields().items()}
                for label, values in labels.fields().items()
            }
        else:
            axes[axis] = {label.text(): {} for label in labels.items()}
    only = fields['only'].text() if 'only' in fields else ''
    for labels_of_cell in itertools.product(*axes.values()):
        if only and (len(set(labels_of_cell[-2:])) == 1) != (only == 'equal'):
            continue
        chosen: dict[str, str] = {}
        for (axis, known), label in zip(axes.items(), labels_of_cell, strict=True):
            chosen |= {axis: label, **known[label]}
        yield value.at(chosen)


def _check_places(value: Located | None, known: Mapping[str, object] | set[str] | tuple[str, ...]) -> None:
    if value is not None:
        for name in places(value.text()):
            if name not in known:
                raise value.error(f"'{{{name}}}' is neither a resource, a build nor an axis{did_you_mean(name, known)}")


def _commands(fields: Mapping[str, Located], known: set[str]) -> list[str]:
    commands = []
    for value in fields['commands'].items() if 'commands' in fields else []:
        _check_places(value, known)
        try:
            words = shlex.split(value.text())
        except ValueError as error:
            raise value.error(f'not a command ({error}): check its quotes') from error
        if words[:2] != ['python', '-m'] or len(words) < 3:
            raise value.error("expected a command that begins with 'python -m MODULE'")
        commands.append(value.text())
    return commands


def _needs(fields: Mapping[str, Located], known: set[str]) -> list[str]:
    """What is named under `needs`, and in braces elsewhere."""
    listed = fields['needs'].items() if 'needs' in fields else []
    for value in listed:
        if value.text() not in known:
            raise value.error(f"'{value.text()}' is neither a resource nor a build{did_you_mean(value.text(), known)}")
    found = [value.text() for value in listed]
    texts = [*(value.text() for value in (fields['commands'].items() if 'commands' in fields else []))]
    texts += [fields[name].text() for name in ('run', 'qrels', 'table', 'path') if name in fields]
    found += [name for text in texts for name in places(text)]
    return [name for name in dict.fromkeys(found) if name not in FOLDERS]


def _build(name: str, value: Located, known: set[str]) -> Build:
    fields = value.fields()
    _check_places(fields['path'], FOLDERS)
    for axis, label in value.axes.items():
        name = name.replace(f'{{{axis}}}', label)
    needs = [need for need in _needs(fields, {*known, name}) if need != name]
    return Build(name, fields['path'].text(), _commands(fields, {*known, name}), needs)


def _condition(value: Located, names: Names, known: set[str]) -> Condition:
    fields = value.fields()
    for name in ('run', 'qrels', 'table'):
        _check_places(fields.get(name), known)
    texts = {name: fields[name].text() for name in ('run', 'qrels', 'table', 'heavy') if name in fields}
    if ('run' in texts) != ('qrels' in texts) or ('run' in texts and 'table' in texts):
        raise value.error('expected run and qrels, or table')
    expected = read_scores(fields.get('expected'), names, 'table' in texts, recorded=False)
    recorded = read_scores(fields.get('recorded'), names, False, recorded=True)
    if not expected and not recorded:
        raise value.error('expected scores are missing here: give expected or recorded')
    if expected and not {'run', 'table'} & set(texts):
        raise value.error('run and qrels, or table, is missing here: where are the expected scores measured?')
    return Condition(
        fields['name'].text(), value.line, _commands(fields, known), _needs(fields, known),
        expected=expected, recorded=recorded, **texts,
    )  # fmt: skip
