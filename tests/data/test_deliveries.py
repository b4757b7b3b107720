"""Collections as NIST and CMU deliver them."""

import gzip
import io
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import ncompress
import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from pyserini_repbert.data.corpus_files import corpus_of_files
from pyserini_repbert.errors import InputError

FT = """<DOC>
<DOCNO>FT911-1</DOCNO>
<PROFILE>_AN-BEOA7AAIFT</PROFILE>
<HEADLINE>
FT  14 MAY 91 / Caf\xe9 society
</HEADLINE>
<TEXT>
Olives &amp; oil
</TEXT>
</DOC>
<DOC>
<DOCNO> FT911-2 </DOCNO>
<TEXT></TEXT>
</DOC>
"""
FBIS = '<DOC>\n<DOCNO> FBIS3-1 </DOCNO>\n<TEXT>\nthe second\n</TEXT>\n</DOC>\n'


def compressed(content):
    """As `compress` packs it, in a thread whose stack Java has not cut."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(ncompress.compress, content).result()


@pytest.mark.jvm
def test_packed_files_beside_java(tmp_path):
    """Java leaves the main thread less stack than unpacking takes; a process of its own, for it
    would end.
    """
    (tmp_path / 'ft911_1.z').write_bytes(compressed(FT.encode('latin-1')))
    code = (
        'import sys; from pathlib import Path; from pyserini_repbert.lucene.jvm import java_class; '
        'from pyserini_repbert.data.corpus_files import corpus_of_files; '
        'java_class("java.util.ArrayList"); print([passage.docid for passage in '
        'corpus_of_files(Path(sys.argv[1]), on_error="skip")])'
    )
    done = subprocess.run(
        [sys.executable, '-c', code, str(tmp_path)], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout.strip()) == (0, "['FT911-1']"), done.stderr


def test_trec_disks_as_delivered(tmp_path):
    files = {
        'ft/ft911/ft911_1.z': compressed(FT.encode('latin-1')),
        'fbis/fb396001': FBIS.encode(),
        'fr94/01/fr940104.0z': gzip.compress(FBIS.replace('FBIS3-1', 'FR940104-0-00001').encode()),
        'latimes/la010189': FBIS.replace('FBIS3-1', 'LA010189-0001').encode(),
        'cr/hfiles/cr93h_1': FBIS.replace('FBIS3-1', 'CR93H-1').encode(),
        'ft/readmeft': b'<DOC> is how each document begins',
        'dtds/ftdtd': b'<!ELEMENT DOC>',
        'readchg.txt': b'changes',
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    corpus = corpus_of_files(tmp_path, on_error='skip')
    texts = {passage.docid: passage.text for passage in corpus}
    assert texts == {
        'FBIS3-1': 'the second',
        'FR940104-0-00001': 'the second',
        'LA010189-0001': 'the second',
        'FT911-1': '_AN-BEOA7AAIFT FT 14 MAY 91 / Caf\xe9 society Olives & oil',
    }
    assert corpus.skipped == 1  # FT911-2 has no text


def test_a_damaged_file_of_a_disk_is_named(tmp_path):
    (tmp_path / 'ft911_1.z').write_bytes(b'\x1f\x9d\x90')
    (tmp_path / 'ft911_2.gz').write_bytes(gzip.compress(FBIS.encode())[:-9])
    with pytest.raises(InputError, match=r'ft911_2\.gz cannot be unpacked'):
        list(corpus_of_files(tmp_path / 'ft911_2.gz', 'trec-disks'))


def test_a_file_of_a_disk_in_another_packing_is_refused(tmp_path):
    (tmp_path / 'la010189.bz2').write_bytes(b'BZh9')
    with pytest.raises(InputError, match=r'la010189\.bz2 is packed with bzip2: unpack it'):
        list(corpus_of_files(tmp_path))


def test_a_folder_without_web_pages_is_refused(tmp_path):
    with pytest.raises(InputError, match='holds no WARC files'):
        corpus_of_files(tmp_path, 'clueweb')


def warc(version, pages, content_type='text/html; charset=iso-8859-1'):
    """A packed WARC file: its description, then one response a page."""
    made = io.BytesIO()
    writer = WARCWriter(made, gzip=True, warc_version=version)
    writer.write_record(writer.create_warcinfo_record('00.warc.gz', {'software': 'Nutch'}))
    for docid, body in pages.items():
        headers = StatusAndHeaders('200 OK', [('Content-Type', content_type)], protocol='HTTP/1.1')
        record = writer.create_warc_record(
            f'http://example.org/{docid}',
            'response',
            payload=io.BytesIO(body),
            http_headers=headers,
            warc_headers_dict={'WARC-TREC-ID': docid},
        )
        writer.write_record(record)
    return made.getvalue()


def test_a_record_without_its_headers_is_one_line(tmp_path):
    head = b'WARC/1.0\r\nWARC-Type: response\r\nWARC-TREC-ID: a\r\nContent-Length: 4\r\n\r\n'
    path = tmp_path / '00.warc'
    path.write_bytes(head + b'text\r\n\r\n')
    with pytest.raises(InputError, match=r'00\.warc: record 1 lacks a header') as raised:
        list(corpus_of_files(tmp_path, 'clueweb'))
    assert '\n' not in str(raised.value)


@pytest.mark.parametrize('version', ['0.18', '1.0'])
def test_clueweb_as_delivered(tmp_path, version):
    page = (
        '<html><head><title>T&amp;A</title><script>var a = '
        '"<b>";</script></head><body>caf\xe9<br>x</body></html>'
    )
    folder = tmp_path / 'ClueWeb09_English_1' / 'en0000'
    folder.mkdir(parents=True)
    packed = warc(version, {'clueweb09-en0000-00-00000': page.encode('latin-1')})
    (folder / '00.warc.gz').write_bytes(packed)
    (folder / '01.warc.gz').write_bytes(packed[: len(packed) - 40])
    corpus = iter(corpus_of_files(tmp_path))
    assert next(corpus) == ('clueweb09-en0000-00-00000', 'T&A caf\xe9 x')
    with pytest.raises(InputError, match=r'01\.warc\.gz'):
        list(corpus)


@pytest.mark.parametrize(
    ('content_type', 'body', 'text'),
    [
        ('text/html', b'<p>caf\xe9 olives</p>', 'caf\xe9 olives'),
        ('text/html; charset=undefined', b'<p>caf\xe9 olives</p>', 'caf\xe9 olives'),
        ('text/html; charset= iso-8859-1', b'<p>caf\xe9 olives</p>', 'caf\xe9 olives'),
        ('text/html; charset="utf-8"', b'<p>caf\xe9 olives</p>', 'caf\ufffd olives'),
        ('text/html; charset=utf-8', '<p>caf\xe9</p>'.encode(), 'caf\xe9'),
        ('text/html; charset=koi8-r', '<meta charset=utf-8>да'.encode('koi8-r'), 'да'),
        ('text/html; charset=rot13', '<meta charset=koi8-r>да'.encode('koi8-r'), 'да'),
    ],
)
def test_a_page_of_clueweb_is_read_as_its_server_says(tmp_path, content_type, body, text):
    """'undefined' is a codec of Python, which always fails."""
    (tmp_path / '00.warc.gz').write_bytes(warc('1.0', {'clueweb-0': body}, content_type))
    assert list(corpus_of_files(tmp_path)) == [('clueweb-0', text)]
