"""Formats that pandoc reads, and text whose name says nothing: all of it is read, or named."""

import json
import subprocess

import pytest
from folders import write_files

from pyserini_repbert.collection.files import plain_documents, planned_files
from pyserini_repbert.names.corpora import open_corpus

LATEX = (
    '\\documentclass{article}\\title{Beans}\\begin{document}\\maketitle\n'
    '\\section{Poles}\\label{poles}\nThey \\emph{twine}, $x^2$ times. \\input{secret}\n'
    '\\end{document}\n'
)
MANUAL = '.TH BEANS 1\n.SH NAME\nbeans \\- they \\fItwine\\fR\n'
BSD_MANUAL = '.Dd May 1, 2024\n.Dt BEANS 1\n.Os\n.Sh NAME\n.Nm beans\n.Nd they twine\n'


def documents_in(folder):
    return {document.docid: document for document in open_corpus(folder).documents()}


@pytest.mark.parametrize(
    ('name', 'content', 'title', 'text'),
    [
        ('a.tex', LATEX, 'Beans', 'Poles\n\nThey twine, x2 times.'),
        ('a.typ', '= Beans\nThey *twine*.', 'Beans', 'They twine.'),
        ('a.wiki', "They '''twine''' on [[Pole|poles]].", 'a', 'They twine on poles.'),
        ('a.rtf', '{\\rtf1\\ansi They {\\b twine}.}', 'a', 'They twine.'),
        ('a.dbk', '<article><para>They <emphasis>twine</emphasis>.</para></article>', 'a', ''),
        ('a.1', MANUAL, 'BEANS', 'NAME\n\nbeans - they twine'),
        ('a.3posix', BSD_MANUAL, 'BEANS', 'NAME\n\nbeans — they twine'),
    ],
)
def test_what_pandoc_reads(tmp_path, name, content, title, text):
    pytest.importorskip('pypandoc')
    write_files(tmp_path, {name: content, 'secret.tex': 'SECRET', 'b.md': 'x'})
    document = documents_in(tmp_path)[name]
    assert (document.title, document.text) == (title, text or 'They twine.')


def test_open_document(tmp_path):
    pypandoc = pytest.importorskip('pypandoc')
    path = tmp_path / 'a.odt'
    command = [pypandoc.get_pandoc_path(), '-f', 'markdown', '-o', str(path)]
    subprocess.run(command, input=b'# Beans\n\nThey *twine*.', check=True)
    document = documents_in(tmp_path)['a.odt']
    assert (document.title, document.text) == ('Beans', 'They twine.')


def test_headings_of_latex_have_their_labels(tmp_path):
    pytest.importorskip('pypandoc')
    (tmp_path / 'a.tex').write_text(LATEX)
    (heading,) = documents_in(tmp_path)['a.tex'].origin.headings
    assert (heading.title, heading.anchor) == ('Poles', 'poles')


def test_what_pandoc_refuses(tmp_path):
    """Text is read as it is written; what is not text is named."""
    pytest.importorskip('pypandoc')
    write_files(tmp_path, {'a.tex': '\\broken{', 'b.odt': 'no archive', 'c.tex': LATEX})
    corpus = open_corpus(tmp_path)
    documents = {document.docid: document.text for document in corpus.documents()}
    assert documents == {'a.tex': '\\broken{', 'c.tex': 'Poles\n\nThey twine, x2 times.'}
    assert str(corpus.unread) == 'not read: 1 .odt that cannot be read'


def test_without_pandoc(tmp_path, monkeypatch):
    monkeypatch.setattr(planned_files, 'can_read_pandoc', lambda: False)
    monkeypatch.setitem(planned_files._CAN_READ, 'pandoc', lambda: False)
    write_files(tmp_path, {'a.tex': '\\emph{Beans}', 'b.odt': 'x', 'c.1': MANUAL})
    corpus = open_corpus(tmp_path)
    documents = {document.docid: document.text for document in corpus.documents()}
    assert documents == {'a.tex': '\\emph{Beans}', 'c.1': MANUAL.strip()}
    assert str(corpus.unread) == "not read: 1 .odt (pip install '.[files]')"


def test_texts_without_a_suffix(tmp_path):
    contents = {
        'LICENSE': 'Free as beans.',
        'Grüße': 'Aus Münster'.encode('cp1252'),
        'core': b'\x7fELF\x00',
        'nothing': '',
        'version-1.2': 'x',
        'a.md': 'Beans.',
    }
    corpus = open_corpus(write_files(tmp_path, contents))
    documents = {document.docid: document.text for document in corpus.documents()}
    assert documents == {
        'LICENSE': 'Free as beans.',
        'Grüße': 'Aus Münster',
        'a.md': 'Beans.',
    }
    assert str(corpus.unread) == 'not read: 1 .2, 2 files without suffix'


def test_a_text_without_a_suffix_beside_records(tmp_path):
    """What tells about a corpus is not a document of it."""
    record = json.dumps({'id': 'd1', 'contents': 'Beans.'})
    corpus = open_corpus(write_files(tmp_path, {'a.jsonl': record, 'md5sums': 'abc  a.jsonl'}))
    assert [passage.docid for passage in corpus] == ['d1']
    assert str(corpus.unread) == 'not read: 1 file without suffix'


def test_a_log_says_what_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(plain_documents, '_MOST_LOG', 30)
    lines = [f'line {number}' for number in range(10)]
    write_files(tmp_path, {'short.log': 'one\ntwo\n', 'long.log': '\n'.join(lines)})
    documents = documents_in(tmp_path)
    assert documents['short.log'].text == 'one\ntwo'
    text = documents['long.log'].text
    assert text == '(42 B of older lines are left out.)\nline 6\nline 7\nline 8\nline 9'
    starts = documents['long.log'].origin.lines
    assert list(starts) == [(0, 6), (text.index('line 6'), 7)]
