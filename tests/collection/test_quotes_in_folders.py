"""A reply in a folder of mails is without its quote of a mail that the folder has."""

import gzip
import time

import pytest
from folders import all_documents, write_files

from pyserini_repbert.collection.files import mail_threads
from pyserini_repbert.data import file_records
from pyserini_repbert.names.corpora import open_corpus

QUOTE = 'Ada wrote:\n> The key is in the porch.'
QUESTION = 'The key is in the porch.\n'
OWN = 'Which porch?'


def mail(identifier, body, answered=''):
    reply = f'In-Reply-To: <{answered}>\n' if answered else ''
    return f'From: Ada <a@x>\nSubject: Roof\n{reply}Message-ID:\n <{identifier}>\n\n{body}\n'


QUESTIONS = {'a.eml': mail('1', QUESTION)}
REPLIES = {'b.eml': mail('2', f'{OWN}\n\n{QUOTE}', '1')}


def texts(corpus):
    return {document.docid: document.text for document in corpus.documents()}


@pytest.fixture
def sync(open_collection, tmp_path, monkeypatch):
    """sync(files) -> the texts of a collection whose folder has these files alone.

    What a file has as before is not written again.
    """
    # A file that has just been written is looked at again.
    monkeypatch.setattr(file_records, '_CLOCK_STEP', 0)
    contents = {}

    def run(files):
        folder = tmp_path / 'docs'
        for name in contents.keys() - files.keys():
            (folder / name).unlink()
        write_files(
            folder, {name: text for name, text in files.items() if contents.get(name) != text}
        )
        contents.clear()
        contents.update(files)
        time.sleep(0.02)
        with open_collection() as collection:
            collection.sync(folder, delete_most=True)
            documents = all_documents(collection.generation)
            synced = {document.docid: document.text for document in documents}
        # As a new collection has them.
        assert synced == texts(open_corpus(folder))
        return synced

    return run


def test_a_reply_without_its_quote(tmp_path):
    folder = write_files(
        tmp_path / 'docs',
        {
            **QUESTIONS,
            **REPLIES,
            'c.eml': mail('3', f'Fine.\n\n{QUOTE}', 'elsewhere'),
            'd.eml': mail('4', f'Odd.\n\n{QUOTE}', '4'),
            'e.eml': f'From: Ada <a@x>\nReferences: <0@x>\n <2>\n\nNo.\n\n{QUOTE}',
            'note.md': 'cat',
        },
    )
    apple = mail('5', f'Yes.\n\n{QUOTE}', '6')
    (folder / 'f.emlx').write_text(f'{len(apple)}\n{apple}')
    (folder / 'g.eml.gz').write_bytes(gzip.compress(mail('6', QUESTION).encode()))
    assert texts(open_corpus(folder)) == {
        'a.eml': 'The key is in the porch.',
        'b.eml': OWN,
        'c.eml': f'Fine.\n\n{QUOTE}',
        'd.eml': f'Odd.\n\n{QUOTE}',
        'e.eml': 'No.',
        'f.emlx': 'Yes.',
        'g.eml.gz': 'The key is in the porch.',
        'note.md': 'cat',
    }


def test_a_mail_that_comes_after_its_reply(sync):
    assert sync({**REPLIES, 'note.md': 'cat'})['b.eml'] == f'{OWN}\n\n{QUOTE}'
    assert sync({**REPLIES, **QUESTIONS})['b.eml'] == OWN


def test_a_reply_that_comes_later(sync):
    sync(QUESTIONS)
    assert sync({**REPLIES, **QUESTIONS})['b.eml'] == OWN


def test_a_mail_that_is_removed(sync):
    sync({**REPLIES, **QUESTIONS})
    assert sync(REPLIES)['b.eml'] == f'{OWN}\n\n{QUOTE}'


def test_a_file_with_another_mail(sync):
    sync({**REPLIES, **QUESTIONS})
    assert sync({**REPLIES, 'a.eml': mail('17', 'A hen.')})['b.eml'] == f'{OWN}\n\n{QUOTE}'


def test_a_folder_without_changes_opens_no_mail(sync, monkeypatch):
    sync({**REPLIES, **QUESTIONS})
    opened = []
    read_head = mail_threads.read_head
    monkeypatch.setattr(
        mail_threads, 'read_head', lambda path: opened.append(path.name) or read_head(path)
    )
    sync({**REPLIES, **QUESTIONS})
    # The corpus with which the collection is compared has no records.
    assert opened == ['a.eml', 'b.eml']


@pytest.mark.parametrize(
    'raw', [b'', b'\n\n', b'no header', b'\x00\xff' * 90, b'Message-ID: \n\nx']
)
def test_files_without_a_head(tmp_path, raw):
    path = tmp_path / 'a.eml'
    path.write_bytes(raw)
    assert mail_threads.read_head(path) == mail_threads.MailHead()
    path = tmp_path / 'a.eml.gz'
    path.write_bytes(raw)
    assert mail_threads.read_head(path) == mail_threads.MailHead()
    assert mail_threads.read_head(tmp_path / 'none.eml') == mail_threads.MailHead()
