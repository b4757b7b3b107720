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
        link.type = kind
        link.linkname = '/etc/passwd'
        archive.addfile(link)
    return path


@pytest.mark.parametrize(
    'kind', [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE]
)
def test_links_in_archives(tmp_path, kind):
    path = tar_with_link(tmp_path / 'pages.tar.gz', kind=kind)
    if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
        with pytest.raises(InputError, match=r'not a whole archive .*etc/passwd'):
            passages(path)
    else:
        assert passages(path) == [Passage('one', 'x')]
    downloaded = tar_with_link(tmp_path / 'collection.tar.gz', 'collection.tsv', kind)
    with pytest.raises(DamagedFileError, match=r'holds no file collection\.tsv'):
        _unpack(downloaded, 'collection.tsv', tmp_path / 'out' / 'collection.tsv')
    assert not (tmp_path / 'out').exists()


def test_a_link_to_another_page_of_the_archive(tmp_path):
    with tarfile.open(tar_with_link(tmp_path / 'pages.tar'), 'w') as archive:
        (tmp_path / 'one.html').write_text('x')
        (tmp_path / 'two.html').symlink_to('one.html')
        archive.add(tmp_path / 'one.html', 'one.html')
        archive.add(tmp_path / 'two.html', 'two.html')
    assert passages(tmp_path / 'pages.tar') == [Passage('one', 'x'), Passage('two', 'x')]
