import gzip
import os

import pytest

from pyserini_repbert import files
from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.files import atomic_file, atomic_folder, numbered_lines, open_binary
from pyserini_repbert.folder_forms import FolderForm


def test_numbered_lines(tmp_path):
    path = tmp_path / 'lines'
    path.write_bytes('\ufefferste\r\n\nzwölf\u2028x'.encode())
    assert list(numbered_lines(path, 'file')) == [(1, 'erste'), (2, ''), (3, 'zwölf\u2028x')]


@pytest.mark.parametrize('damage', ['truncated', 'changed', 'not gzip'])
def test_damaged_gzip(tmp_path, damage):
    data = bytearray(gzip.compress(os.urandom(4000)))
    if damage == 'truncated':
        del data[2000:]
    elif damage == 'changed':
        data[10] ^= 0x06  # the kind of the first block, which makes the stream invalid
    else:
        data[0] = 0
    (tmp_path / 'x.gz').write_bytes(data)
    with (
        pytest.raises(InputError, match=r'x\.gz is not a complete gzip file'),
        open_binary(tmp_path / 'x.gz') as stream,
    ):
        stream.read()


@pytest.mark.parametrize('name', ['deep/out.txt', 'deep/out.txt.gz'])
def test_atomic_file_appears_when_whole(tmp_path, name):
    path = tmp_path / name
    with atomic_file(path) as stream:
        stream.write('ü\n')
        assert not path.exists()
    read = gzip.decompress(path.read_bytes()) if name.endswith('.gz') else path.read_bytes()
    assert read == 'ü\n'.encode()
    assert len(list(path.parent.iterdir())) == 1


def test_same_content_same_gzip_bytes(tmp_path):
    for name in ('a.gz', 'b.gz'):
        with atomic_file(tmp_path / name, 'wb') as stream:
            stream.write(b'content')
    assert (tmp_path / 'a.gz').read_bytes() == (tmp_path / 'b.gz').read_bytes()


@pytest.mark.parametrize('mode', ['w', 'wb'])
@pytest.mark.parametrize('name', ['out', 'out.gz'])
def test_atomic_file_leaves_the_old_one_on_an_error(tmp_path, name, mode):
    (tmp_path / name).write_text('old')
    with pytest.raises(KeyError), atomic_file(tmp_path / name, mode) as stream:
        stream.write(b'new' if 'b' in mode else 'new')
        raise KeyError
    assert (tmp_path / name).read_text() == 'old'
    assert len(list(tmp_path.iterdir())) == 1


def test_atomic_file_follows_a_link(tmp_path):
    (tmp_path / 'real').write_text('old')
    (tmp_path / 'link').symlink_to(tmp_path / 'real')
    with atomic_file(tmp_path / 'link') as stream:
        stream.write('new')
    assert (tmp_path / 'link').is_symlink()
    assert (tmp_path / 'real').read_text() == 'new'


def test_atomic_file_writes_into_a_pipe(tmp_path):
    os.mkfifo(tmp_path / 'pipe')
    reader = os.open(tmp_path / 'pipe', os.O_RDONLY | os.O_NONBLOCK)
    with atomic_file(tmp_path / 'pipe') as stream:
        stream.write('text')
    assert os.read(reader, 100) == b'text'
    os.close(reader)
    assert [path.name for path in tmp_path.iterdir()] == ['pipe']


def test_atomic_folder(tmp_path):
    with atomic_folder(tmp_path / 'a' / 'folder') as temporary:
        (temporary / 'file').write_text('x')
        assert not (tmp_path / 'a' / 'folder').exists()
    assert (tmp_path / 'a' / 'folder' / 'file').read_text() == 'x'
    with pytest.raises(KeyError), atomic_folder(tmp_path / 'b') as temporary:
        (temporary / 'file').write_text('x')
        raise KeyError
    assert [path.name for path in tmp_path.iterdir()] == ['a']


FORM = FolderForm('folder of this test', ('old', 'new'))


@pytest.fixture
def old(tmp_path):
    """A folder with one file."""
    folder = tmp_path / 'folder'
    folder.mkdir()
    (folder / 'old').write_text('x')
    return folder


def test_a_folder_stays_if_the_new_one_fails(old):
    with pytest.raises(KeyError), atomic_folder(old, FORM) as temporary:
        (temporary / 'new').write_text('x')
        raise KeyError
    assert [path.name for path in old.iterdir()] == ['old']


def test_a_folder_behind_a_link_is_replaced_when_the_new_one_is_whole(old, tmp_path):
    (tmp_path / 'link').symlink_to('folder')
    with atomic_folder(tmp_path / 'link', FORM) as temporary:
        (temporary / 'new').write_text('x')
        assert [path.name for path in old.iterdir()] == ['old']
    assert [path.name for path in old.iterdir()] == ['new']
    assert sorted(path.name for path in tmp_path.iterdir()) == ['folder', 'link']


def test_a_folder_that_cannot_be_replaced_stays(old, tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(files, 'move', refuse)
    with pytest.raises(PyseriniRepbertError), atomic_folder(old, FORM):
        pass
    assert [path.name for path in old.iterdir()] == ['old']
    assert [path.name for path in tmp_path.iterdir()] == ['folder']


@pytest.mark.parametrize('write', [atomic_file, atomic_folder])
def test_a_link_to_nothing_is_no_output(tmp_path, write):
    (tmp_path / 'link').symlink_to('missing/out')
    with (
        pytest.raises(InputError, match='link is a link to missing/out, which does not exist'),
        write(tmp_path / 'link'),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ['link']
