"""Files that are converted ahead of who asks for them."""

import threading
import time

import pytest
from folders import wait_until, write_files

from pyserini_repbert.collection.files import converting
from pyserini_repbert.collection.files.converting import FileConverter
from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.file_records import FileState
from pyserini_repbert.data.unread_files import UnreadableFile

NAMES = [f'{number}.docx' for number in range(6)]
SECONDS = 60


class Reader:
    """In the place of a reader of Office files: a file's text is its content."""

    read: list[str]
    closed: threading.Event

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def close(self):
        self.closed.set()

    def documents(self, file):
        self.read.append(file.docid)
        text = file.path.read_text()
        if text == 'broken':
            raise UnreadableFile('broken')
        if text == 'hangs':
            # As a process that is killed.
            self.closed.wait(SECONDS)
            raise UnreadableFile('its reader ended')
        if text == 'starts again':
            # As a process that starts after its reader was closed.
            self.closed.wait(SECONDS)
            self.closed.clear()
            self.closed.wait(SECONDS)
            raise UnreadableFile('its reader ended')
        file.note_encoding('cp1252' if text == 'Café' else '')
        yield Document(file.docid, text)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Six files, which `Reader` reads."""
    Reader.read = []
    Reader.closed = threading.Event()
    monkeypatch.setattr(converting, 'OfficeReader', Reader)
    write_files(tmp_path, {name: f'text {name}' for name in NAMES})
    return [FileToRead(tmp_path / name, name) for name in NAMES]


def converter_of(files, **settings):
    return FileConverter([('office', file) for file in files], **settings)


def texts_of(converter, files):
    return [document.text for file in files for document in converter.documents(file)]


def test_files_come_in_the_order_in_which_they_are_asked_for(files):
    with converter_of(files) as converter:
        wait_until(lambda: Reader.read == NAMES)  # nobody has asked yet
        assert texts_of(converter, files) == [f'text {name}' for name in NAMES]
    assert Reader.read == NAMES


def test_what_is_held_is_bounded(files, monkeypatch):
    monkeypatch.setattr(converting, '_MOST_HELD', len('text 0.docx'))
    with converter_of(files) as converter:
        wait_until(lambda: Reader.read == NAMES[:1])
        time.sleep(0.05)
        assert Reader.read == NAMES[:1]
        assert texts_of(converter, files) == [f'text {name}' for name in NAMES]


def test_more_files_than_are_held_by_several_threads(files, monkeypatch):
    """Each thread may hold a file more; the one that is asked for always has room."""
    monkeypatch.setattr(converting, '_MOST_HELD', 1)
    monkeypatch.setattr(converting, '_LONG_WAIT', -1)
    monkeypatch.setattr(converting, '_n_cores', lambda: 3)
    with converter_of(files) as converter:
        assert texts_of(converter, files) == [f'text {name}' for name in NAMES]
        assert len(converter._threads) == 3
        # Each has a process of 190 MB: the others end, and one that is asked for again has one.
        wait_until(lambda: [thread.is_alive() for thread in converter._threads] == [1, 0, 0])
        assert texts_of(converter, files[:1]) == ['text 0.docx']


def test_slow_files_after_many_fast_ones_get_another_process(files, monkeypatch):
    monkeypatch.setattr(converting, '_MOST_HELD', 1)
    monkeypatch.setattr(converting, '_n_cores', lambda: 2)
    with converter_of(files * 40) as converter, converter._changed:
        for _ in range(500):
            converter._note_wait(0.01)
        assert len(converter._threads) == 1
        for _ in range(8):
            converter._note_wait(0.2)
        assert len(converter._threads) == 2


def test_a_file_that_is_asked_for_again_is_read_again(files):
    with converter_of(files) as converter:
        texts_of(converter, files[:2])
        files[0].path.write_text('changed')
        assert texts_of(converter, files[:1]) == ['changed']
        assert texts_of(converter, files[2:]) == [f'text {name}' for name in NAMES[2:]]


def test_an_error_belongs_to_its_file(files):
    files[1].path.write_text('broken')
    with converter_of(files) as converter:
        assert texts_of(converter, files[:1]) == ['text 0.docx']
        with pytest.raises(UnreadableFile, match='broken'):
            texts_of(converter, files[1:2])
        assert texts_of(converter, files[2:3]) == ['text 2.docx']


def test_an_encoding_is_noted_once_its_file_is_asked_for(files):
    files[1].path.write_text('Café')
    with converter_of(files) as converter:
        wait_until(lambda: Reader.read == NAMES)
        texts_of(converter, files[:1])
        assert files[1].encodings == {}
        texts_of(converter, files[1:2])
    assert files[1].encodings == {files[1].path: 'cp1252'}


def test_a_file_is_looked_at_before_it_is_read(files):
    """So one that changes between is read again by the next sync."""
    before = FileState.of(files[0].path)
    with converter_of(files, looks=True) as converter:
        wait_until(lambda: Reader.read == NAMES)
        files[0].path.write_text('longer than it was before')
        assert converter.content_of(files[0]).state == before
        assert texts_of(converter, files[:1]) == ['text 0.docx']


@pytest.mark.parametrize('text', ['hangs', 'starts again'])
def test_whoever_stops_waits_for_no_file(files, text):
    files[1].path.write_text(text)
    began = time.monotonic()
    with converter_of(files) as converter:
        texts_of(converter, files[:1])
        wait_until(lambda: NAMES[1] in Reader.read)
    assert time.monotonic() - began < SECONDS
    assert Reader.read == NAMES[:2]


def test_nothing_starts_without_files():
    with converter_of([]) as converter:
        assert converter._threads == []
