"""Words of twenty PDF files, mails and pages, as our readers and as other libraries read them.

`readings.yaml` names the files. What should be read of a page is what Chromium shows of it
(`innerText`, without scripts). Of a mail, it is what most readers agree on: of each word, the
median of their counts; of a PDF file, what most peers agree on, since ours reads with PDFium, too.
For each reader this prints

- missing, added: words that it reads less or more often, for 100 that should be read;
- known: the share of its words that a list of English words has;
- long: words of 20 letters or more, which are mostly several without spaces.

Peers that are not installed are named. PyMuPDF has the AGPL: it is only a peer here.

    apt install wamerican-large chromium
    pip install pypdf pymupdf mail-parser trafilatura lxml_html_clean html2text playwright
    python benchmarks/readings.py FOLDER [--kind pdf] [--each]
"""

import argparse
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from importlib import import_module
from pathlib import Path
from statistics import median_low

import yaml

from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.html_text import read_html
from pyserini_repbert.collection.files.mail_documents import mail_documents
from pyserini_repbert.collection.files.pdf_text import read_pdf
from pyserini_repbert.data.page_encodings import decode_page

WORDS = Path('/usr/share/dict/american-english-large')
CHROMIUM = '/usr/bin/chromium'
LONG = 20  # letters
OURS = 'ours'
Read = Callable[[Path], str]


@dataclass
class Total:
    """What is counted of a reader, over files."""

    counts: Counter = field(default_factory=Counter)
    seconds: float = 0.0
    n_failed: int = 0


def words_of(text):
    """How often each word is in a text. Ligatures are letters, whichever form a reader keeps."""
    text = unicodedata.normalize('NFKC', text)
    return Counter(re.findall(r'[^\W\d_]+', text.lower()))


def read_our_pdf(path):
    return read_pdf(str(path)).text


def read_pdfium(path):
    pypdfium2 = import_module('pypdfium2')
    document = pypdfium2.PdfDocument(path)
    return '\n'.join(page.get_textpage().get_text_range() for page in document)


def read_pdfminer(path):
    return import_module('pdfminer.high_level').extract_text(path)


def read_pypdf(path):
    reader = import_module('pypdf').PdfReader(path)
    return '\n'.join(page.extract_text() for page in reader.pages)


def read_pymupdf(path):
    with import_module('pymupdf').open(path) as document:
        return '\n'.join(page.get_text(sort=False) for page in document)


def read_our_mail(path):
    (document,) = mail_documents(FileToRead(path, 'd'))
    return document.text


def read_email(path):
    """The body that the standard library names as the best one."""
    message = message_from_bytes(path.read_bytes(), policy=policy.default)
    body = message.get_body(('plain', 'html'))
    if body is None:
        return ''
    content = body.get_content()
    return soup_text(content) if body.get_content_type() == 'text/html' else content


def read_mail_parser(path):
    mail = import_module('mailparser').parse_from_bytes(path.read_bytes())
    if ''.join(mail.text_plain).strip():
        return '\n'.join(mail.text_plain)
    return '\n'.join(map(soup_text, mail.text_html))


def soup_text(markup):
    soup = import_module('bs4').BeautifulSoup(markup, 'lxml')
    for element in soup(['script', 'style']):
        element.decompose()
    return soup.get_text('\n')


def read_our_page(path):
    return '\n'.join(read_html(decode_page(path.read_bytes())).lines)


def read_html2text(path):
    reader = import_module('html2text').HTML2Text(bodywidth=0)
    reader.ignore_links = True
    reader.ignore_images = True
    return reader.handle(decode_page(path.read_bytes()))


def read_trafilatura(path):
    extract = import_module('trafilatura').extract
    return extract(decode_page(path.read_bytes()), favor_recall=True) or ''


def read_soup(path):
    return soup_text(decode_page(path.read_bytes()))


def shown_by_chromium(paths):
    """What Chromium shows of each page: without scripts, and without what a page loads."""
    sync_api = import_module('playwright.sync_api')
    texts = {}
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=['--no-sandbox'])
        page = browser.new_page()
        markup = ''

        def answer(route):
            if route.request.url != 'http://localhost/':
                route.abort()
                return
            # <noscript> stays hidden: scripts could run, and may not.
            headers = {'Content-Security-Policy': "script-src 'none'"}
            route.fulfill(body=markup, content_type='text/html; charset=utf-8', headers=headers)

        page.route('**', answer)
        for path in paths:
            markup = decode_page(path.read_bytes())
            page.goto('http://localhost/', wait_until='domcontentloaded')
            texts[path] = page.evaluate('document.body.innerText')
        browser.close()
    return texts


READERS: Mapping[str, Mapping[str, Read]] = {
    'pdf': {
        OURS: read_our_pdf,
        'PDFium': read_pdfium,
        'pdfminer': read_pdfminer,
        'pypdf': read_pypdf,
        'PyMuPDF': read_pymupdf,
    },
    'mail': {OURS: read_our_mail, 'email.get_body': read_email, 'mail-parser': read_mail_parser},
    'page': {
        OURS: read_our_page,
        'BeautifulSoup': read_soup,
        'html2text': read_html2text,
        'trafilatura': read_trafilatura,
    },
}


def agreed_words(readings):
    """Of each word, the median of its counts; of two in the middle, the lower one."""
    every_word = sorted(set().union(*readings))
    return Counter({word: median_low(words[word] for words in readings) for word in every_word})


def measure(kind, paths, options):
    """Print what the readers of a kind read of its files."""
    lines = WORDS.read_text(encoding='utf-8').split('\n')
    known = {word.lower().removesuffix("'s") for word in lines}
    shown = shown_by_chromium(paths) if kind == 'page' else {}
    totals = {name: Total() for name in READERS[kind]}
    for path in paths:
        readings = {}
        for name, read in READERS[kind].items():
            begun = time.process_time()
            try:
                readings[name] = words_of(read(path))
            except Exception as error:
                print(f'{path.name}: {name}: {type(error).__name__}: {error}'[:150])
                readings[name] = Counter()
                totals[name].n_failed += 1
            totals[name].seconds += time.process_time() - begun
        judges = [words for name, words in readings.items() if (kind, name) != ('pdf', OURS)]
        right = words_of(shown[path]) if path in shown else agreed_words(judges)
        for name, words in readings.items():
            counts = Counter(
                right=right.total(),
                missing=(right - words).total(),
                added=(words - right).total(),
                words=words.total(),
                known=sum(n for word, n in words.items() if word in known),
                long=sum(n for word, n in words.items() if len(word) >= LONG),
            )
            totals[name].counts += counts
            if options.each:
                print(f'{path.name} {name}: {dict(counts)}')
    print(f'{len(paths)} files of kind {kind}')
    for name, total in totals.items():
        counts = total.counts
        right = max(1, counts['right'])
        print(
            f'{name:15} missing {100 * counts["missing"] / right:5.2f}, '
            f'added {100 * counts["added"] / right:6.2f}, '
            f'known {counts["known"] / max(1, counts["words"]):.3f}, '
            f'{counts["words"]} words, {counts["long"]} long, '
            f'{total.n_failed} failed, {total.seconds:.1f} s of processor time'
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('folder', type=Path, help='where the repositories are')
    parser.add_argument('--kind', nargs='+', choices=list(READERS), default=list(READERS))
    parser.add_argument('--each', action='store_true', help='print the counts of each file')
    options = parser.parse_args()
    sources = yaml.safe_load(Path(__file__).with_suffix('.yaml').read_text(encoding='utf-8'))
    for kind in options.kind:
        paths = []
        for source in sources:
            if source['kind'] == kind:
                repository = options.folder / Path(source['repository']).name
                paths += [repository / name for name in source['files']]
        missing = [path for path in paths if not path.is_file()]
        for path in missing:
            print(f'{path} is not there: readings.yaml says how to get it')
        if not missing:
            measure(kind, paths, options)


if __name__ == '__main__':
    main()
