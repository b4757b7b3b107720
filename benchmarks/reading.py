"""What reading and cutting Markdown costs beside encoding it, on one core; pages of PDF a second.

The pages in docs/ are read, cut as collections cut them, and encoded by MiniLM. PDF files need the
extra `files`.

    OMP_NUM_THREADS=1 python benchmarks/reading.py [--pdf FILE …]
"""

import argparse
import time
from pathlib import Path

import torch

from pyserini_repbert.collection.passages import PassageCutter
from pyserini_repbert.data.file_to_read import FileToRead
from pyserini_repbert.data.markdown_documents import document_of_markdown
from pyserini_repbert.data.office_documents import OfficeReader
from pyserini_repbert.systems.encoders import document_encoder

ROOT = Path(__file__).parents[1]
ROUNDS = 3


def seconds(act):
    """Seconds of a core that an act takes: the least of some rounds."""
    times = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        act()
        times.append(time.process_time() - begun)
    return min(times)


def measure_markdown():
    """Print what reading, cutting and encoding the pages take."""
    texts = [path.read_text(encoding='utf-8') for path in sorted((ROOT / 'docs').rglob('*.md'))]
    model = document_encoder('minilm')
    cutter = PassageCutter(model.tokenizer.backend, model.limit - 2)
    documents = [document_of_markdown('d', text) for text in texts]
    titles = [document.title for document in documents]
    plain = [document.text for document in documents]
    headings = [[own.start for own in document.origin.headings] for document in documents]
    cut = cutter.cut(titles, plain, headings)
    inputs = [passage.input for passages in cut for passage in passages]
    reading = seconds(lambda: [document_of_markdown('d', text) for text in texts])
    cutting = seconds(lambda: cutter.cut(titles, plain, headings))
    begun = time.process_time()
    model.embed(inputs)
    encoding = time.process_time() - begun
    size = sum(map(len, texts)) / 1e6
    print(f'{len(texts)} pages of Markdown, {size:.2f} million characters, {len(inputs)} passages')
    print(f'reading {reading:.2f} s, cutting {cutting:.2f} s, encoding {encoding:.2f} s of a core')
    share = 100 * (reading + cutting) / encoding
    print(f'reading and cutting, of encoding: {share:.1f} % (goal: at most 25)')


def measure_pdf(paths):
    """Print the pages a second of PDF files; the process that reads them is started before."""
    from pdfminer.pdfpage import PDFPage

    with OfficeReader() as reader:
        list(reader.documents(FileToRead(Path(paths[0]), 'd')))
        for path in paths:
            with open(path, 'rb') as stream:
                n_pages = sum(1 for _ in PDFPage.get_pages(stream))
            begun = time.perf_counter()
            (document,) = reader.documents(FileToRead(Path(path), 'd'))
            spent = time.perf_counter() - begun
            print(
                f'{Path(path).name}: {n_pages} pages, {len(document.text)} characters, '
                f'{n_pages / spent:.1f} pages a second'
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--pdf', nargs='+', default=[], metavar='FILE')
    options = parser.parse_args()
    torch.set_num_threads(1)
    measure_markdown()
    if options.pdf:
        measure_pdf(options.pdf)


if __name__ == '__main__':
    main()
