"""What is read of PDF: columns, words that lines cut, and pages."""

import pytest

from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.office_documents import OfficeReader
from pyserini_repbert.collection.source_links import LinkTemplate
from pyserini_repbert.data.origins import Origin, PageStart
from pyserini_repbert.data.unread_files import UnreadableFile
from tests.collection.files.office_files import pdf, printed

pytest.importorskip('pypdfium2')


def document_of(tmp_path, raw):
    path = tmp_path / 'a.pdf'
    path.write_bytes(raw)
    with OfficeReader() as office:
        (document,) = office.documents(FileToRead(path, 'a.pdf'))
    return document


def lines_at(x, *lines):
    """Lines of 10 points as PDF draws them, from a place of the page."""
    return f'BT /F1 10 Tf 12 TL {x} 700 Td ' + ' '.join(f'({line}) Tj T*' for line in lines) + ' ET'


def test_columns_come_one_after_the_other(tmp_path):
    """Lines of both went together, without spaces between their words."""
    left = lines_at(72, 'Quinces ripen late and', 'keep until spring.')
    right = lines_at(320, 'Medlars are eaten when', 'they are soft.')
    text = document_of(tmp_path, printed(f'{left} {right}')).text
    assert ' '.join(text.split()) == (
        'Quinces ripen late and keep until spring. Medlars are eaten when they are soft.'
    )


def test_words_that_lines_cut_are_whole(tmp_path):
    lines = ('It has capabili-', 'ties, which are long-term: long-', 'term gains.')
    text = document_of(tmp_path, printed(lines_at(72, *lines))).text
    assert text.split() == 'It has capabilities, which are long-term: long-term gains.'.split()


def test_two_words_of_the_document_keep_their_hyphen(tmp_path):
    """'well-' and 'known' were 'wellknown'."""
    lines = ('He is well known, a well-', 'known cook in some over-', 'seas port, or overseas.')
    text = document_of(tmp_path, printed(lines_at(72, *lines, 'It is over; seas: none.'))).text
    assert ' '.join(text.split()).startswith(
        'He is well known, a well-known cook in some overseas port, or overseas.'
    )


def test_a_capital_behind_a_cut_begins_another_word(tmp_path):
    """'Jean-' and 'Paul' were one word, and so were a cut word and the foot of its page."""
    lines = ('By Jean-', 'Paul, of the Instruc-', 'Page 7')
    text = document_of(tmp_path, printed(lines_at(72, *lines))).text
    assert text.split() == ['By', 'Jean-Paul,', 'of', 'the', 'Instruc-Page', '7']


def test_pages_are_known(tmp_path):
    document = document_of(tmp_path, pdf('Quinces.', '', 'Medlars.', 'Pears.'))
    assert document.text == 'Quinces.\n\nMedlars.\n\nPears.'
    assert document.origin.pages == (PageStart(0, 1), PageStart(10, 3), PageStart(20, 4))
    assert [document.origin.anchor_at(at) for at in (0, 9, 10, 25)] == [
        'page=1',
        'page=1',
        'page=3',
        'page=4',
    ]


def test_pages_are_stored_and_link():
    origin = Origin('a.pdf', pages=(PageStart(0, 2),))
    assert Origin.parsed('a.pdf', origin.rendered()) == origin
    link = LinkTemplate.parsed('https://example.org/')
    assert link.address('a b.pdf', origin.anchor_at(0)) == 'https://example.org/a%20b.pdf#page=2'


def test_a_file_that_needs_a_password(tmp_path):
    """It was named as damaged."""
    key = '41' * 32
    encrypted = f'/Encrypt << /Filter /Standard /V 1 /R 2 /O <{key}> /U <{key}> /P -4 >>'
    raw = pdf('Quinces.').replace(b'/Root', f'{encrypted} /ID [<00> <00>] /Root'.encode())
    with pytest.raises(UnreadableFile, match='^it needs a password$'):
        document_of(tmp_path, raw)
