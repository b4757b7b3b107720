"""How often a hit names the section that answers: heading, address, line and snippet follow it.

Questions about the pages in docs/, each with the section that answers it, are asked of a collection
of these pages, as `index sync` makes it. A hit names a section if it has the anchor of the
section, or of one within it. With the 60 questions of heading_questions.tsv, the choice of what is
shown was made; the 20 of section_questions.tsv, about sections drawn at random, were written
before they were asked. Beside it stands what the nearest vector alone would show.

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

FURTHER_QUESTIONS = Path(__file__).with_name('section_questions.tsv')
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
    nearest : of the section that the nearest vector alone would name
    """

    question: str
    wanted: frozenset[str]
    rank: int
    anchor: str
    nearest: str


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


def answers_of(searcher, pages, questions):
    """The answers to the questions of a file."""
    answers = []
    for line in questions.read_text(encoding='utf-8').splitlines():
        question, _, address = line.partition('\t')
        docid, _, anchor = address.partition('#')
        wanted = anchors_of(pages[docid], anchor)
        docids = [hit.docid for hit in searcher.search(question, HITS)]
        rank = docids.index(docid) + 1 if docid in docids else 0
        (shown,) = searcher.dense.answering_excerpts(question, [docid])[docid]
        (nearest,) = searcher.dense.excerpts(question, [docid])[docid]
        answers.append(Answer(question, wanted, rank, shown.anchor, nearest.anchor))
    return answers


def print_answers(answers, lists):
    """Print how many name the right section; `lists`: also those that do not."""
    for answer in answers:
        if lists and answer.rank and answer.anchor not in answer.wanted:
            wanted = sorted(answer.wanted)[:3]
            print(f'  {answer.rank} {answer.question}: {answer.anchor}, not {wanted}')
    first = [answer for answer in answers if answer.rank == 1]
    found = [answer for answer in answers if answer.rank]
    for what, some in (('first', first), (f'among {HITS} hits', found), ('whatever', answers)):
        n_right = sum(answer.anchor in answer.wanted for answer in some)
        n_nearest = sum(answer.nearest in answer.wanted for answer in some)
        print(
            f'page {what}: {len(some)} of {len(answers)}, section right: {n_right}, '
            f'by vectors alone {n_nearest}'
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--encoder', default='minilm')
    parser.add_argument('--index', type=Path, help='a collection of docs/, to ask again')
    parser.add_argument('--list', action='store_true')
    options = parser.parse_args()
    pages = {page.docid: page for page in read_pages()}
    with tempfile.TemporaryDirectory() as folder:
        index = options.index or Path(folder) / 'docs'
        with Collection.open(index, encoder=options.encoder) as collection:
            if not is_collection(index):
                corpus = open_corpus(ROOT / 'docs', selection=FileSelection(include=('*.md',)))
                collection.sync(corpus)
            with closing(collection.searcher()) as searcher:
                for questions in (QUESTIONS, FURTHER_QUESTIONS):
                    print(f'{questions.name}:')
                    print_answers(answers_of(searcher, pages, questions), options.list)


if __name__ == '__main__':
    main()
