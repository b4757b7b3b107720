"""Tables, notes and markups as a person sees them: each of these lost its text, or was ruined."""

import io
import json
import re
import time
import zipfile
from datetime import timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from folders import write_files
from pyarrow import parquet

from pyserini_repbert.collection.files.asciidoc_conditions import shown_lines
from pyserini_repbert.collection.files.excel_values import shown_value
from pyserini_repbert.collection.files.markdown_documents import document_of_markdown
from pyserini_repbert.collection.files.org_text import read_org
from pyserini_repbert.collection.files.word_wrappers import without_wrappers
from pyserini_repbert.data.documents import plain_fields
from pyserini_repbert.names.corpora import open_corpus


def documents_in(folder):
    return list(open_corpus(folder).documents())


@pytest.mark.parametrize('first', ['sep=;', '"sep=;"', 'SEP=;', 'sep=;;;'])
def test_a_table_names_what_separates_its_cells(tmp_path, first):
    table = f'{first}\r\nid;title;text\r\n1;Rose;Prune, in March\r\n2;Lily;Plant\r\n'
    rose, lily = documents_in(write_files(tmp_path, {'a.csv': table}))
    assert (rose.docid, rose.title, rose.text) == ('a.csv#1', 'Rose', 'Prune, in March')
    assert (rose.origin.record, lily.origin.record) == (3, 4)


def test_a_table_of_an_old_macintosh(tmp_path):
    write_files(tmp_path, {'a.csv': 'id,text\r1,Hoe\r2,"Fork, small"\r'})
    assert [document.text for document in documents_in(tmp_path)] == ['Hoe', 'Fork, small']


def test_values_of_parquet(tmp_path):
    table = pa.table(
        {
            'text': pa.array([['Hoes.', 'Forks.']], pa.list_(pa.string())),
            'price': pa.array([Decimal('12.50')], pa.decimal128(8, 2)),
            'n': pa.array([Decimal('100.00')], pa.decimal128(8, 2)),
            'names': pa.array([[('de', 'Hacke')]], pa.map_(pa.string(), pa.string())),
            'picture': pa.array([b'\x89PNG'], pa.binary()),
        }
    )
    parquet.write_table(table, tmp_path / 'a.parquet')
    (document,) = documents_in(tmp_path)
    assert document.text == 'Hoes.\nForks.'
    fields = {name: value for name, value in document.fields.items() if value is not None}
    assert fields == {'price': 12.5, 'n': 100, 'names': {'de': 'Hacke'}}


def test_decimals_from_python_are_numbers():
    assert plain_fields({'a': Decimal('7.5'), 'b': Decimal('7'), 'c': Decimal('NaN')}) == {
        'a': 7.5,
        'b': 7,
    }


def test_a_cell_of_parquet_that_unpacks_to_much_is_refused(tmp_path):
    table = pa.table({'id': ['a'], 'text': ['a b c d e ' * 8_000_000]})
    parquet.write_table(table, tmp_path / 'a.parquet', compression='zstd')
    (tmp_path / 'b.md').write_text('Peas.')
    corpus = open_corpus(tmp_path)
    assert [document.text for document in corpus.documents()] == ['Peas.']
    (unread,) = corpus.unread
    assert 'it unpacks to' in unread.reason


@pytest.mark.parametrize('open_mark', ['<!-- a draft', '```python\nx = 1', '~~~\nx', '````\n```'])
def test_a_cell_ends_what_it_begins(tmp_path, open_mark):
    """All later cells were lost, or were code."""
    cells = [{'cell_type': 'markdown', 'source': text} for text in (open_mark, '## Feeding\n\nx')]
    (tmp_path / 'a.ipynb').write_text(json.dumps({'cells': cells}))
    (document,) = documents_in(tmp_path)
    assert [heading.title for heading in document.origin.headings] in (['Feeding'], [])
    assert document.title == 'Feeding' or 'Feeding' in document.text
    assert '##' not in document.text


def test_a_cell_of_backticks_takes_linear_time(tmp_path):
    """50,000 took two seconds, a million a quarter of an hour."""
    cells = [{'cell_type': 'code', 'source': '`' * 1_000_000}]
    (tmp_path / 'a.ipynb').write_text(json.dumps({'cells': cells}))
    begun = time.process_time()
    (document,) = documents_in(tmp_path)
    assert document.text == '`' * 1_000_000
    assert time.process_time() - begun < 10


@pytest.mark.parametrize(
    ('note', 'text'),
    [
        ('A %%secret%% word', 'A word'),
        ('A\n\n%%\nsecret\n\nblock\n%%\n\nB', 'A\n\nB'),
        ('100 %% and 5 %% more', '100 %% and 5 %% more'),
        ('%%\nnothing ends it', '%%\nnothing ends it'),
        ('```\n%%\nx\n%%\n```', '%%\nx\n%%'),
        ('Words. ^block-1', 'Words.'),
        ('2^8 and x ^ y', '2^8 and x ^ y'),
        ('==Bright== words, a == b', 'Bright words, a == b'),
        ('![[tree.png|300]] ![oak|120](oak.png)', 'oak'),
        ('[[Pruning#^abc]] [[Page|shown]] [[Plain]]', 'Pruning shown Plain'),
        ('> [!tip]- Folded\n> Body', 'Folded\nBody'),
        ('> [!NOTE]\n> Body', 'Body'),
    ],
)
def test_marks_of_obsidian(note, text):
    found = document_of_markdown('d', note, 'd').text
    assert ' '.join(found.split()) == ' '.join(text.split())


@pytest.mark.parametrize('keyword', ['TODO', 'SEQ_TODO', 'TYP_TODO', 'todo'])
def test_states_that_an_org_file_names(keyword):
    lines = ['* QUEUED [#A] Buy seeds [1/3]', '* DROPPED Dig', '* QUEUEDX it']
    page = read_org([*lines, f'#+{keyword}: QUEUED(q) STARTED(s!) | DROPPED(d@/!)'])
    assert [heading.title for heading in page.headings] == ['Buy seeds', 'Dig', 'QUEUEDX it']


def test_snippets_and_macros_of_org():
    page = read_org(['A @@html:<b>@@bold@@html:</b>@@ src_py[x]{f(1)} {{{kbd(S-UP)}}} {{{v}}} x.'])
    assert ' '.join(page.lines[0].split()) == 'A bold f(1) S-UP x.'


@pytest.mark.parametrize(
    ('condition', 'is_shown'),
    [
        ('ifdef::desktop[]', True),
        ('ifdef::mobile[]', False),
        ('ifndef::desktop[]', False),
        ('ifndef::mobile[]', True),
        ('ifdef::mobile,desktop[]', True),
        ('ifdef::mobile+desktop[]', False),
        ('ifdef::gone[]', False),
        ('ifeval::["{backend}" == "docbook5"]', False),
        ('ifeval::["{backend}" == "html5"]', True),
        ('ifeval::[{level} >= 2]', True),
        ('ifeval::[{nothing} < 2]', False),
    ],
)
def test_branches_of_asciidoc(condition, is_shown):
    head = [':desktop:', ':gone:', ':!gone:', ':level: 3']
    lines = shown_lines([*head, condition, 'ifdef::desktop[]', 'Words.', 'endif::[]', 'endif::[]'])
    assert len(lines) == 9
    assert ('Words.' in lines) == is_shown
    single = condition.replace('[]', '[One line.]')
    if single != condition:
        assert shown_lines([*head, single])[-1] == ('One line.' if is_shown else '')


@pytest.mark.parametrize(
    'mark', ['= Manual for {product}', 'Manual for {product}\n=====================']
)
def test_a_title_of_asciidoc_names_an_attribute_of_its_header(tmp_path, mark):
    """It was 'Manual for {product}'; Asciidoctor shows what stands below."""
    (tmp_path / 'a.adoc').write_text(f'{mark}\nAda\n:product: Planner\n\nUse {{product}}.\n')
    (document,) = documents_in(tmp_path)
    assert (document.title, document.text) == ('Manual for Planner', 'Ada\n\nUse Planner.')


def test_an_org_file_names_its_states_anywhere(tmp_path):
    """'PUBLISHED Sample post' was a heading, and was the title of a file."""
    note = '* QUEUED [#A] Buy seeds [1/3]\nText.\n#+SEQ_TODO: QUEUED(q) | PUBLISHED(p)\n'
    (tmp_path / 'a.org').write_text(f'{note}* PUBLISHED Sample post :garden:\nMore.\n')
    (document,) = documents_in(tmp_path)
    assert (document.title, document.text) == ('Buy seeds', 'Text.\n\nSample post\n\nMore.')


@pytest.mark.parametrize(
    ('value', 'number_format', 'shown'),
    [
        (0.075, '0.0%', '7.5%'),
        (0.653035934239184, '0%', '65%'),
        (2134, '00000', '02134'),
        (timedelta(hours=30, minutes=15), '[h]:mm', '30:15'),
        (timedelta(hours=30, minutes=15, seconds=5), '[h]:mm:ss', '30:15:05'),
        (1 / 3, '0.00', '0.33'),
        (1 / 3, 'General', '0.333333333333333'),
        (12345678901, 'General', '12345678901'),
        (2.5, '"about" 0.0 "kg"', '2.5'),
        (2.5, '# ?/?', '2.5'),
        (True, 'General', 'TRUE'),
        (None, '0%', ''),
        ('00123', '@', '00123'),
    ],
)
def test_cells_of_excel_as_the_sheet_shows_them(value, number_format, shown):
    assert shown_value(value, number_format) == shown


def test_wrappers_of_word():
    xml = (
        '<w:p><w:fldSimple w:instr="PAGE"><w:r><w:t>12</w:t></w:r></w:fldSimple><w:r><w:ruby>'
        '<w:rubyPr><w:hps/></w:rubyPr><w:rt><w:r><w:t>spoken</w:t></w:r></w:rt><w:rubyBase><w:r>'
        '<w:t>base</w:t></w:r></w:rubyBase></w:ruby></w:r></w:p>'
    )
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, 'w') as archive:
        archive.writestr('word/document.xml', xml)
        archive.writestr('word/other.xml', xml)
    with zipfile.ZipFile(without_wrappers(stream)) as archive:
        assert archive.read('word/document.xml').decode() == (
            '<w:p><w:r><w:t>12</w:t></w:r><w:r><w:r><w:t>base</w:t></w:r></w:r></w:p>'
        )
        assert archive.read('word/other.xml').decode() == xml


VANISH = '<w:rPr><w:vanish/></w:rPr>'


STYLES = f"""<w:styles>
<w:style w:type="character" w:styleId="Secret"><w:name w:val="Secret"/>{VANISH}</w:style>
<w:style w:type="paragraph" w:styleId="Margin"><w:pPr/>{VANISH}</w:style>
<w:style w:type="paragraph" w:styleId="End"><w:pPr>{VANISH}</w:pPr></w:style>
<w:style w:type="character" w:styleId="Shown"><w:rPr><w:vanish w:val="0"/></w:rPr></w:style>
<w:style w:type="paragraph" w:styleId="Child"><w:basedOn w:val="Margin"/><w:pPr/></w:style>
<w:style w:type="paragraph" w:styleId="Grandchild"><w:basedOn w:val="Child"/></w:style>
<w:style w:type="paragraph" w:styleId="ShownChild"><w:basedOn w:val="Child"/>
<w:rPr><w:vanish w:val="false"/></w:rPr></w:style>
<w:style w:type="paragraph" w:styleId="Circle"><w:basedOn w:val="Circle"/></w:style>
</w:styles>"""


@pytest.mark.parametrize(
    ('style', 'shown'),
    [
        ('Secret', 'b'),
        ('Margin', ''),
        ('End', 'ab'),
        ('Shown', 'ab'),
        ('Child', ''),
        ('Grandchild', ''),
        ('ShownChild', 'ab'),
        ('Circle', 'ab'),
    ],
)
def test_text_that_a_style_hides_is_not_text(style, shown):
    """Mammoth reads it as any other. A style hides text, too, by the style that it extends."""
    run_style = f'<w:rPr><w:rStyle w:val="{style}"/></w:rPr>'
    paragraph_style = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>'
    runs = f'<w:r>{run_style}<w:t>a</w:t></w:r><w:r><w:t>b</w:t></w:r>'
    is_of_run = style in ('Secret', 'Shown')
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, 'w') as archive:
        paragraph = f'<w:p>{"" if is_of_run else paragraph_style}{runs}</w:p>'
        archive.writestr('word/document.xml', paragraph)
        archive.writestr('word/styles.xml', STYLES)
    stream.seek(0)
    with zipfile.ZipFile(without_wrappers(stream)) as archive:
        read = archive.read('word/document.xml').decode()
    assert ''.join(re.findall('<w:t[^>]*>([^<]*)', read)) == shown


def test_what_is_shown_within_a_hidden_style_is_text():
    shown = '<w:rPr><w:rStyle w:val="Secret"/><w:vanish w:val="0"/></w:rPr>'
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, 'w') as archive:
        archive.writestr('word/document.xml', f'<w:p><w:r>{shown}<w:t>a</w:t></w:r></w:p>')
        archive.writestr('word/styles.xml', STYLES)
    with zipfile.ZipFile(without_wrappers(stream)) as archive:
        assert b'<w:t>a</w:t>' in archive.read('word/document.xml')


@pytest.mark.parametrize(
    ('xml', 'shown'),
    [
        (f'<w:r>{VANISH}<w:t xml:space="preserve">hidden </w:t></w:r><w:r><w:t>b</w:t></w:r>', 'b'),
        ('<w:r><w:rPr><w:vanish w:val="false"/></w:rPr><w:t>a</w:t></w:r>', 'a'),
        ('<w:r><w:rPr><w:webHidden/></w:rPr><w:t>a</w:t></w:r>', 'a'),
        # It hides the sign of a paragraph's end, and was added by a change.
        (f'<w:pPr>{VANISH}</w:pPr><w:r><w:t>a</w:t></w:r>', 'a'),
        (f'<w:r><w:rPr><w:rPrChange>{VANISH}</w:rPrChange></w:rPr><w:t>a</w:t></w:r>', 'a'),
        (f'<w:r><w:t>a</w:t><w:p><w:pPr>{VANISH}</w:pPr><w:r><w:t>b</w:t></w:r></w:p></w:r>', 'ab'),
        (f'<w:r>{VANISH}<w:t>a</w:t><w:r>{VANISH}<w:t>b</w:t></w:r></w:r><w:r/>', ''),
    ],
)
def test_hidden_text_of_word_is_not_text(xml, shown):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, 'w') as archive:
        archive.writestr('word/document.xml', f'<w:p>{xml}</w:p>')
    with zipfile.ZipFile(without_wrappers(stream)) as archive:
        read = archive.read('word/document.xml').decode()
    assert ''.join(re.findall('<w:t[^>]*>([^<]*)', read)) == shown
    # Nothing but text is gone.
    assert re.findall('</?w:[a-su-z]', read) == re.findall('</?w:[a-su-z]', f'<w:p>{xml}</w:p>')
