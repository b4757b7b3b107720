"""ir-metadata: how a run was made, as YAML that other projects read.

It is the header of a run file (https://www.ir-metadata.org/metadata/overview/, schema 0.1, read by
repro_eval), or a file beside the run, in a folder as TIRA and TIREx take it. All of it comes from
the run's record, and from what a user adds.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import IO, Any

import yaml

from pyserini_repbert.data.run_parser import HEADER_END, HEADER_START, line_blocks
from pyserini_repbert.data.runs import RunFormat, run_format
from pyserini_repbert.data.yaml_files import read_yaml
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, atomic_file, atomic_folder
from pyserini_repbert.folder_forms import FolderForm
from pyserini_repbert.record import CODE, Input, Record, read_record

SCHEMA_VERSION = 0.1
# The files of TIRA's folder.
RUN_FILE = 'run.txt'
METADATA_FILE = 'ir-metadata.yml'
TIRA_FORM = FolderForm('folder for TIRA', (r'run\.txt', r'ir-metadata\.yml'))
# Names in `versions`: the toolkits, and those that are not Python packages.
_TOOLKITS = ('pyserini_repbert', 'pyserini')
# The name of tirex-tracker, and what it measures about a platform.
_TRACKER = 'tirex-tracker'
_TRACKED = ('hardware', 'operating system')
# Roles of rankings; if there are none, of the searched indexes.
_RUNS = ('run', 'runs')
_INDEXES = ('index', 'sparse')
# The setting of a command that says how several rankings are fused.
_FUSION_SETTINGS = {'search': 'fusion', 'fusion': 'method'}
# Beginnings of texts that YAML 1.1 and YAML 1.2 may read as different numbers.
_NUMERIC = '0123456789+-.'


def read_metadata(run: StrPath, *additions: StrPath) -> dict[str, Any]:
    """The metadata of a run, by component of the schema.

    Parameters
    ----------
    run : a TREC run with its record beside it
    additions : YAML files of what no record has: `actor`, `research goal`, …; and files
        of tirex-tracker, whose hardware and resources are read

    Raises InputError for a run of another format or without a record, and for an addition that the
    record has, too.
    """
    if run_format(run) != RunFormat.TREC:
        raise InputError(
            f'{run} is in the format of MS MARCO, and ir-metadata describes TREC runs: '
            'write it as a TREC run'
        )
    record = read_record(run)
    if record is None:
        raise InputError(
            f'{run} has no record, or has changed since: run the command again that wrote it'
        )
    metadata: dict[str, Any] = {'schema-version': SCHEMA_VERSION}
    tag = _tag(run)
    if tag:
        metadata['tag'] = tag
    metadata |= _components(record)
    for path in additions:
        _add(metadata, _tracked(_read_additions(path)), path)
    return metadata


def check_fields(metadata: Mapping[str, Any], skeleton: StrPath) -> None:
    """Raise InputError, naming them all, for fields of a skeleton that metadata lack.

    Parameters
    ----------
    metadata : of a run
    skeleton : a YAML file with the fields that the organisers of a task require; its values do not
        count
    """
    wanted = _read_additions(skeleton)
    missing = list(_missing(metadata, wanted))
    if missing:
        raise InputError(
            f'{skeleton} has fields that the metadata lack: {", ".join(missing)}: add them',
            parameters=('add',),
        )


def _missing(metadata: Any, wanted: Any, path: str = '') -> Iterator[str]:
    """The paths of the fields that are lacking, as in 'actor.team'.

    What a list wants is in one of the items or in another.
    """
    if isinstance(wanted, Mapping):
        known = metadata if isinstance(metadata, Mapping) else {}
        for key, value in wanted.items():
            below = f'{path}.{key}' if path else str(key)
            if known.get(key) is None:
                yield below
            else:
                yield from _missing(known[key], value, below)
    elif isinstance(wanted, list):
        joined: dict[str, Any] = {}
        for item in metadata if isinstance(metadata, list) else []:
            joined |= item if isinstance(item, Mapping) else {}
        for item in wanted:
            yield from _missing(joined, item, path)


def write_annotated(run: StrPath, metadata: Mapping[str, Any], output: StrPath) -> None:
    """Write a copy of a run with its metadata as the header."""
    with atomic_file(output, 'wb') as stream:
        stream.write(HEADER_START + b'\n')
        for line in _yaml_text(metadata).splitlines():
            stream.write(f'# {line}\n'.encode())
        stream.write(HEADER_END + b'\n')
        _copy_lines(run, stream)


def write_tira_folder(
    run: StrPath, metadata: Mapping[str, Any], folder: StrPath, overwrite: bool = False
) -> None:
    """Write a folder with a copy of the run and its metadata, named as TIRA expects them."""
    with atomic_folder(folder, TIRA_FORM if overwrite else None) as unfinished:
        with open(unfinished / RUN_FILE, 'wb') as stream:
            _copy_lines(run, stream)
        (unfinished / METADATA_FILE).write_text(_yaml_text(metadata), encoding='utf-8')


def _copy_lines(run: StrPath, stream: IO[bytes]) -> None:
    """Copy a run's lines, without the header that it may have."""
    for _, block in line_blocks(run):
        stream.write(block)


def _tag(run: StrPath) -> str:
    """The last value of a run's first line; '' for a run without hits."""
    for _, block in line_blocks(run):
        for line in block.splitlines():
            values = line.split()
            if values:
                return values[-1].decode('utf-8', 'backslashreplace')
    return ''


def _components(record: Record) -> dict[str, Any]:
    """What a record says of platform, implementation, method and data."""
    return {
        'platform': {'software': _software(record)},
        'implementation': {'executable': {'cmd': shlex.join(record.command)}},
        'method': _method(record),
        'data': _data(record),
    }


def _software(record: Record) -> dict[str, list[str]]:
    """The libraries and toolkits, each as NAME==VERSION."""
    software: dict[str, list[str]] = {'libraries': [], 'retrieval toolkit': []}
    for name, version in record.versions.items():
        if name == CODE:
            continue
        kind = 'retrieval toolkit' if name in _TOOLKITS else 'libraries'
        software[kind].append(f'{name}=={version}')
    return software


def _method(record: Record) -> dict[str, Any]:
    """The stages, and what the schema has no names for: checkpoints, and all other settings."""
    method: dict[str, Any] = {'retrieval': list(_stages(record))}
    models = [asdict(model) for model in record.models]
    if models:
        method['models'] = models
    settings = {name: value for name, value in record.settings.items() if value not in (None, [])}
    if settings:
        method['settings'] = settings
    return method


def _stages(record: Record) -> Iterator[dict[str, Any]]:
    """What was searched or ranked, how it was fused, and each reranker with its input."""
    ranked = _names(record, _RUNS) or _names(record, _INDEXES)
    for name in ranked:
        yield {'name': name}
    last = ranked[0] if len(ranked) == 1 else ''
    fusion = record.settings.get(_FUSION_SETTINGS.get(record.name, ''))
    if len(ranked) > 1 and fusion:
        last = str(fusion)
        yield {'name': last, 'interpolates': ranked}
    for stage in record.settings.get('stages') or ():
        yield {'name': stage, 'reranks': last} if last else {'name': stage}
        last = str(stage)


def _names(record: Record, roles: tuple[str, ...]) -> list[str]:
    return [given.name for given in record.inputs if given.role in roles]


def _data(record: Record) -> dict[str, Any]:
    """The topics, and all other inputs with their checksums."""
    data: dict[str, Any] = {}
    topics = record.input('topics')
    if topics is not None:
        data['test collection'] = {'topics': topics.name}
    data['other'] = [_resource(given) for given in record.inputs]
    return data


def _resource(given: Input) -> dict[str, str]:
    resource = {'name': given.role, 'source': given.name}
    if given.sha256 is not None:
        resource['sha256'] = given.sha256
    return resource


def _read_additions(path: StrPath) -> dict[str, Any]:
    """The components in a user's file. Raises InputError for a file that is not a mapping."""
    value = read_yaml(path, 'file of metadata').value
    if not isinstance(value, dict):
        raise InputError(
            f"{path}: expected components of ir-metadata, such as 'actor: {{team: …}}'"
        )
    return value


def _tracked(additions: dict[str, Any]) -> dict[str, Any]:
    """The tirex-tracker measurements that a record does not have; other additions completely."""
    platform: Any = additions.get('platform')
    software: Any = platform.get('software') if isinstance(platform, dict) else None
    if not isinstance(software, dict) or _TRACKER not in software:
        return additions
    taken: dict[str, Any] = {
        'platform': {name: platform[name] for name in _TRACKED if name in platform}
    }
    if 'resources' in additions:
        taken['resources'] = additions['resources']
    taken['platform']['software'] = {'libraries': [f'{_TRACKER}=={software[_TRACKER]}']}
    return taken


def _add(metadata: dict[str, Any], additions: Mapping[str, Any], path: StrPath) -> None:
    """Add a user's values to the record's; `path` is the user's file."""
    for key, value in additions.items():
        known = metadata.setdefault(key, value)
        if known is value:
            continue
        if isinstance(known, list) and isinstance(value, list):
            _add_items(known, value, path)
        elif isinstance(known, dict) and isinstance(value, Mapping):
            _add(known, value, path)
        else:
            raise InputError(f"{path}: the run and its record say '{key}' themselves: leave it out")


def _add_items(known: list[Any], items: Sequence[Any], path: StrPath) -> None:
    """Add to a list. If an item has the same name, add to that item."""
    for item in items:
        if item in known:
            continue
        name = item.get('name') if isinstance(item, Mapping) else None
        named = [each for each in known if isinstance(each, dict) and each.get('name') == name]
        if name is None or not named:
            known.append(item)
        else:
            _add(named[0], {key: value for key, value in item.items() if key != 'name'}, path)


class _Dumper(yaml.SafeDumper):
    """YAML that readers of YAML 1.1 (PyYAML) and 1.2 (ruamel.yaml) take for the same."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = '"' if text.startswith(tuple(_NUMERIC)) else None
    return dumper.represent_scalar('tag:yaml.org,2002:str', text, style)


_Dumper.add_representer(str, _represent_text)


def _yaml_text(metadata: Mapping[str, Any]) -> str:
    return yaml.dump(
        dict(metadata), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float('inf')
    )
