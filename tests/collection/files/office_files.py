"""Small PDF, Office files and EPUB, written by hand: what each format needs, and one sentence."""

import io
import zipfile

_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
_TYPES = 'http://schemas.openxmlformats.org/package/2006/content-types'
_RELATIONS = 'http://schemas.openxmlformats.org/package/2006/relationships'
_OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
_DOCUMENT = 'application/vnd.openxmlformats-officedocument'


def packed(parts: dict[str, str]) -> bytes:
    """A zip file of texts by their names."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, 'w', zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _types(overrides: dict[str, str]) -> str:
    lines = [
        f'<Override PartName="{name}" ContentType="{_DOCUMENT}.{kind}+xml"/>'
        for name, kind in overrides.items()
    ]
    relations = 'application/vnd.openxmlformats-package.relationships+xml'
    return (
        f'{_XML}<Types xmlns="{_TYPES}"><Default Extension="rels" ContentType="{relations}"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{"".join(lines)}</Types>'
    )


def _relations(targets: dict[str, str]) -> str:
    lines = [
        f'<Relationship Id="r{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for number, (target, kind) in enumerate(targets.items(), 1)
    ]
    return f'{_XML}<Relationships xmlns="{_RELATIONS}">{"".join(lines)}</Relationships>'


def word(text: str) -> bytes:
    """A Word document with a paragraph."""
    return word_document(f'<w:p><w:r><w:t>{text}</w:t></w:r></w:p>')


def word_document(body: str, **parts: str) -> bytes:
    """A Word document: the XML of its body, and of further parts, by names such as 'header'."""
    space = (
        'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
        f'xmlns:r="{_OFFICE}" xmlns:v="urn:schemas-microsoft-com:vml"'
    )
    tags = {'header': 'hdr', 'footer': 'ftr'}
    types = {'/word/document.xml': 'wordprocessingml.document.main'}
    files = {}
    for name, content in parts.items():
        types[f'/word/{name}.xml'] = f'wordprocessingml.{name}'
        tag = tags.get(name, name)
        files[f'word/{name}.xml'] = f'{_XML}<w:{tag} {space}>{content}</w:{tag}>'
    return packed(
        {
            '[Content_Types].xml': _types(types),
            '_rels/.rels': _relations({'word/document.xml': 'officeDocument'}),
            'word/document.xml': f'{_XML}<w:document {space}><w:body>{body}</w:body></w:document>',
            'word/_rels/document.xml.rels': _relations({f'{name}.xml': name for name in parts}),
            **files,
        }
    )


def excel(text: str) -> bytes:
    """An Excel workbook with a cell below the name of its column."""
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    rows = [
        f'<row r="{row}"><c r="A{row}" t="inlineStr"><is><t>{cell}</t></is></c></row>'
        for row, cell in enumerate(('note', text), 1)
    ]
    sheets = f'<sheets><sheet name="Notes" sheetId="1" xmlns:r="{_OFFICE}" r:id="r1"/></sheets>'
    parts = {
        '/xl/workbook.xml': 'spreadsheetml.sheet.main',
        '/xl/worksheets/sheet1.xml': 'spreadsheetml.worksheet',
    }
    return packed(
        {
            '[Content_Types].xml': _types(parts),
            '_rels/.rels': _relations({'xl/workbook.xml': 'officeDocument'}),
            'xl/workbook.xml': f'{_XML}<workbook {space}>{sheets}</workbook>',
            'xl/_rels/workbook.xml.rels': _relations({'worksheets/sheet1.xml': 'worksheet'}),
            'xl/worksheets/sheet1.xml': (
                f'{_XML}<worksheet {space}><sheetData>{"".join(rows)}</sheetData></worksheet>'
            ),
        }
    )


def power_point(text: str) -> bytes:
    """A PowerPoint presentation with a box of text on a slide."""
    drawing = 'http://schemas.openxmlformats.org/drawingml/2006/main'
    show = 'http://schemas.openxmlformats.org/presentationml/2006/main'
    space = f'xmlns:a="{drawing}" xmlns:p="{show}" xmlns:r="{_OFFICE}"'
    body = f'<p:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody>'
    named = (
        '<p:nvSpPr><p:cNvPr id="2" name="box"/><p:cNvSpPr txBox="1"/><p:nvPr/></p:nvSpPr><p:spPr/>'
    )
    group = '<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr>'
    tree = f'<p:spTree>{group}<p:grpSpPr/><p:sp>{named}{body}</p:sp></p:spTree>'
    slides = '<p:sldIdLst><p:sldId id="256" r:id="r1"/></p:sldIdLst>'
    parts = {
        '/ppt/presentation.xml': 'presentationml.presentation.main',
        '/ppt/slides/slide1.xml': 'presentationml.slide',
    }
    return packed(
        {
            '[Content_Types].xml': _types(parts),
            '_rels/.rels': _relations({'ppt/presentation.xml': 'officeDocument'}),
            'ppt/presentation.xml': f'{_XML}<p:presentation {space}>{slides}</p:presentation>',
            'ppt/_rels/presentation.xml.rels': _relations({'slides/slide1.xml': 'slide'}),
            'ppt/slides/slide1.xml': f'{_XML}<p:sld {space}><p:cSld>{tree}</p:cSld></p:sld>',
        }
    )


def epub(text: str) -> bytes:
    """A book of one chapter."""
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0">'
        '<rootfiles><rootfile full-path="book.opf" '
        'media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    book = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>A Book</dc:title>'
        '</metadata><manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/>'
        '</manifest><spine><itemref idref="c"/></spine></package>'
    )
    page = f'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>{text}</p></body></html>'
    return packed(
        {
            'mimetype': 'application/epub+zip',
            'META-INF/container.xml': container,
            'book.opf': book,
            'c.xhtml': page,
        }
    )


def pdf(*pages: str) -> bytes:
    """A PDF of pages, each with a line of text."""
    drawn = [f'BT /F1 12 Tf 72 720 Td ({page}) Tj ET' for page in pages]
    return printed(*drawn)


def printed(*pages: str) -> bytes:
    """A PDF of pages, each with a content as PDF draws it."""
    kids = ' '.join(f'{4 + 2 * number} 0 R' for number in range(len(pages)))
    objects = [
        '<< /Type /Catalog /Pages 2 0 R >>',
        f'<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>',
        '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ]
    for number, content in enumerate(pages):
        objects.append(
            '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] '
            f'/Contents {5 + 2 * number} 0 R /Resources << /Font << /F1 3 0 R >> >> >>'
        )
        objects.append(f'<< /Length {len(content)} >>\nstream\n{content}\nendstream')
    file = '%PDF-1.4\n'
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(file))
        file += f'{number} 0 obj\n{body}\nendobj\n'
    start = len(file)
    rows = ''.join(f'{offset:010} 00000 n \n' for offset in offsets)
    size = len(objects) + 1
    file += f'xref\n0 {size}\n0000000000 65535 f \n{rows}'
    file += f'trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n'
    return file.encode('latin-1')


WRITERS = {'.pdf': pdf, '.docx': word, '.xlsx': excel, '.pptx': power_point, '.epub': epub}
