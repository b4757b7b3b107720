"""Manifests, and the records of shards and settings, with seeded mutations: refused by an error that names the file.

A manifest is mutated as it lies there ('stale': its checksum no longer fits, everything is refused), with a new
checksum ('signed'), or as earlier releases wrote it ('version 1'). What is accepted then is possible by the rules
written down here, and can be read to its end.
"""

from __future__ import annotations

import hashlib
import json
import random
import re

import indexes
import mutations
import pytest
from kill_at import tree

from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.index.check import check_index
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.index.manifest import SETTINGS, SHARD

OPENED = {'dense': (indexes.dense, DenseBundle), 'epic': (indexes.epic, EpicBundle)}
WEIRD = [
    None, True, False, 0, 1, -1, -7, 2, 3, 0.5, 1.0, 1e999, float('nan'), 10**18, 10**400, '', ' ', 'x', '0' * 64,
    'A' * 64, '../../etc', '\x00', 'ü' * 300, [], {}, [[]], [1], ['shard-00000'], {'a': 1}, {'docids.txt': '0' * 64},
    'float16', 'float64', 'uint8', 'all', 'blocks', 'dense', 'epic', 'shard-00001', 'shard-99999',
]  # fmt: skip
KEYS = ['new', 'sha256', 'count', 'vectors.npy', '../x']


def text_of(values) -> bytes:
    """JSON as the package writes it; what UTF-8 has no bytes for is escaped."""
    text = json.dumps(values, indent=1, ensure_ascii=False).replace(f'"{mutations.DEEP}"', '[' * 100_000)
    return f'{text}\n'.encode('utf-8', 'backslashreplace')


def mutated(values, chosen: random.Random) -> bytes:
    return text_of(mutations.mutated_values(values, chosen, WEIRD, KEYS))


def signed(raw: bytes) -> bytes:
    """With a checksum that fits, where the text ends like an object."""
    body = raw.removesuffix(b'\n}\n')
    return body + f',\n "sha256": "{hashlib.sha256(body).hexdigest()}"\n}}\n'.encode()


def is_hash(value) -> bool:
    return isinstance(value, str) and re.fullmatch('[0-9a-f]{64}', value) is not None


def is_whole(value, least=1) -> bool:
    return type(value) is int and value >= least


def possible(values, kind: str, version: int) -> bool:
    """Whether a bundle can have this manifest: the rules, in a few lines that share nothing with the reader."""
    settings, shards = values['settings'], values['shards']
    keys = {'settings', 'count', 'shards', 'kind', 'format_version'}
    if values.keys() != keys and not (version == 1 and values.keys() == keys - {'kind'}):
        return False
    whole = ['max_length', 'shard_size'] + (['dimension'] if kind == 'dense' else ['vocabulary'])
    hashes = ['weights_sha256'] + ([] if kind == 'dense' else ['vocabulary_sha256'])
    files = {'docids.txt'} | ({'texts.jsonl', 'texts.offsets.npy'} if settings['texts'] else set())
    if kind == 'dense':
        files |= {'vectors.npy'}
        words = {'pooling': ['mean'], 'dtype': ['float32', 'float16']}
    else:
        files |= {'weights.npy'} | ({'scales.npy'} if settings['weights'] == 'uint8' else set())
        files |= {'terms.npy', 'blocks.npy', 'offsets.npy'} if settings['layout'] == 'blocks' else set()
        words = {'variant': ['official', 'paper_strict', 'paper_mlm_head'], 'weights': ['float16', 'uint8']}
        words |= {'layout': ['blocks' if settings['prune'] else 'all']}
    words |= {'precision': ['float32', 'bfloat16', 'float16']}
    names = {'encoder', 'texts', *whole, *hashes, *words} | ({'prune'} if kind == 'epic' else set())
    optional = {'config_sha256', 'tokenizer_sha256'}
    sizes = [shard['count'] for shard in shards]
    full = [settings['shard_size']] * (len(sizes) - 1)
    return (
        names <= settings.keys() <= names | optional
        and all(settings.get(name) is None or is_hash(settings[name]) for name in optional)
        and values.get('kind', 'dense') == kind
        and values['format_version'] == version
        and all(is_whole(settings[name]) for name in whole)
        and (kind == 'dense' or is_whole(settings['prune'], 0))
        and all(is_hash(settings[name]) for name in hashes)
        and all(settings[name] in allowed for name, allowed in words.items())
        and isinstance(settings['encoder'], str)
        and settings['encoder'] != ''
        and type(settings['texts']) is bool
        and all(shard.keys() == {'folder', 'count', 'corpus_sha256', 'files'} for shard in shards)
        and [shard['folder'] for shard in shards] == [f'shard-{number:05d}' for number in range(len(shards))]
        and all(is_whole(size) for size in sizes)
        and sizes[:-1] == full
        and sizes[-1] <= settings['shard_size']
        and type(values['count']) is int
        and values['count'] == sum(sizes)
        and all(is_hash(shard['corpus_sha256']) and all(map(is_hash, shard['files'].values())) for shard in shards)
        and all(shard['files'].keys() == files for shard in shards)
    )


def read_all(bundle) -> None:
    """Everything that is in a bundle."""
    assert len(list(bundle.passages())) == len(bundle) == len([bundle.docid(row) for row in range(len(bundle))])
    if isinstance(bundle, EpicBundle):
        assert sum(len(some) for _, some in bundle.vectors()) == len(bundle)
    else:
        assert sum(len(some) for _, some in bundle.blocks(2)) == len(bundle)


@pytest.mark.parametrize('cases', [100, pytest.param(1500, marks=pytest.mark.slow)])
@pytest.mark.parametrize('kind', OPENED)
def test_mutated_manifests_are_refused_by_name(kind, cases, tmp_path):
    make, opened = OPENED[kind]
    index = make(tmp_path / 'index')
    path = index / 'manifest.json'
    whole = path.read_bytes()
    values = json.loads(whole)
    del values['sha256']
    assert possible(values, kind, 3) and signed(text_of(values)) == whole
    first = {'format_version': 1}
    path.write_bytes(text_of(values | first))
    read_all(opened(index))  # what earlier releases wrote
    chosen = random.Random(f'{kind} {cases}')
    failures, accepted = [], 0
    for number in range(cases):
        way = ('stale', 'stale bytes', 'signed', 'version 1', 'version 1 bytes')[number % 5]
        if way.startswith('stale'):
            values_too = values | {'sha256': json.loads(whole)['sha256']}
            raw = mutations.mutated(chosen, whole) if 'bytes' in way else mutated(values_too, chosen)
        elif way == 'signed':
            raw = signed(mutated(values, chosen))
        else:
            old = text_of(values | first)
            raw = mutations.mutated(chosen, old) if 'bytes' in way else mutated(values | first, chosen)
        path.write_bytes(raw)
        case = f'case {number} ({way})'
        try:
            bundle = opened(index)
            read_all(bundle)
            check_index(index)
        except PyseriniRepbertError as error:
            if str(index) not in str(error) or '\n' in str(error) or len(str(error)) > 1000:
                failures.append(f'{case}: {error}')
            continue
        except BaseException as error:
            failures.append(f'{case}: {type(error).__name__}: {error}: {raw[:300]!r}')
            continue
        if raw == whole:
            continue
        accepted += 1
        found = json.loads(raw)
        version = 2 if found.pop('sha256', None) else 1
        if (version == 2 and way != 'signed') or not possible(found, kind, version):
            failures.append(f'{case}: accepted: {raw[:300]!r}')
    print(f'{kind}: {cases} mutated manifests, {accepted} harmless, {len(failures)} failures')
    assert failures == []


@pytest.mark.parametrize('cases', [20, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize('name', [SETTINGS, SHARD])
@pytest.mark.parametrize('kind', OPENED)
def test_mutated_records_are_refused_when_resuming(kind, name, cases, tmp_path):
    """A run that goes on over a mutated record refuses it by name, or ends with the right bytes."""
    make, _ = OPENED[kind]
    index = make(tmp_path / 'index')
    whole = tree(index)
    path = index / ('' if name == SETTINGS else 'shard-00001') / name
    before = path.read_bytes()
    chosen = random.Random(f'{kind} {name}')
    failures = []
    for number in range(cases):
        raw = mutations.mutated(chosen, before) if number % 2 else mutated(json.loads(before), chosen)
        path.write_bytes(raw)
        try:
            make(index, resume=True)
            if tree(index) != whole:
                failures.append(f'case {number}: other bytes after {raw[:300]!r}')
        except PyseriniRepbertError as error:
            if str(index) not in str(error) or '\n' in str(error):
                failures.append(f'case {number}: {error}')
        except BaseException as error:
            failures.append(f'case {number}: {type(error).__name__}: {error}: {raw[:300]!r}')
        path.write_bytes(before)
        for changed, content in whole.items():
            if not changed.endswith('/') and (index / changed).read_bytes() != content:
                (index / changed).write_bytes(content)
    print(f'{kind} {name}: {cases} cases, {len(failures)} failures')
    assert failures == []
