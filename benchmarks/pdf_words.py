"""Words of PDF files that a word list knows: as the libraries read them that the extra has.

Told are words, the share of them that the list knows, and words of 20 letters or more, which are
mostly several without spaces. Files with less than 100 words in one of the libraries are left out.

    apt install wamerican-large
    python benchmarks/pdf_words.py FOLDER
"""

import argparse
import re
import time
from collections import Counter
from pathlib import Path

import pypdfium2
from markitdown import StreamInfo, converters
from pdfminer.high_level import extract_text

from pyserini_repbert.collection.files.pdf_text import read_pdf

WORDS = Path('/usr/share/dict/american-english-large')
LEAST = 100  # words
LONG = 20  # letters


def of_markitdown(path):
    with open(path, 'rb') as stream:
        info = StreamInfo(extension='.pdf')
        return converters.PdfConverter().convert(stream, info).markdown


def of_pdfium(path):
    document = pypdfium2.PdfDocument(path)
    return '\n'.join(page.get_textpage().get_text_range() for page in document)


READERS = {
    'MarkItDown': of_markitdown,
    'pdfminer': extract_text,
    'PDFium': of_pdfium,
    'ours': lambda path: read_pdf(str(path)).text,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('folder', type=Path)
    options = parser.parse_args()
    lines = WORDS.read_text(encoding='utf-8').split('\n')
    known = {word.lower().removesuffix("'s") for word in lines}
    totals = {name: Counter() for name in READERS}
    n_files = 0
    for path in sorted(options.folder.glob('*.pdf')):
        counts = {}
        for name, read in READERS.items():
            begun = time.perf_counter()
            try:
                text = read(path)
            except Exception as error:
                print(f'{path.name}: {name}: {type(error).__name__}')
                break
            spent = time.perf_counter() - begun
            words = re.findall(r'[^\W\d_]+', text.lower())
            counts[name] = Counter(
                words=len(words),
                known=sum(word in known for word in words if len(word) > 1),
                long=sum(len(word) >= LONG for word in words),
                milliseconds=round(1000 * spent),
            )
        if len(counts) < len(READERS) or min(c['words'] for c in counts.values()) < LEAST:
            continue
        n_files += 1
        for name, count in counts.items():
            totals[name] += count
    print(f'{n_files} files')
    for name, total in totals.items():
        share = total['known'] / max(1, total['words'])
        print(f'{name}: {share:.3f} known of {total["words"]} words, {dict(total)}')


if __name__ == '__main__':
    main()
