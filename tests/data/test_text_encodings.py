"""Texts in other encodings than UTF-8 are read by the one that is detected."""

import pytest

from pyserini_repbert.data.text_encodings import decode_text
from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.names.corpora import open_corpus

TEXTS = {
    'cp1252': 'Die Äpfel sind größer – “sagte” er; das kostet 5 €.',
    'cp1251': 'Это обычный русский текст о помидорах и огурцах.',
    'cp1250': 'Zażółć gęślą jaźń. W ogrodzie rosną pomidory.',
    'cp1253': 'Καλημέρα κόσμε, σήμερα φυτεύουμε ντομάτες.',
    'koi8_r': 'Привет, мир. Это обычный русский текст.',
    'shift_jis': 'これは日本語の文章です。トマトを植えましょう。',
    'gb18030': '这是一个关于番茄的中文文档。',
    'euc_kr': '안녕하세요 토마토를 심읍시다.',
}


@pytest.mark.parametrize('encoding', TEXTS)
@pytest.mark.parametrize('before', ['', 'English words come before. ' * 20])
def test_an_encoding_is_detected(encoding, before):
    text = before + TEXTS[encoding]
    decoded = decode_text(text.encode(encoding))
    assert (decoded.text, decoded.encoding) == (text, encoding)


@pytest.mark.parametrize(
    'text',
    [
        'café au lait is served at the garden shop, déjà vu',
        'Ça va très bien, où êtes-vous allé hier soir à Noël?',
        'Straße und Grün, Müller schläft',
    ],
)
def test_a_short_text_is_in_the_usual_encoding(text):
    assert decode_text(text.encode('cp1252')).text == text


@pytest.mark.parametrize('encoding', ['utf-8', 'utf-8-sig', 'utf-16'])
def test_unicode_needs_no_detection(encoding):
    decoded = decode_text('Café\nau lait'.encode(encoding))
    assert (decoded.text, decoded.encoding) == ('Café\nau lait', '')


@pytest.mark.parametrize(
    ('raw', 'reason'),
    [
        ('Die Äpfel sind größer'.encode()[:-3], 'damaged UTF-8'),
        (b'\x89PNG\r\n\x1a\n\0\0\0', 'zero'),
        (b'\xff\xfe\xff', 'not valid UTF-16'),
        (bytes(range(128, 256)) * 4, 'or no text'),
    ],
)
def test_what_is_no_text(raw, reason):
    with pytest.raises(UnreadableFile, match=reason):
        decode_text(raw)


def test_files_of_other_encodings_are_read_and_named(tmp_path):
    """They were refused, or not read."""
    (tmp_path / 'a.md').write_bytes('# Café\n\nDie Äpfel'.encode('cp1252'))
    (tmp_path / 'b.csv').write_bytes('id,text\n1,größer\n'.encode('cp1252'))
    (tmp_path / 'c.py').write_bytes('# für Бob'.encode())
    corpus = open_corpus(tmp_path, keep_empty=True)
    assert [(item.docid, item.title, item.text) for item in corpus.documents()] == [
        ('a.md', 'Café', 'Die Äpfel'),
        ('b.csv#1', '', 'größer'),
        ('c.py', 'c.py', '# für Бob'),
    ]
    assert corpus.encodings == {tmp_path / 'a.md': 'cp1252', tmp_path / 'b.csv': 'cp1252'}
