"""What reading and cutting files costs beside encoding them, on one core; pages of PDF a second.

The pages in docs/, or the files of a folder, are read, cut as collections cut them, and 100 of the
passages are encoded by MiniLM, drawn at random. PDF files need the extra `files`.

    OMP_NUM_THREADS=1 python benchmarks/reading.py [FOLDER …] [--pdf FILE …]
"""

import argparse
import random
import time
from pathlib import Path

import torch

from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.office_documents import OfficeReader
from pyserini_repbert.collection.passages import PassageCutter
from pyserini_repbert.data.passages import BadFiles
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.systems.encoders import document_encoder

ROOT = Path(__file__).parents[1]
ROUNDS = 3
ENCODED = 100  # passages


def seconds(act):
    """Seconds of processor time that an act takes: the least of some rounds."""
    times = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        act()
        times.append(time.process_time() - begun)
    return min(times)


def measure_folder(folder):
    """Print what reading, cutting and encoding the files of a folder take."""
    corpus = open_corpus(folder, keep_empty=True).by_file(BadFiles.KEEP)
    model = document_encoder('minilm')
    cutter = PassageCutter(model.tokenizer.backend, model.limit - 2)
    documents = list(corpus.documents())
    titles = [document.title for document in documents]
    texts = [document.text for document in documents]
    headings = [[own.start for own in document.origin.headings] for document in documents]
    inputs = []
    for passages in cutter.cut(titles, texts, headings):
        inputs.extend(passage.input for passage in passages)
    reading = seconds(lambda: list(corpus.documents()))
    cutting = seconds(lambda: cutter.cut(titles, texts, headings))
    drawn = random.Random(0).sample(inputs, min(len(inputs), ENCODED))
    begun = time.process_time()
    model.embed(drawn)
    encoding = (time.process_time() - begun) * len(inputs) / len(drawn)
    size = sum(map(len, texts)) / 1e6
    print(f'{folder}: {len(documents)} documents, {size:.2f} million characters of text')
    print(
        f'{len(inputs)} passages: reading {reading:.2f} s, cutting {cutting:.2f} s, encoding '
        f'{encoding:.1f} s of a core'
    )
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
    parser.add_argument('folders', nargs='*', default=[ROOT / 'docs'], metavar='FOLDER')
    parser.add_argument('--pdf', nargs='+', default=[], metavar='FILE')
    options = parser.parse_args()
    torch.set_num_threads(1)
    for folder in options.folders:
        measure_folder(folder)
    if options.pdf:
        measure_pdf(options.pdf)


if __name__ == '__main__':
    main()
