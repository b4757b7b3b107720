"""kill -9 at file events of index building: resumed or begun again, it ends with the bytes of
one never killed.
"""

import errno
import os
import re
import shutil
from pathlib import Path

import indexes
import kill_at
import pytest

from pyserini_repbert.encode.parts import EncodingPart, finish_parts, part_folder
from pyserini_repbert.encode.sharding import build_bundle


@pytest.mark.parametrize('make', [indexes.dense, indexes.epic])
def test_kills_while_a_bundle_is_written(make, tmp_path, share_of):
    """Without a model, in forks of this process."""
    folder = tmp_path / 'index'
    work = tmp_path / 'work'
    make(folder)
    whole = kill_at.tree(folder)
    work.mkdir()
    found = kill_at.run(lambda: make(work / 'index'), work)
    assert (found.status, len(found.points) > 60) == (0, True)
    for number in share_of(found.telling[1:], quick=8, slow=3):
        shutil.rmtree(work / 'index')
        assert kill_at.run(lambda: make(work / 'index'), work, at=number).killed
        make(work / 'index', resume=True)
        assert kill_at.tree(work / 'index') == whole, f'killed at {found.points[number]}'


def test_a_copy_is_what_a_kill_leaves(tmp_path):
    work = tmp_path / 'work'

    def start():
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()

    def make():
        indexes.dense(work / 'index')

    def left():
        files = kill_at.tree(work)
        # It says the number of a process.
        files.pop('index/.encoding.lock', None)
        # Names of unfinished files are random.
        return {re.sub('[0-9a-f]{16}', '', name): content for name, content in files.items()}

    start()
    whole = kill_at.run(make, work)
    points = whole.telling[::8]
    killed = {point: left() for point in kill_at.after_kills(make, work, points, start)}
    for point in kill_at.after_copies(make, work, points, start, tmp_path / 'copies'):
        assert left() == killed[point], whole.points[point]
    kinds = {whole.points[point].rpartition(' ')[0] for point in points}
    assert {'open before', 'open empty', 'open half'} <= kinds


def parts(folder, rename=True):
    """What a user calls to encode two parts and put them together, the first time and after
    every kill.
    """
    if not rename:
        Path.rename = Path.replace = os.rename = refused
    if (folder / 'manifest.json').exists():
        if list(folder.glob('part-*')):
            finish_parts(folder, type(indexes.DENSE))
        return
    if not all((folder / f'part-{index}-of-2/manifest.json').exists() for index in (0, 1)):
        for index in (0, 1):
            passages = indexes.PASSAGES[index::2]
            build_bundle(
                passages, part_folder(folder, EncodingPart(index, 2)), indexes.ENCODING, resume=True
            )
    finish_parts(folder, type(indexes.DENSE))


def refused(path, target, **_):
    """What a file system without renaming answers."""
    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(path))


@pytest.mark.parametrize('rename', [True, False])
def test_kills_of_parts(tmp_path, rename, share_of):
    """Where nothing can be renamed, parts are copied, and no kill is tried: only renaming is
    atomic.
    """
    work = tmp_path / 'work'
    folder = tmp_path / 'work/index'
    parts(tmp_path / 'whole')
    whole = kill_at.tree(tmp_path / 'whole')
    work.mkdir()
    found = kill_at.run(lambda: parts(folder, rename), work)
    assert (found.status, kill_at.tree(folder) == whole) == (0, True), found.output
    for number in share_of(found.telling[1:] if rename else [], quick=8, slow=3):
        shutil.rmtree(folder, ignore_errors=True)
        assert kill_at.run(lambda: parts(folder), work, at=number).killed
        again = kill_at.run(lambda: parts(folder), work)
        assert again.status == 0, f'killed at {found.points[number]}: {again.output}'
        (folder / '.encoding.lock').unlink(missing_ok=True)  # of a process killed when all was done
        assert kill_at.tree(folder) == whole, f'killed at {found.points[number]}'


def test_kills_while_an_index_is_replaced(tmp_path, share_of):
    work = tmp_path / 'work'
    folder = tmp_path / 'work/index'
    indexes.dense(tmp_path / 'whole')
    whole = kill_at.tree(tmp_path / 'whole')

    def old():
        shutil.rmtree(work, ignore_errors=True)
        build_bundle(indexes.PASSAGES[:3], folder, indexes.ENCODING)

    old()
    found = kill_at.run(lambda: indexes.dense(folder, overwrite=True), work)
    assert (found.status, kill_at.tree(folder) == whole) == (0, True), found.output
    for number in share_of(found.telling[1:], quick=8, slow=3):
        old()
        assert kill_at.run(lambda: indexes.dense(folder, overwrite=True), work, at=number).killed
        way = {'resume': True} if list(folder.glob('part-*')) else {'overwrite': True}
        indexes.dense(folder, **way)
        assert kill_at.tree(folder) == whole, f'killed at {found.points[number]}'
