"""Links in archives and folders are refused, or left out and counted."""

import io
import tarfile

import pytest
from folders import all_documents

from pyserini_repbert.collection import Collection
from pyserini_repbert.commands import command
from pyserini_repbert.commands.dispatcher import main
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
        with pytest.raises(InputError, match=r'not a complete archive .*etc/passwd'):
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


@pytest.fixture
def linked(tmp_path, monkeypatch):
    """Folders of each format, with links to a secret, to a folder elsewhere, and to a file here."""
    monkeypatch.chdir(tmp_path)
    secret = tmp_path / 'secret'
    secret.mkdir()
    contents = {
        '.md': 'root:x:0:0',
        '.html': '<p>root:x:0:0',
        '.jsonl': '{"id": "root", "contents": "x"}\n',
        '.tsv': 'root\tx\n',
        '.trec': '<DOC><DOCNO>root</DOCNO><TEXT>x</TEXT></DOC>\n',
    }
    for suffix, content in contents.items():
        (secret / f'passwd{suffix}').write_text(content)
        folder = tmp_path / suffix[1:]
        folder.mkdir()
        (folder / f'own{suffix}').write_text(content.replace('root', 'own'))
        (folder / f'link{suffix}').symlink_to(secret / f'passwd{suffix}')
        (folder / f'further{suffix}').symlink_to(f'../secret/passwd{suffix}')
        (folder / 'folder').symlink_to(secret)
        (folder / 'nowhere').symlink_to(tmp_path / 'nowhere')
    return tmp_path


UNREAD = 'not read: 1 link to nothing, 3 links that leave the folder'


@pytest.mark.parametrize('name', ['md', 'html', 'jsonl', 'tsv', 'trec'])
def test_links_that_leave_a_folder_are_left_out_and_counted(linked, name):
    corpus = open_corpus(linked / name)
    (passage,) = corpus
    assert passage.docid.startswith('own')
    assert str(corpus.unread) == UNREAD


def test_a_link_to_a_file_of_the_folder_is_one_of_its_files(linked):
    (linked / 'md' / 'same.md').symlink_to('own.md')
    (linked / 'whole').symlink_to('md')
    for folder in ('md', 'whole'):
        assert [passage.docid for passage in passages(folder)] == ['own.md', 'same.md']


def test_a_folder_of_links_alone(linked):
    (linked / 'md' / 'own.md').unlink()
    with pytest.raises(InputError, match=f'^folder .*md holds no .*; {UNREAD}'):
        open_corpus(linked / 'md', 'text')


def test_every_command_says_it(linked, tiny_checkpoint, capsys):
    encoder = str(tiny_checkpoint())
    lines = (
        f'index sync --corpus md --index mine --encoder {encoder} --sparse none',
        f'encode --corpus md --output dense --encoder {encoder}',
    )
    for line in lines:
        assert command.run(main, [*line.split(), '--quiet']) == 0
        assert capsys.readouterr().err == f'{UNREAD}\n'
    with Collection.open('mine') as collection:
        assert [document.docid for document in all_documents(collection.generation)] == ['own.md']
