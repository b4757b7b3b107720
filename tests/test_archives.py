"""Archives of strangers: what they unpack to has a limit, and each oddity is one line."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile

import pytest

from pyserini_repbert import archives
from pyserini_repbert.archives import archive_members
from pyserini_repbert.data.deliveries import TrecDisksCorpus
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import open_binary
from pyserini_repbert.models.convert.pytorch import unpacked
from pyserini_repbert.names.corpora import _unpack, open_corpus
from pyserini_repbert.regression.fetching import unpack
from pyserini_repbert.systems.duobert.saved_scores import read_saved_scores

HUGE = 10**15
ZEROS = bytes(1_000_000)


@pytest.fixture
def low(monkeypatch):
    """The limit of unpacked bytes, for small archives: 1,000 and 200 times their size."""
    monkeypatch.setattr(archives, 'FREE_BYTES', 1000)


def tar_of(*members, form=tarfile.PAX_FORMAT):
    """The bytes of a tar archive: (name, content, PAX headers) of each member."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode='w', format=form) as tar:
        for name, content, headers in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.pax_headers = headers
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def zip_of(**contents):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w', zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return packed.getvalue()


def gnu_sparse():
    """A tar with GNU's old form of a sparse file, of 10^15 bytes."""
    header = bytearray(tarfile.TarInfo('a.txt').tobuf(tarfile.GNU_FORMAT))
    header[156:157] = tarfile.GNUTYPE_SPARSE
    # Where the only block of data is, how long it is, and the size of the whole.
    header[386:410] = b'%011o\0%011o\0' % (0, 0)
    header[483:495] = b'\x80' + HUGE.to_bytes(11, 'big')
    header[148:156] = b' ' * 8
    header[148:156] = b'%06o\0 ' % sum(header)
    return bytes(header) + bytes(1024)


def pax_sparse(**headers):
    """A tar with a sparse file in one of PAX's forms."""
    named = {f'GNU.sparse.{name}': value for name, value in headers.items()}
    return tar_of(('a.txt', b'1\n0\n1\n'.ljust(512, b'\0') + b'x', named))


def chained_headers(n_headers):
    """A tar in which each PAX header is followed by another."""
    record = b'12 path=abc\n'.ljust(512, b'\0')
    header = tarfile.TarInfo('x')
    header.type = tarfile.XHDTYPE
    header.size = 12
    return (header.tobuf() + record) * n_headers


def read_all(path):
    return [(member.name, len(member.stream.read())) for member in archive_members(path)]


SPARSE = {
    'GNU': gnu_sparse(),
    'PAX 0.0': pax_sparse(size=str(HUGE), numblocks='1', offset='0', numbytes='1'),
    'PAX 0.1': pax_sparse(size=str(HUGE), numblocks='1', map='0,1'),
    'PAX 1.0': pax_sparse(major='1', minor='0', realsize=str(HUGE), name='a.txt'),
}


@pytest.mark.parametrize('packed', SPARSE.values(), ids=SPARSE)
def test_sparse_members_are_refused_everywhere(packed, tmp_path):
    path = tmp_path / 'a.tar'
    path.write_bytes(packed)
    for how in ('member *', 'members *', 'candidates *'):
        with pytest.raises(DamagedFileError, match='a sparse file'):
            unpack(how, [path], tmp_path / 'out')
    with pytest.raises(DamagedFileError, match='a sparse file'):
        _unpack(path, 'a.txt', tmp_path / 'out')
    assert [item.name for item in tmp_path.iterdir()] == ['a.tar']


def test_sparse_pages_are_refused(tmp_path):
    path = tmp_path / 'pages.tar'
    path.write_bytes(gnu_sparse().replace(b'a.txt\0\0\0', b'a.html\0\0'))
    content = bytearray(path.read_bytes())
    content[148:156] = b' ' * 8
    content[148:156] = b'%06o\0 ' % sum(content[:512])
    path.write_bytes(content)
    with pytest.raises(InputError, match='a sparse file'):
        list(open_corpus(path, 'html'))


ZEROS_IN_TAR = tar_of(('a.html', ZEROS, {}), ('b.html', b'b', {}))
BOMBS = {
    'zip': zip_of(**{'a.html': ZEROS}),
    'tar.gz': gzip.compress(ZEROS_IN_TAR),
    'tar.bz2': bz2.compress(ZEROS_IN_TAR),
    'tar.xz': lzma.compress(ZEROS_IN_TAR),
}


@pytest.mark.parametrize(('suffix', 'packed'), BOMBS.items(), ids=BOMBS)
def test_what_is_unpacked_has_a_limit(suffix, packed, low, tmp_path):
    path = tmp_path / f'a.{suffix}'
    path.write_bytes(packed)
    # Of a member that is passed over, too.
    for pattern in ('a.html', 'b.html'):
        with pytest.raises(DamagedFileError, match='unpacks to more than 200 times its size'):
            unpack(f'member {pattern}', [path], tmp_path / 'out')
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


def test_the_usual_limit_lets_zeros_through(tmp_path):
    path = tmp_path / 'a.tar.gz'
    path.write_bytes(BOMBS['tar.gz'])
    assert read_all(path) == [('a.html', len(ZEROS)), ('b.html', 1)]


def test_a_long_header_is_not_read_into_memory(tmp_path):
    header = tarfile.TarInfo('x')
    header.type = tarfile.GNUTYPE_LONGNAME
    header.size = HUGE
    path = tmp_path / 'a.tar'
    path.write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(512))
    with pytest.raises(DamagedFileError, match='has a part of 1,000,0'):
        read_all(path)


def test_pages_corpora_and_checkpoints_have_the_limit(low, tmp_path):
    pages = tmp_path / 'pages.tar.gz'
    pages.write_bytes(BOMBS['tar.gz'])
    with pytest.raises(InputError, match='unpacks to more'):
        list(open_corpus(pages, 'html'))
    text = tmp_path / 'text.md.gz'
    text.write_bytes(gzip.compress(ZEROS))
    with pytest.raises(InputError, match='unpacks to more'), open_binary(text) as stream:
        stream.read()
    disks = tmp_path / 'disks'
    disks.mkdir()
    (disks / 'fr940101.0z').write_bytes(gzip.compress(b'<DOC>' + ZEROS))
    with pytest.raises(InputError, match='unpacks to more'):
        list(TrecDisksCorpus('disks', [disks / 'fr940101.0z'], 'refuse', False))
    checkpoint = tmp_path / 'checkpoint.zip'
    checkpoint.write_bytes(zip_of(**{'folder/vocab.txt': ZEROS}))
    with pytest.raises(DamagedFileError, match='unpacks to more'):
        unpacked(checkpoint, tmp_path / 'out')
    scores = tmp_path / 'scores.npz'
    scores.write_bytes(zip_of(**{'names.npy': ZEROS}))
    with pytest.raises(InputError, match='holds no saved scores'):
        read_saved_scores(scores)
    assert not (tmp_path / 'out').exists()


def encrypted():
    content = bytearray(zip_of(a=b'secret'))
    for signature, place in ((b'PK\3\4', 6), (b'PK\1\2', 8)):
        content[content.index(signature) + place] |= 1
    return bytes(content)


def packed_by_method(number):
    content = bytearray(zip_of(a=b'secret'))
    for signature, place in ((b'PK\3\4', 8), (b'PK\1\2', 10)):
        struct.pack_into('<H', content, content.index(signature) + place, number)
    return bytes(content)


ODD = {
    'an encrypted zip': encrypted(),
    'an unknown method': packed_by_method(99),
    'a method of another library': packed_by_method(14),
    'a zip without its end': zip_of(a=ZEROS)[:200],
    'a file before the beginning': zip_of(a=b'x')[:-6] + b'\xff\0\0\0\0\0',
    'no archive': b'PK' + bytes(100),
    'nothing': b'',
    'a page': b'<html>',
    'a header of PAX without numbers': pax_sparse(size='abc', map='x'),
    'half a map': pax_sparse(size='9', map='1'),
    'a size of 5,000 digits': pax_sparse(major='1', minor='0', realsize='9' * 5000),
    'headers upon headers': chained_headers(3000),
    'a header of length 0': tar_of(('a', b'x', {'comment': 'y'})).replace(b'13 comm', b'00 comm'),
    'half of a tar': gzip.compress(tar_of(('a', ZEROS, {})))[:600],
}


@pytest.mark.parametrize('packed', ODD.values(), ids=ODD)
def test_an_odd_archive_is_one_line(packed, tmp_path):
    path = tmp_path / 'odd'
    path.write_bytes(packed)
    with pytest.raises(DamagedFileError) as raised:
        unpack('members *', [path], tmp_path / 'out')
    assert str(path) in str(raised.value) and '\n' not in str(raised.value)
    assert not (tmp_path / 'out').exists()


def test_members_of_one_name_are_refused(tmp_path):
    path = tmp_path / 'two.tar'
    path.write_bytes(tar_of(('a/run.txt', b'1', {}), ('b/run.txt', b'2', {})))
    with pytest.raises(DamagedFileError, match=r'holds a/run\.txt and b/run\.txt, which have one'):
        unpack('members *', [path], tmp_path / 'out')
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize('name', ['..', 'x/..', '/', 'a\x1bb'])
def test_a_member_is_put_into_the_folder_or_refused(name, tmp_path):
    path = tmp_path / 'a.zip'
    path.write_bytes(zip_of(**{name: b'x'}))
    try:
        unpack('members *', [path], tmp_path / 'out')
    except DamagedFileError as error:
        assert str(path) in str(error)
    assert {item.name for item in tmp_path.iterdir()} <= {'a.zip', 'out'}
