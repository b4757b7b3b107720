import os
import subprocess
import sys

import pytest

from pyserini_repbert.checksums import remembered_digest
from pyserini_repbert.errors import BusyError
from pyserini_repbert.files import atomic_file, atomic_folder, locked, remove_leftovers
from pyserini_repbert.folder_forms import temporary_name


def test_a_lock_is_held_once_and_goes(tmp_path):
    path = tmp_path / 'x.lock'
    with locked(path, 'output x'):
        expected = f'output x is being written by process {os.getpid()} on host'
        with pytest.raises(BusyError, match=expected), locked(path, 'output x'):
            pass
    assert not path.exists()


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path):
    path = tmp_path / 'x.lock'
    code = (
        'import os, sys; from pathlib import Path; from pyserini_repbert.files import locked\n'
        'with locked(Path(sys.argv[1]), "x"): os._exit(0)'
    )
    subprocess.run([sys.executable, '-c', code, str(path)], check=True)
    assert path.exists()
    with locked(path, 'x'):
        assert path.read_text().split()[0] == str(os.getpid())
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_killed_writers_go_and_living_ones_stay(tmp_path):
    (tmp_path / temporary_name('out.txt')).write_text('left')
    folder = tmp_path / temporary_name('out.txt')
    folder.mkdir()
    (folder / 'file').write_text('left')
    others = ['.out.txt.20240101', '.out.txt.0123abcd.unfinished', temporary_name('other')]
    # Someone else's, which only looks alike.
    others.append(f'.out.txt.{"0123abcd" * 2}.unfinished')
    for name in others:
        (tmp_path / name).mkdir()
        (tmp_path / name / 'thesis.txt').write_text('another')
    with atomic_file(tmp_path / 'out.txt') as living:
        living.write('first')
        with atomic_file(tmp_path / 'out.txt') as second:
            second.write('second')
    assert (tmp_path / 'out.txt').read_text() == 'first'
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, 'out.txt'])
    with atomic_folder(tmp_path / 'made') as living_folder:
        remove_leftovers(tmp_path, 'made')
        assert living_folder.is_dir()


def test_a_remembered_checksum_ends_when_the_file_is_changed(tmp_path, monkeypatch):
    """Also where the file's time is set back; a damaged note is not believed, and no note is
    made of a new file.
    """
    path = tmp_path / 'x'
    memory = tmp_path / 'memory'
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(memory))
    path.write_bytes(b'abc')
    status = path.stat()
    assert remembered_digest(path).startswith('ba7816bf') and not memory.exists()
    monkeypatch.setattr('pyserini_repbert.checksums._TICK', -1)
    assert remembered_digest(path).startswith('ba7816bf')
    path.write_bytes(b'abd')
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert remembered_digest(path).startswith('a52d159f')
    for note in (memory / 'digests').iterdir():
        note.write_text('ba78')
    assert remembered_digest(path).startswith('a52d159f')
