"""A collection leads nowhere else: not by a link in it, and not by a name in its manifests."""

import contextlib
import hashlib
import json
import re
import shutil
import sqlite3

import pytest
from folders import tree

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.cleaning import clean
from pyserini_repbert.collection.copying import copy_collection
from pyserini_repbert.collection.generation import open_generation
from pyserini_repbert.collection.layout import collection_form
from pyserini_repbert.collection.shards import open_shard
from pyserini_repbert.collection.store import open_for_writing
from pyserini_repbert.errors import DamagedFileError, InputError

DOCUMENTS = [('a', 'the cat'), ('b', 'the mat')]


@pytest.fixture
def checkpoint(tiny_checkpoint):
    return str(tiny_checkpoint())


@pytest.fixture
def mine(tmp_path, checkpoint):
    sync(tmp_path / 'mine', checkpoint, DOCUMENTS)
    return tmp_path / 'mine'


def sync(folder, checkpoint, documents, **settings):
    with Collection.open(folder, encoder=checkpoint, sparse='none', **settings) as collection:
        return collection.sync(documents)


def is_refused(folder, checkpoint, message):
    """Whoever writes is refused, and so is a copy; `check` says it; nothing changes."""
    before = tree(folder)
    for work in (
        lambda: sync(folder, checkpoint, [('c', 'the sea')]),
        lambda: copy_collection(folder, folder.with_name('copy')),
        lambda: check_collection(folder),
    ):
        with pytest.raises((DamagedFileError, InputError), match=message):
            work()
    assert tree(folder) == before
    assert not folder.with_name('copy').exists()


@pytest.mark.parametrize('name', ['lucene', 'shards', 'generations', 'collection.sqlite'])
def test_a_writer_follows_no_link(mine, checkpoint, tmp_path, name):
    elsewhere = tmp_path / 'elsewhere'
    (mine / name).rename(elsewhere)
    (mine / name).symlink_to(elsewhere)
    if elsewhere.is_dir():
        for neighbour in ('photos', '000007'):
            (elsewhere / neighbour).mkdir()
            (elsewhere / neighbour / 'thesis.txt').write_text('ten years of work')
    before = tree(tmp_path)
    is_refused(mine, checkpoint, f'mine/{re.escape(name)} is a link, which no collection has')
    assert tree(tmp_path) == before


@pytest.mark.parametrize('name', ['lucene', 'shards'])
def test_cleaning_itself_follows_no_link(mine, tmp_path, name):
    shutil.rmtree(mine / name)
    (tmp_path / 'elsewhere' / '000007').mkdir(parents=True)
    (tmp_path / 'elsewhere' / '000007' / 'segments_1').write_text('of another program')
    (mine / name).symlink_to(tmp_path / 'elsewhere')
    with contextlib.closing(open_for_writing(mine)) as connection:
        clean(mine, connection, 1)
    assert list(tree(tmp_path / 'elsewhere')) == ['000007/segments_1']


@pytest.mark.parametrize(
    'name',
    [
        'thesis.txt',
        'evil.py',
        'lucene/photos/thesis.txt',
        'lucene/000009/thesis.txt',
        'shards/0123456789abcdef/thesis.txt',
        'shards/.unfinished/thesis.txt',
        'generations/000009.txt',
        'adapted/000001/evil.py',
        'ann/thesis.txt',
    ],
)
def test_what_is_no_part_of_a_collection(mine, checkpoint, name):
    (mine / name).parent.mkdir(parents=True, exist_ok=True)
    (mine / name).write_text('ten years of work')
    is_refused(mine, checkpoint, r'is not part of a collection: move it out of .*mine')


def test_lock_files_are_no_links(mine, checkpoint, tmp_path):
    (tmp_path / 'thesis.txt').write_text('ten years of work')
    (mine / '.writer.lock').unlink()
    (mine / '.writer.lock').symlink_to(tmp_path / 'thesis.txt')
    with pytest.raises(DamagedFileError, match=r'\.writer\.lock is a link'):
        sync(mine, checkpoint, DOCUMENTS)
    assert (tmp_path / 'thesis.txt').read_text() == 'ten years of work'


def test_a_collection_is_linked_as_a_whole(mine, checkpoint, tmp_path):
    mine.rename(tmp_path / 'disk')
    mine.symlink_to(tmp_path / 'disk')
    assert sync(mine, checkpoint, [*DOCUMENTS, ('c', 'the sea')]).added == 1
    assert check_collection(mine).startswith(f'{mine}: intact')
    assert collection_form().foreign_entry(mine) is None


def rewrite_manifest(folder, **values):
    """Let the manifest say so, with the checksum that it then has."""
    path = folder / 'generations' / '000001.json'
    content = json.dumps(json.loads(path.read_text()) | values).encode()
    path.write_bytes(content)
    with contextlib.closing(sqlite3.connect(folder / 'collection.sqlite')) as connection:
        sha256 = hashlib.sha256(content).hexdigest()
        connection.execute('UPDATE generations SET manifest_sha256 = ?', [sha256])
        connection.commit()


@pytest.mark.parametrize('parent', ['../../base/shards/', '/tmp/', './', ''])
def test_names_of_shards_lead_nowhere_else(mine, checkpoint, tmp_path, parent):
    manifest = open_generation(mine).manifest
    shard = manifest.shards[0]
    (mine / 'shards' / shard.name).rename(mine / 'shards' / ('f' * 15))
    name = f'{parent}{shard.name}' if parent else 'f' * 15
    shutil.copytree(mine, tmp_path / 'base')
    rewrite_manifest(mine, shards=[{'name': name, 'rows': shard.rows, 'dead': []}])
    with pytest.raises(DamagedFileError, match='is not the manifest of a generation'):
        open_generation(mine)
    with pytest.raises(DamagedFileError, match='cannot have a shard'):
        open_shard(mine / 'shards', name)


@pytest.mark.parametrize('name', ['../../other', '/tmp', '.', '', '000001/..'])
def test_names_of_lucene_folders_lead_nowhere_else(mine, name):
    rewrite_manifest(mine, lucene=name)
    with pytest.raises(DamagedFileError, match='is not the manifest of a generation'):
        open_generation(mine)


def test_a_record_of_a_shard_names_no_other_file(mine):
    shard = next((mine / 'shards').iterdir())
    record = json.loads((shard / 'shard.json').read_text())
    record['files'] |= {'../../../thesis.txt': '0' * 64}
    content = json.dumps(record).encode()
    (shard / 'shard.json').write_bytes(content)
    renamed = shard.rename(shard.with_name(hashlib.sha256(content).hexdigest()[:16]))
    with pytest.raises(DamagedFileError, match='is not the record of a shard'):
        open_shard(mine / 'shards', renamed.name)


def test_a_copy_does_not_lie_in_what_it_copies(mine):
    before = tree(mine)
    with pytest.raises(InputError, match='is inside the collection .*mine: give another folder'):
        copy_collection(mine, mine / 'copies' / 'copy')
    assert tree(mine) == before
