"""Questions about persons' folders: the words' share of the fusion, and Lucene's analyzer.

    python regressions/studies/small_folders.py regressions/studies/folders/*.txt --work FOLDER
      [--encoders e5-small minilm] [--languages en de]

Each file has a folder's files and questions about them, with the files that answer: '=== PATH'
begins a file, and '??? QUESTION|PATH' is a question. `notes`, `joiner` and `years` are English and
German, `teacher` is German. They were written for this study, before any search. `notes` and
training topics of test collections chose `DEVIATIONS`; the other folders chose nothing. In `years`,
files and mails differ by their year, which each question names.

The last column fuses with less of BM25 where its best hit is no more than chance. A document has a
word of weight w by chance with a probability of exp(-w), and gets w / (1 + k1) for it. BM25's best
score counts as a share of the chance score plus `DEVIATIONS` deviations, or of what a document with
all words of the question gets, whichever is less; its share is at most 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import exp, log2, sqrt
from pathlib import Path
from statistics import mean, stdev

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.bm25_search import Bm25DocumentSearcher
from pyserini_repbert.collection.rankings import DENSE_SHARE, default_fusion
from pyserini_repbert.data.word_forms import unite
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.fusion.fusing import fuse_runs
from pyserini_repbert.lucene.analysis import analyzer_of
from pyserini_repbert.ranking import NO_HITS, Query, Ranking

HITS = 10
DEVIATIONS = 5
K1 = 0.9  # Anserini's default
RANKINGS = ('dense', 'bm25')
NAMES = ('dense', 'BM25', 'default', 'less of BM25')


@dataclass(frozen=True)
class Asked:
    """A question, the file that answers it, and its two rankings."""

    answer: str
    dense: Ranking
    words: Ranking
    # What is left of BM25's share.
    share: float

    def ranking(self, name: str) -> Ranking:
        """The ranking of a column of the table."""
        if name == 'dense':
            return self.dense
        if name == 'BM25':
            return self.words
        share = self.share if name == NAMES[-1] else 1.0
        settings = default_fusion(RANKINGS)
        settings = settings.changed(alpha=[DENSE_SHARE, share * (1 - DENSE_SHARE)])
        return fuse_runs([{'1': self.dense}, {'1': self.words}], settings, HITS)['1']

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
                by_words = words.rank([topic], None, None).get('1', NO_HITS)
                share = share_of(words, question, by_words)
                found.append(Asked(answer, dense.rank([topic], None, None)['1'], by_words, share))
    return found


def share_of(words: Bm25DocumentSearcher, question: str, hits: Ranking) -> float:
    """What is left of BM25's share of the fusion."""
    if not hits:
        return 1.0
    united = unite(question, words.language)
    chance = 0.0
    variance = 0.0
    everything = 0.0
    for token in analyzer_of(words.language).tokens(united):
        weight = words.greatest_score(united[token.start : token.end])
        score = weight / (1 + K1)
        probability = exp(-weight)
        chance += probability * score
        variance += probability * (1 - probability) * score**2
        everything += score
    enough = min(chance + DEVIATIONS * sqrt(variance), everything)
    return min(1.0, hits.scores[0] / enough) if enough else 1.0


def gain(rank: int) -> float:
    """nDCG@10 of a question with one answer."""
    return 1 / log2(rank + 1) if rank <= HITS else 0.0


def cell(asked: Sequence[Asked], name: str, measure: Callable[[int], float] = gain) -> str:
    """'.923 (.012 ± .010), 33 first, 39 in three': the difference is that from the default."""
    ranks = [each.rank(name) for each in asked]
    values = [measure(rank) for rank in ranks]
    differences = []
    for value, each in zip(values, asked, strict=True):
        differences.append(value - measure(each.rank('default')))
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
                cells = [cell(asked, column) for column in NAMES]
                rows.append([f'{name} ({len(asked)})', *cells])
    print(markdown(['', *NAMES], rows))


if __name__ == '__main__':
    main()
