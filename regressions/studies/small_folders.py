"""Questions about folders of persons: what chance changes in the default fusion.

    python regressions/studies/small_folders.py regressions/studies/folders/*.txt --work FOLDER
      [--encoders e5-small minilm] [--languages en de]

Each file has a folder's files and questions about them, with the files that answer: '=== PATH'
begins a file, and '??? QUESTION|PATH' is a question. `notes`, `joiner` and `years` are English and
German, `teacher` is German. Questions of at most three words are names and subjects. In `years`,
files and mails differ by their year, which each question names. All were written for this study,
before any search.

The default counts a ranking's best hit for less where chance gives as good a one
(`Ranking.background`). The column before it does not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import log2, sqrt
from pathlib import Path
from statistics import mean, stdev

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.rankings import default_fusion
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.fusion.fusing import fuse_runs
from pyserini_repbert.ranking import NO_HITS, Background, Query, Ranking

HITS = 10
RANKINGS = ('dense', 'bm25')
NAMES = ('dense', 'BM25', 'without chance', 'default')
# Questions of so many words are names and subjects.
FEW_WORDS = 3


@dataclass(frozen=True)
class Asked:
    """A question, the file that answers it, and its two rankings."""

    question: str
    answer: str
    dense: Ranking
    words: Ranking

    @property
    def is_short(self) -> bool:
        """Whether it is a name or a subject."""
        return len(self.question.split()) <= FEW_WORDS

    def ranking(self, name: str) -> Ranking:
        """The ranking of a column of the table."""
        if name == 'dense':
            return self.dense
        if name == 'BM25':
            return self.words
        parts = [self.dense, self.words]
        if name == 'without chance':
            parts = [part.with_background(Background(part.background.score)) for part in parts]
        runs = [{'1': part} for part in parts]
        return fuse_runs(runs, default_fusion(RANKINGS), HITS)['1']

    def rank(self, name: str) -> int:
        """The rank of the answer, from 1; beyond `HITS` where it is not among the hits."""
        for number, docid in enumerate(self.ranking(name).docids[:HITS], 1):
            # Rows of a table are documents of their own.
            if docid.startswith(self.answer):
                return number
        return HITS + 1


def read_folder(source: Path, folder: Path) -> list[tuple[str, str]]:
    """Write the files of a folder; its questions with their answers."""
    questions = []
    lines_of: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in source.read_text('utf-8').splitlines():
        if line.startswith('=== '):
            lines = lines_of.setdefault(line[4:], [])
        elif line.startswith('??? '):
            question, _, answer = line[4:].partition('|')
            questions.append((question, answer))
        else:
            lines.append(line)
    for name, written in lines_of.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('\n'.join(written).strip() + '\n', 'utf-8')
    return questions


def ask(
    folder: Path, index: Path, encoder: str, language: str, questions: list[tuple[str, str]]
) -> list[Asked]:
    """Make a collection of a folder, unless it is there, and search it."""
    settings = {'encoder': encoder}
    if language:
        settings['language'] = language
    is_new = not index.exists()
    with Collection.open(index, **settings) as collection:
        if is_new:
            collection.sync(folder)
        with closing(collection.searcher(rankings=RANKINGS)) as searcher:
            dense, words = searcher.parts
            found = []
            for question, answer in questions:
                topic = Query('1', question)
                by_vectors = dense.rank([topic], None, None)['1']
                by_words = words.rank([topic], None, None).get('1', NO_HITS)
                found.append(Asked(question, answer, by_vectors, by_words))
    return found


def gain(rank: int) -> float:
    """nDCG@10 of a question with one answer."""
    return 1 / log2(rank + 1) if rank <= HITS else 0.0


def cell(asked: Sequence[Asked], name: str, measure: Callable[[int], float] = gain) -> str:
    """'.923 (.012 ± .010), 33 first, 39 in three': the difference is that from the default without
    chance."""
    ranks = [each.rank(name) for each in asked]
    values = [measure(rank) for rank in ranks]
    differences = []
    for value, each in zip(values, asked, strict=True):
        differences.append(value - measure(each.rank('without chance')))
    error = stdev(differences) / sqrt(len(differences))
    n_first = sum(rank == 1 for rank in ranks)
    n_three = sum(rank <= 3 for rank in ranks)
    off = f' ({mean(differences):+.3f} ± {error:.3f})' if error else ''
    return f'{mean(values):.3f}{off}, {n_first}, {n_three}'


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('folders', nargs='+', type=Path)
    parser.add_argument('--work', type=Path, required=True)
    parser.add_argument('--encoders', nargs='+', default=['e5-small', 'minilm'])
    parser.add_argument('--languages', nargs='+', default=[''], help='default: as a sync chooses')
    options = parser.parse_args()
    rows = []
    for source in options.folders:
        folder = options.work / source.stem
        questions = read_folder(source, folder)
        for encoder in options.encoders:
            for language in options.languages:
                index = options.work / '-'.join((source.stem, encoder, language or 'chosen'))
                asked = ask(folder, index, encoder, language, questions)
                name = ', '.join(filter(None, (source.stem, encoder, language)))
                for kind, is_short in (('names', True), ('sentences', False)):
                    some = [each for each in asked if each.is_short is is_short]
                    cells = [cell(some, column) for column in NAMES]
                    rows.append([f'{name}, {kind} ({len(some)})', *cells])
    print(markdown(['', *NAMES], rows))


if __name__ == '__main__':
    main()
