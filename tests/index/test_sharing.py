from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.index import main
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.index.sharing import installed_folder
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.indexes import locate
from pyserini_repbert.search import RepBertSearcher


@pytest.fixture
def bundle(tiny_checkpoint: Callable[..., Path], corpus_file: Callable[..., Path], tmp_path: Path) -> Path:
    folder = tmp_path / 'bundle'
    encoder = RepBertDocumentEncoder(tiny_checkpoint())
    encode_corpus(open_corpus(corpus_file(20)), encoder, folder, store_text=True, shard_size=8)
    return folder


def publish(bundle: Path, output: Path, name: str = 'ours', *flags: str) -> int:
    return run(main, ['publish', '--index', str(bundle), '--name', name, '--output', str(output), '--quiet', *flags])


def install(entry: Path) -> int:
    return run(main, ['install', str(entry), '--quiet'])


@pytest.fixture
def shared(bundle: Path, tmp_path: Path) -> Path:
    assert publish(bundle, tmp_path / 'shared') == 0
    return tmp_path / 'shared' / 'ours.json'


def test_an_installed_index_is_found_by_name_and_answers_alike(bundle, shared, capsys):
    assert install(shared) == 0
    assert 'ours: 20 passages x 16 float32' in capsys.readouterr().out
    folder = locate('ours')
    assert folder == installed_folder('ours')
    expected, found = RepBertSearcher(bundle), RepBertSearcher(folder)
    assert found.search('red cat') == expected.search('red cat')
    assert found.texts(['d3']) == expected.texts(['d3'])
    entry = json.loads(shared.read_text())
    tarball = shared.with_name('ours.tar.gz').read_bytes()
    assert entry['md5'] == hashlib.md5(tarball).hexdigest() and entry['size'] == len(tarball)


def test_the_same_index_gives_the_same_bytes(bundle, shared, tmp_path):
    assert publish(bundle, tmp_path / 'again') == 0
    for name in ('ours.json', 'ours.tar.gz'):
        assert (tmp_path / 'again' / name).read_bytes() == shared.with_name(name).read_bytes()


def test_an_exported_index_is_shared_too(bundle, tmp_path):
    faiss = tmp_path / 'faiss'
    assert run(main, ['export', '--index', str(bundle), '--to-faiss', str(faiss), '--quiet']) == 0
    assert publish(faiss, tmp_path / 'shared', 'faiss-1') == 0
    assert install(tmp_path / 'shared' / 'faiss-1.json') == 0
    assert (installed_folder('faiss-1') / 'docid').read_bytes() == (faiss / 'docid').read_bytes()


def test_nothing_is_written_into_the_index(bundle, capsys):
    before = sorted(bundle.rglob('*'))
    for output in (bundle, bundle / 'new'):
        assert publish(bundle, output, 'mine') == 2
    assert run(main, ['export', '--index', str(bundle), '--to-faiss', str(bundle / 'faiss'), '--quiet']) == 2
    assert capsys.readouterr().err.count('lies in the index') == 3
    assert sorted(bundle.rglob('*')) == before


@pytest.mark.parametrize('name', ['../up', 'a/b', '', '-flag', 'demo', 'x' * 101])
def test_names_that_cannot_be_are_refused(bundle, tmp_path, capsys, name):
    assert publish(bundle, tmp_path / 'shared', f'{name}') == 2
    error = capsys.readouterr().err
    assert error.count('\n') == 1 and ('name' in error)
    assert not (tmp_path / 'shared').exists()


def _tarball(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode='w:gz') as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _file(name: str, content: bytes = b'x', **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(member, field, value)
    return member, content


LINK: dict[str, Any] = {'type': tarfile.SYMTYPE, 'linkname': '/etc/passwd'}


@pytest.mark.parametrize(
    ('tarball', 'message'),
    [
        pytest.param(_tarball(_file('ours/../../escaped')), 'which is no file of its index', id='above its index'),
        pytest.param(_tarball(_file('/escaped')), 'which is no file of its index', id='absolute path'),
        pytest.param(_tarball(_file('escaped')), 'which is no file of its index', id='no folder'),
        pytest.param(_tarball(_file('other/file')), 'which is no file of its index', id='another folder'),
        pytest.param(_tarball(_file('ours/link', b'', **LINK)), 'which is no file of its index', id='symbolic link'),
        pytest.param(
            _tarball(_file('ours/hard', b'', type=tarfile.LNKTYPE, linkname='ours/a')),
            'which is no file of its index',
            id='hard link',
        ),
        pytest.param(
            _tarball(_file('ours/device', b'', type=tarfile.CHRTYPE)), 'which is no file of its index', id='device'
        ),
        pytest.param(_tarball(_file('ours/a'), _file('ours/a')), 'twice', id='file twice'),
        pytest.param(_tarball(_file('ours/bomb', bytes(10**7))), 'more than its entry says', id='too large'),
        pytest.param(_tarball(_file('ours/manifest.json', b'{}')), 'manifest.json', id='damaged manifest'),
        pytest.param(_tarball(), 'not an index folder', id='empty'),
        pytest.param(b'no tarball', 'is no tarball', id='no gzip'),
        pytest.param(gzip.compress(b'x' * 600), 'is no tarball', id='no tar'),
    ],
)
def test_nothing_harmful_is_unpacked(shared, tmp_path, capsys, tarball, message):
    """The tarball is the one that the entry pins; its maker is not to be trusted for that."""
    entry = json.loads(shared.read_text())
    sums = {'md5': hashlib.md5(tarball).hexdigest(), 'sha256': hashlib.sha256(tarball).hexdigest()}
    shared.write_text(json.dumps(entry | sums | {'size': len(tarball), 'unpacked': 1000}))
    shared.with_name('ours.tar.gz').write_bytes(tarball)
    assert install(shared) == 2
    error = capsys.readouterr().err
    assert message in error and error.count('\n') == 1
    place = installed_folder('ours').parent
    assert list(place.iterdir()) == [] and not (place.parent / 'escaped').exists()


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'format': 2}, 'format 2, this release reads 1'),
        ({'name': '../x'}, 'cannot name an index'),
        ({'file': '../../x.tar.gz'}, "'ours.tar.gz' was expected"),
        ({'md5': 'x'}, 'no checksums'),
        ({'size': '3'}, 'size'),
        ({'url': 'file:///etc/passwd'}, 'is no address'),
        ({'sha256': '0' * 64}, 'is not the file that'),
        ({'holds': None}, 'holds'),
    ],
)
def test_damaged_entries_are_one_line(shared, capsys, change, message):
    shared.write_text(json.dumps(json.loads(shared.read_text()) | change))
    assert install(shared) == 2
    error = capsys.readouterr().err
    assert message in error and error.count('\n') == 1
    assert not installed_folder('ours').exists()


def test_what_is_missing_or_there_is_said(bundle, shared, tmp_path, capsys):
    assert install(tmp_path / 'none.json') == 2
    (tmp_path / 'words.json').write_text('[[[')
    assert install(tmp_path / 'words.json') == 2
    assert install(shared) == 0 and install(shared) == 2
    shared.with_name('ours.tar.gz').rename(tmp_path / 'moved')
    installed = installed_folder('ours')
    installed.rename(tmp_path / 'elsewhere')
    assert install(shared) == 2
    assert publish(bundle, shared.parent) == 2
    (bundle / 'manifest.json').write_text('{}')
    assert publish(bundle, tmp_path / 'damaged') == 2
    lines = capsys.readouterr().err.splitlines()
    expected = ['none.json', 'no entry of an index', 'is installed already', 'put it beside', 'exists', 'manifest.json']
    assert len(lines) == len(expected) and all(part in line for part, line in zip(expected, lines, strict=True))


def test_a_tarball_elsewhere_is_fetched(bundle, tmp_path, monkeypatch):
    from pyserini_repbert.index import sharing

    address = 'https://example.org/ours.tar.gz'
    assert publish(bundle, tmp_path / 'shared', 'ours', '--url', address) == 0
    tarball = tmp_path / 'shared' / 'ours.tar.gz'
    tarball.rename(tmp_path / 'remote')
    asked = []

    def fetch(url, target, md5, size, name):
        asked.append((url, md5))
        return tmp_path / 'remote'

    monkeypatch.setattr(sharing, 'fetch', fetch)
    assert install(tmp_path / 'shared' / 'ours.json') == 0
    assert asked == [(address, hashlib.md5((tmp_path / 'remote').read_bytes()).hexdigest())]
