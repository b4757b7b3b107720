"""What the encoder should read in front of a passage: nothing, the title, or title and headings.

60 questions about the pages in docs/, written before this was measured, each with the section that
answers it (heading_questions.tsv). Passages are cut as collections cut them. A question's rank is
the rank of the first passage of its page, and of its section: it has half of the section, or the
section half of the passage.

    python benchmarks/headings.py
    python benchmarks/headings.py --encoder repbert-demo
"""

import argparse
from pathlib import Path

import numpy as np

from pyserini_repbert.collection.files.markdown_documents import document_of_markdown
from pyserini_repbert.collection.passages import PassageCutter
from pyserini_repbert.systems.encoders import document_encoder, query_encoder

ROOT = Path(__file__).parents[1]
QUESTIONS = Path(__file__).with_name('heading_questions.tsv')
DEPTH = 10


def read_pages():
    """The documents of docs/."""
    pages = []
    for path in sorted((ROOT / 'docs').rglob('*.md')):
        name = path.relative_to(ROOT / 'docs').as_posix()
        pages.append(document_of_markdown(name, path.read_text(encoding='utf-8'), path.stem))
    return pages


def section_of(document, anchor):
    """The characters of a section, with the sections within it."""
    headings = document.origin.headings
    (row,) = [number for number, own in enumerate(headings) if own.anchor == anchor]
    later = [own.start for own in headings[row + 1 :] if own.level <= headings[row].level]
    return headings[row].start, min(later, default=len(document.text))


def reciprocal_ranks(scores, is_right):
    """1 / rank of the first right passage for each question, 0 beyond DEPTH."""
    values = []
    for question, row in enumerate(scores):
        best = np.argsort(-row, kind='stable')
        ranks = np.flatnonzero(is_right[question][best])
        values.append(1 / (ranks[0] + 1) if len(ranks) and ranks[0] < DEPTH else 0.0)
    return np.array(values)


def page_ranks(scores, pages_of_passages, pages):
    """The same for pages, each ranked by its best passage."""
    values = []
    for row, page in zip(scores, pages, strict=True):
        order = list(dict.fromkeys(pages_of_passages[np.argsort(-row, kind='stable')]))
        rank = order.index(page) + 1
        values.append(1 / rank if rank <= DEPTH else 0.0)
    return np.array(values)


def p_value(differences, rounds=20_000):
    """Of a randomisation test: how often signs by chance give as great a difference of means."""
    signs = np.random.default_rng(0).choice([-1, 1], (rounds, len(differences)))
    means = np.abs((signs * differences).mean(axis=1))
    return float((means >= abs(differences.mean()) - 1e-12).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--encoder', default='minilm')
    options = parser.parse_args()
    encoder = document_encoder(options.encoder)
    queries = query_encoder(options.encoder)
    documents = read_pages()
    cutter = PassageCutter(encoder.tokenizer.backend, encoder.limit - 2)
    headings = [[own.start for own in page.origin.headings] for page in documents]
    cut = cutter.cut([''] * len(documents), [page.text for page in documents], headings)
    inputs = {'none': [], 'title': [], 'title, headings': []}
    passages = []
    for page, parts in zip(documents, cut, strict=True):
        for part in parts:
            path = [own.title for own in page.origin.headings_at(part.start)]
            inputs['none'].append(part.input)
            inputs['title'].append(f'{page.title} {part.input}')
            inputs['title, headings'].append(' › '.join([page.title, *path]) + ' ' + part.input)
            passages.append((page.docid, part.start, part.end))
    lines = QUESTIONS.read_text(encoding='utf-8').splitlines()
    questions = [line.split('\t') for line in lines]
    by_docid = {page.docid: page for page in documents}
    is_right = np.zeros((len(questions), len(passages)), bool)
    for row, (_, answer) in enumerate(questions):
        docid, _, anchor = answer.partition('#')
        start, end = section_of(by_docid[docid], anchor)
        for column, (page, first, last) in enumerate(passages):
            overlap = min(end, last) - max(start, first)
            is_right[row, column] = page == docid and overlap > min(end - start, last - first) / 2
    assert is_right.any(axis=1).all(), 'a section has no passage of its own'
    asked = queries.encode_batch([question for question, _ in questions])
    pages_of_passages = np.array([page for page, _, _ in passages])
    wanted = [answer.partition('#')[0] for _, answer in questions]
    found = {}
    for name, texts in inputs.items():
        scores = asked @ encoder.embed(texts).T
        sections = reciprocal_ranks(scores, is_right)
        found[name] = (page_ranks(scores, pages_of_passages, wanted), sections)
    print(f'{len(documents)} pages, {len(passages)} passages, {len(questions)} questions')
    print('| read in front of a passage | MRR@10 of pages | MRR@10 of sections |\n|---|---:|---:|')
    for name, (pages, sections) in found.items():
        print(f'| {name} | {pages.mean():.3f} | {sections.mean():.3f} |')
    for name in ('none', 'title, headings'):
        for row, what in enumerate(('pages', 'sections')):
            differences = found[name][row] - found['title'][row]
            better = sum(differences > 0)
            worse = sum(differences < 0)
            print(
                f'{name} - title, {what}: {differences.mean():+.3f}, better {better}, '
                f'worse {worse}, p {p_value(differences):.3f}'
            )


if __name__ == '__main__':
    main()
