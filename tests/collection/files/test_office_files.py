"""PDF, Office files and EPUB, which the extra `files` reads."""

from datetime import datetime

import pytest
from folders import write_files

from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.office_documents import OfficeReader
from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.names.corpora import open_corpus
from tests.collection.files.office_files import WRITERS, word_document

pytest.importorskip('markitdown')


def test_each_kind_is_read(tmp_path):
    sentences = {suffix: f'Snails avoid copper {suffix[1:]} tape.' for suffix in WRITERS}
    for suffix, writer in WRITERS.items():
        write_files(tmp_path, {f'a{suffix}': writer(sentences[suffix])})
    damaged = WRITERS['.docx']('x')[:100]
    write_files(tmp_path, {'b.docx': damaged, 'c.pdf': WRITERS['.pdf'](''), 'd.md': 'x'})
    corpus = open_corpus(tmp_path)
    documents = {document.docid: document for document in corpus.documents()}
    assert set(documents) == {'d.md', *(f'a{suffix}' for suffix in WRITERS)}
    for suffix, sentence in sentences.items():
        assert sentence in documents[f'a{suffix}'].text
        assert documents[f'a{suffix}'].title
    assert str(corpus.unread) == 'not read: 1 .docx that cannot be read, 1 .pdf without text'


def test_what_is_damaged_is_not_taken_for_text(tmp_path):
    path = write_files(tmp_path, {'a.docx': WRITERS['.docx']('x')}) / 'a.docx'
    with OfficeReader() as reader:
        (document,) = reader.documents(FileToRead(path, 'a.docx'))
        assert (document.title, document.text) == ('a', 'x')
        path.write_bytes(b'PK\x03\x04 nothing')
        with pytest.raises(UnreadableFile, match='damaged'):
            list(reader.documents(FileToRead(path, 'a.docx')))


def documents_of(tmp_path, files):
    """The documents of files by their names."""
    write_files(tmp_path, files)
    return {document.docid: document for document in open_corpus(tmp_path).documents()}


def texts_of(tmp_path, files):
    """The texts of files by their names."""
    documents = documents_of(tmp_path, files)
    return {name: document.text for name, document in documents.items()}


def test_what_looks_like_markdown_or_html_is_text(tmp_path):
    """PDF and Word were read as Markdown with HTML: 'List<String>' lost a word, '<!--' the rest."""
    sentence = 'List<String> of <your name> [^a-z] {x=1} a*b*c __init__ 2 | 3 &lt; [a]: b'
    markup = sentence.replace('&', '&amp;').replace('<', '&lt;')
    files = {
        'a.pdf': WRITERS['.pdf'](sentence),
        'b.pdf': WRITERS['.pdf']('<!-- how a comment begins'),
        'c.pdf': WRITERS['.pdf']('import x from y'),
        'd.docx': WRITERS['.docx'](markup),
        'e.docx': WRITERS['.docx']('--- x: [y'),
        'f.pptx': WRITERS['.pptx'](markup),
        'g.xlsx': WRITERS['.xlsx'](markup),
        'h.epub': WRITERS['.epub'](markup),
    }
    texts = texts_of(tmp_path, files)
    for name in ('a.pdf', 'd.docx', 'f.pptx'):
        assert texts[name] == sentence
    assert texts['b.pdf'] == '<!-- how a comment begins'
    assert texts['c.pdf'] == 'import x from y'
    assert texts['e.docx'] == '--- x: [y'
    assert texts['g.xlsx'].endswith(sentence)
    assert texts['h.epub'].endswith(sentence)


def test_a_book_is_read_as_its_pages_show_it(tmp_path):
    """'quince1' was a word, and what a page hides was text."""
    chapter = (
        'The quince<a epub:type="noteref" href="#n1">1</a> and the medlar<sup><a href="#n2">2</a>'
        '</sup> are sour.</p><p hidden="">unseen</p><h2 id="s">Feeding</h2><ol><li>first</li>'
        '</ol><aside epub:type="footnote" id="n1"><p>A note.</p></aside><p><!-- open'
    )
    book = WRITERS['.epub'](chapter)
    document = documents_of(tmp_path, {'a.epub': book})['a.epub']
    assert document.title == 'A Book'
    assert document.text == (
        'Title: A Book\n\nThe quince and the medlar are sour.\n\nFeeding\n\n1. first\n\nA note.'
    )
    assert [heading.title for heading in document.origin.headings] == ['Feeding']


def paragraph(text, more=''):
    return f'<w:p><w:r><w:t>{text}</w:t></w:r>{more}</w:p>'


def table(*rows):
    """A table of Word by the XML of its cells."""
    lines = []
    for row in rows:
        cells = ''.join(f'<w:tc>{cell}</w:tc>' for cell in row)
        lines.append(f'<w:tr>{cells}</w:tr>')
    return f'<w:tbl>{"".join(lines)}</w:tbl>'


def test_all_cells_of_tables_of_word_are_read(tmp_path):
    """Cells behind the last one of the first row were lost, and so was a table in a cell."""
    inner = table([paragraph('maple'), paragraph('red')], [paragraph('oak'), paragraph('brown')])
    wide = f'<w:tcPr><w:gridSpan w:val="2"/></w:tcPr>{paragraph("all trees")}'
    tall = f'<w:tcPr><w:vMerge w:val="restart"/></w:tcPr>{paragraph("tall")}'
    below = f'<w:tcPr><w:vMerge/></w:tcPr>{paragraph("")}'
    body = table(
        [paragraph('month'), paragraph('tree')],
        [paragraph('May'), paragraph('birch'), paragraph('a note')],
        [wide],
        [tall, paragraph('first')],
        [below, paragraph('second')],
        [paragraph('autumn'), inner + paragraph('')],
    )
    text = texts_of(tmp_path, {'a.docx': word_document(body)})['a.docx']
    assert text == (
        'month\ttree\nMay\tbirch\ta note\nall trees\ntall\tfirst\nsecond\n\nautumn\n\n'
        'maple\tred\noak\tbrown'
    )


def test_fields_and_furigana_of_word_are_read(tmp_path):
    """A field's words were lost: 'See on page .'. Of a word with furigana, nothing was left."""
    page = f'<w:fldSimple w:instr=" PAGEREF x ">{run("12")}</w:fldSimple>'
    spoken = f'<w:rubyPr><w:hps w:val="10"/></w:rubyPr><w:rt>{run("ぶどう")}</w:rt>'
    fruit = f'<w:r><w:ruby>{spoken}<w:rubyBase>{run("葡萄")}</w:rubyBase></w:ruby></w:r>'
    custom = (
        f'<w:customXml w:uri="u" w:element="e"><w:bdo w:val="rtl">{run("!")}</w:bdo></w:customXml>'
    )
    body = f'<w:p>{run("See page ")}{page}{run(": ")}{fruit}{custom}</w:p>'
    assert texts_of(tmp_path, {'a.docx': word_document(body)}) == {'a.docx': 'See page 12: 葡萄!'}


def test_the_title_of_a_word_document_is_its_title(tmp_path):
    """Word has a style for it; the style's id is in the language of Word, its name is not."""
    style = '<w:style w:type="paragraph" w:styleId="Titel"><w:name w:val="Title"/></w:style>'
    styled = f'<w:p><w:pPr><w:pStyle w:val="Titel"/></w:pPr>{run("Rental agreement")}</w:p>'
    document = word_document(styled + paragraph('The lease begins in May.'), styles=style)
    path = write_files(tmp_path, {'garage.docx': document}) / 'garage.docx'
    with OfficeReader() as reader:
        (document,) = reader.documents(FileToRead(path, 'garage.docx'))
    assert document.title == 'Rental agreement'
    assert 'The lease begins in May.' in document.text


def test_hidden_text_of_word_is_not_read(tmp_path):
    """It was text as any other."""
    hidden = '<w:r><w:rPr><w:vanish/></w:rPr><w:t>secret </w:t></w:r>'
    body = f'<w:p>{hidden}{run("shown")}</w:p>'
    assert texts_of(tmp_path, {'a.docx': word_document(body)}) == {'a.docx': 'shown'}


def run(text):
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def test_what_stands_beside_the_text_of_word(tmp_path):
    """Boxes and notes are read, without the notes' signs; what pages repeat, and comments, are
    not.
    """
    box = f'<w:txbxContent>{paragraph("in a box")}</w:txbxContent>'
    shape = f'<w:r><w:pict><v:shape><v:textbox>{box}</v:textbox></v:shape></w:pict></w:r>'
    signs = (
        '<w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:endnoteReference w:id="3"/></w:r>'
        '<w:r><w:commentReference w:id="0"/></w:r>'
    )
    ends = '<w:sectPr><w:headerReference w:type="default" r:id="r4"/></w:sectPr>'
    document = word_document(
        paragraph('It rains.', signs) + f'<w:p>{shape}</w:p>' + ends,
        footnotes=f'<w:footnote w:id="2">{paragraph("At the foot.")}</w:footnote>',
        endnotes=f'<w:endnote w:id="3">{paragraph("At the end.")}</w:endnote>',
        comments=f'<w:comment w:id="0">{paragraph("Is it so?")}</w:comment>',
        header=paragraph('Page 1'),
    )
    text = texts_of(tmp_path, {'a.docx': document})['a.docx']
    assert text == 'It rains.\n\nin a box\n\n1. At the foot.\n2. At the end.'


def test_cells_of_excel_are_what_was_written(tmp_path):
    """A price of seven digits was 1.234568e+06, and 'None', 'NA' and empty cells were 'NaN'."""
    openpyxl = pytest.importorskip('openpyxl')
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.title = 'Prices'
    sheet.append(['name', 'price', 2024, 'day'])
    sheet.append(['None', 1234567.891, 12, datetime(2024, 1, 2)])
    sheet.append(['NA', 0.1 + 0.2, None, datetime(2024, 1, 2, 3, 4)])
    sheet.append([None, 1.234e-5, True, 'a\tb\n|c'])
    workbook.create_sheet('Empty')
    workbook.create_sheet('More').append([2024])
    workbook.save(tmp_path / 'a.xlsx')
    assert texts_of(tmp_path, {})['a.xlsx'].split('\n') == [
        'name\tprice\t2024\tday',
        'None\t1234567.891\t12\t2024-01-02',
        'NA\t0.3\t\t2024-01-02 03:04:00',
        '\t1.234e-05\tTRUE\ta b |c',
        '',
        'More',
        '',
        '2024',
    ]


def test_slides_have_titles_tables_and_notes(tmp_path):
    pptx = pytest.importorskip('pptx')
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = 'Vec<T>'
    slide.placeholders[1].text = 'one\n!!! two'
    table = slide.shapes.add_table(2, 2, 9_000_000, 9_000_000, 10, 10).table
    for row, words in enumerate([['a|b', 'c'], ['<d>', 'e']]):
        for column, word in enumerate(words):
            table.cell(row, column).text = word
    slide.notes_slide.notes_text_frame.text = 'Say <x>.'
    show.save(tmp_path / 'a.pptx')
    (document,) = open_corpus(tmp_path).documents()
    assert document.title == 'Vec<T>'
    assert document.text == 'one\n!!! two\na|b\tc\n<d>\te\n\nNotes:\n\nSay <x>.'
