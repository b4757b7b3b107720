"""Links in archives and folders of pages are refused, or skipped."""

import io
import tarfile

import pytest

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.names.corpora import _unpack, open_corpus


def passages(path, **options):
    return list(open_corpus(path, **options))


def tar_with_link(path, name='page.html', kind=tarfile.SYMTYPE):
    with tarfile.open(path, 'w:gz') as archive:
        whole = tarfile.TarInfo('one.html')
        whole.size = 1
        archive.addfile(whole, io.BytesIO(b'x'))
        link = tarfile.TarInfo(name)
        link.type, link.linkname = kind, '/etc/passwd'
        archive.addfile(link)
    return path


@pytest.mark.parametrize('kind', [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_links_in_archives(tmp_path, kind):
    path = tar_with_link(tmp_path / 'pages.tar.gz', kind=kind)
    with pytest.raises(InputError, match=r'pages\.tar\.gz:page\.html: no file with content but a link'):
        passages(path)
    assert passages(path, on_error='skip') == [Passage('one', 'x')]
    downloaded = tar_with_link(tmp_path / 'collection.tar.gz', 'collection.tsv', kind)
    with pytest.raises(DamagedFileError, match=r'holds no content but a link, or a folder, for collection\.tsv'):
        _unpack(downloaded, 'collection.tsv', tmp_path / 'out' / 'collection.tsv')
    assert not (tmp_path / 'out').exists()


def test_links_that_lead_nowhere_in_a_folder(tmp_path):
    (tmp_path / 'a.html').write_text('x')
    (tmp_path / 'b.html').symlink_to(tmp_path / 'none')
    with pytest.raises(InputError, match=r'b\.html: no file with content'):
        passages(tmp_path)
    assert passages(tmp_path, on_error='skip') == [Passage('a', 'x')]
