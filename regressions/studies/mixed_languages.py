"""From which share of German files on a multilingual encoder is better: `docs/guides/languages.md`.

    python regressions/studies/mixed_languages.py regressions/studies/folders --work FOLDER
      [--encoders minilm e5-small] [--draws 4]

Mixes of 60 files of the folder `mixed` of `off_topic_folders.py`, with a growing share of German
ones, are searched by the default fusion. A row has the nDCG@10 of each encoder for questions in the
language of the file that answers, and for all questions in English.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
from off_topic_folders import read_rows, write_folders
from small_folders import HITS, RANKINGS, gain, read_folder

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.searching import CollectionSearcher
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.lucene.guessing import guess_language
from pyserini_repbert.ranking import Query

FILES = 60
SHARES = (0.0, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


@dataclass(frozen=True)
class Asked:
    """A question, its language, the beginning of the answering file's name, and its language."""

    question: str
    language: str
    answer: str
    of_answer: str


def read_questions(sources: Path, work: Path, german: set[str]) -> list[Asked]:
    """The questions about the folders, and their translations; `german` are names of files."""

    def language_of(answer: str) -> str:
        return 'de' if any(name.startswith(answer) for name in german) else 'en'

    asked = []
    for source in sorted(sources.glob('*.txt')):
        for question, answer in read_folder(source, work / 'mixed' / source.stem):
            name = f'{source.stem}/{answer}'
            asked.append(Asked(question, language_of(name), name, language_of(name)))
    for folder, language, question, answer in read_rows(sources / 'translated.tsv'):
        name = f'{folder}/{answer}'
        asked.append(Asked(question, language, name, language_of(name)))
    return asked


def ranks(searcher: CollectionSearcher, asked: Sequence[Asked], files: list[str]) -> list[int]:
    """The rank of each question's answer among some files."""
    within = searcher.within(DocumentFilter(only_ids=frozenset(files)))
    topics = [Query(str(number), each.question) for number, each in enumerate(asked)]
    run = within.rank(topics, None, HITS)
    found = []
    for topic, each in zip(topics, asked, strict=True):
        rank = HITS + 1
        for number, docid in enumerate(run[topic.qid].docids, 1):
            if docid.startswith(each.answer):
                rank = min(rank, number)
        found.append(rank)
    return found


# The share of German files of a mix, and its files.
Mix = tuple[float, tuple[str, ...]]


def draw_mixes(names: set[str], german: set[str], draws: int) -> list[Mix]:
    """The mixes of all shares, `draws` of each."""
    drawn = random.Random(1)
    mixes = []
    for share in SHARES:
        n_german = round(FILES * share)
        for _ in range(draws):
            chosen = drawn.sample(sorted(german), n_german)
            chosen += drawn.sample(sorted(names - german), FILES - n_german)
            mixes.append((share, tuple(chosen)))
    return mixes


def gains(
    index: Path, mixes: list[Mix], asked: list[Asked]
) -> dict[tuple[float, str], list[float]]:
    """The gains of all questions, by the share of German files and the kind of question."""
    cells: dict[tuple[float, str], list[float]] = {}
    with Collection.open(index) as collection:
        generation = collection.generation
        docids = generation.docids(np.flatnonzero(generation.live_documents))
        with closing(collection.searcher(rankings=RANKINGS)) as searcher:
            for share, chosen in mixes:
                # Rows of a table are documents of their own.
                files = [docid for docid in docids if docid.startswith(chosen)]
                own = [each for each in asked if any(f.startswith(each.answer) for f in files)]
                for each, rank in zip(own, ranks(searcher, own, files), strict=True):
                    if each.language == each.of_answer:
                        cells.setdefault((share, 'same'), []).append(gain(rank))
                    if each.language == 'en':
                        cells.setdefault((share, 'English'), []).append(gain(rank))
    return cells


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('sources', type=Path, help='folder of *.txt and translated.tsv')
    parser.add_argument('--work', type=Path, required=True)
    parser.add_argument('--encoders', nargs='+', default=['minilm', 'e5-small'])
    parser.add_argument('--draws', type=int, default=4, help='mixes of each share')
    options = parser.parse_args()
    write_folders(options.sources, options.work)
    mixed = options.work / 'mixed'
    names = {str(path.relative_to(mixed)) for path in mixed.rglob('*') if path.is_file()}
    german = {name for name in names if guess_language([(mixed / name).read_text('utf-8')]) == 'de'}
    asked = read_questions(options.sources, options.work, german)
    mixes = draw_mixes(names, german, options.draws)
    of_encoders = []
    for encoder in options.encoders:
        index = options.work / f'mixed-{encoder}'
        if not index.exists():
            with Collection.open(index, encoder=encoder) as collection:
                collection.sync(mixed)
        of_encoders.append(gains(index, mixes, asked))
    rows = []
    for share in SHARES:
        row = [f'{share:.2f}'.removeprefix('0')]
        for kind in ('same', 'English'):
            row.append(str(len(of_encoders[0][share, kind])))
            row += [f'{mean(cells[share, kind]):.3f}'.removeprefix('0') for cells in of_encoders]
        rows.append(row)
    heads = ['German files']
    for kind in ('in the language of the file', 'in English'):
        heads += [f'questions {kind}', *options.encoders]
    print(markdown(heads, rows))


if __name__ == '__main__':
    main()
