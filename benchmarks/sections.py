"""How often a hit names the section that answers: heading, address, line and snippet follow it.

The 60 questions of heading_questions.tsv about the pages in docs/, each with the section that
answers it, are asked of a collection of these pages, as `index sync` makes it. A hit names a
section if its anchor is that of the section, or of one within it.

    python benchmarks/sections.py
    python benchmarks/sections.py --list     # also the hits that name another section
"""

import argparse
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from headings import QUESTIONS, ROOT, read_pages

from pyserini_repbert.collection import Collection
from pyserini_repbert.data.file_selection import FileSelection
from pyserini_repbert.index.manifest import is_collection
from pyserini_repbert.names.corpora import open_corpus

HITS = 10


@dataclass(frozen=True)
class Answer:
    """The hit of the page that answers a question.

    Attributes
    ----------
    question : what was asked
    wanted : the anchors of the section that answers, and of those within it
    rank : of the page, from 1; 0 where it is not among the hits
    anchor : of the section that its hit names
    """

    question: str
    wanted: frozenset[str]
    rank: int
    anchor: str

    @property
    def is_right(self):
        return self.anchor in self.wanted


def anchors_of(page, anchor):
    """The anchors of a section and of those within it."""
    headings = page.origin.headings
    (row,) = [number for number, own in enumerate(headings) if own.anchor == anchor]
    anchors = [anchor]
    for heading in headings[row + 1 :]:
        if heading.level <= headings[row].level:
            break
        anchors.append(heading.anchor)
    return frozenset(anchors)


def answers_of(searcher, pages):
    """The answers to all questions."""
    answers = []
    for line in QUESTIONS.read_text(encoding='utf-8').splitlines():
        question, _, address = line.partition('\t')
        docid, _, anchor = address.partition('#')
        wanted = anchors_of(pages[docid], anchor)
        rank = 0
        found = ''
        for number, hit in enumerate(searcher.search(question, HITS), 1):
            if hit.docid == docid:
                rank = number
                found = hit.excerpts[0].anchor
        answers.append(Answer(question, wanted, rank, found))
    return answers


def ask(encoder, pages, index):
    """The answers of a collection of the pages; `index` has it, or gets it."""
    with Collection.open(index, encoder=encoder) as collection:
        if not is_collection(index):
            corpus = open_corpus(ROOT / 'docs', selection=FileSelection(include=('*.md',)))
            collection.sync(corpus)
        with closing(collection.searcher()) as searcher:
            return answers_of(searcher, pages)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--encoder', default='minilm')
    parser.add_argument('--index', type=Path, help='a collection of docs/, to ask again')
    parser.add_argument('--list', action='store_true')
    options = parser.parse_args()
    pages = {page.docid: page for page in read_pages()}
    with tempfile.TemporaryDirectory() as folder:
        answers = ask(options.encoder, pages, options.index or Path(folder) / 'docs')
    first = [answer for answer in answers if answer.rank == 1]
    found = [answer for answer in answers if answer.rank]
    for answer in found:
        if options.list and not answer.is_right:
            wanted = sorted(answer.wanted)[:3]
            print(f'{answer.rank} {answer.question}: {answer.anchor}, not {wanted}')
    print(f'{len(answers)} questions')
    for what, some in (('the first hit', first), (f'among {HITS} hits', found)):
        n_right = sum(answer.is_right for answer in some)
        print(f'page {what}: {len(some)}, section right: {n_right}')


if __name__ == '__main__':
    main()
