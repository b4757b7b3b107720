"""Writes OpenDocument spreadsheets in the form of LibreOffice."""

import zipfile
from xml.sax.saxutils import escape, quoteattr

SPACES = ' '.join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ('office', 'table', 'text')
)


def cell(shown, kind='string', repeated=1, **values):
    """A cell: what the sheet shows, the type, and what it holds: `value`, `date_value`."""
    stated = ''
    for name, value in values.items():
        stated += f' office:{name.replace("_", "-")}={quoteattr(str(value))}'
    return (
        f'<table:table-cell office:value-type="{kind}"{stated} '
        f'table:number-columns-repeated="{repeated}"><text:p>{escape(shown)}</text:p>'
        '</table:table-cell>'
    )


def empty(repeated=1):
    """Empty cells."""
    return f'<table:table-cell table:number-columns-repeated="{repeated}"/>'


def row(*cells, repeated=1):
    """A row of cells; a text is a cell."""
    inner = ''.join(one if one.startswith('<') else cell(one) for one in cells)
    return (
        f'<table:table-row table:number-rows-repeated="{repeated}">{inner}'
        '<table:table-cell table:number-columns-repeated="16380"/></table:table-row>'
    )


def write_open_sheets(path, sheets, manifest='<manifest/>'):
    """Write a spreadsheet of sheets, by name, that are lists of what `row` gives."""
    tables = ''
    for name, rows in sheets.items():
        tables += f'<table:table table:name={quoteattr(name)}>{"".join(rows)}</table:table>'
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {SPACES}><office:body>'
        f'<office:spreadsheet>{tables}</office:spreadsheet></office:body></office:document-content>'
    )
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('mimetype', 'application/vnd.oasis.opendocument.spreadsheet')
        archive.writestr('content.xml', content)
        archive.writestr('META-INF/manifest.xml', manifest)
    return path
