"""What frequent words of a question count: nDCG@10 of words and of the default fusion, with shares.

    python regressions/studies/frequent_words.py --xquad FOLDER --work WORK
      [--folders regressions/studies/folders/*.txt] [--sets SETS] [--encoders e5-small minilm]
      [--shares 1 .25]

- Of each two LANGUAGES, a collection has the odd paragraphs of XQuAD in one language, and the even
  ones in the other; two questions about each paragraph are asked in both languages. FOLDER has
  `xquad.LANGUAGE.json` of https://github.com/google-deepmind/xquad.
- The folders of persons are described in `small_folders.py`; the SETS in `short_questions.py`.

A share of 1 is BM25 as Pyserini has it; `Bm25DocumentSearcher` has the default.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Container, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import mean, stdev

from small_folders import FEW_WORDS, HITS, RANKINGS, gain, read_folder

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.rankings import default_fusion
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.fusion.fusing import fuse_runs
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.ranking import NO_HITS, Query, Ranking

LANGUAGES = (('en', 'de'), ('en', 'es'), ('en', 'ar'), ('de', 'ru'))
QUESTIONS_OF_PARAGRAPH = 2


@dataclass(frozen=True)
class Asked:
    """A question of a group of questions, and the documents that answer it."""

    group: str
    question: str
    answers: Container[str]


@dataclass(frozen=True)
class Beginning:
    """Documents whose id begins so: rows of a table are documents of their own."""

    start: str

    def __contains__(self, docid: object) -> bool:
        return isinstance(docid, str) and docid.startswith(self.start)


def mixed_xquad(folder: Path, pair: tuple[str, str], corpus: Path) -> list[Asked]:
    """Write a corpus of two languages' paragraphs; its questions, by both languages."""
    articles = []
    for language in pair:
        text = (folder / f'xquad.{language}.json').read_text('utf-8')
        articles.append(json.loads(text)['data'])
    asked = []
    n_paragraphs = 0
    with corpus.open('w', encoding='utf-8') as stream:
        for number, versions in enumerate(zip(*articles, strict=True)):
            both = zip(*(version['paragraphs'] for version in versions), strict=True)
            for place, paragraphs in enumerate(both):
                docid = f'{number}-{place}'
                chosen = (n_paragraphs + 1) % 2
                n_paragraphs += 1
                record = {'id': docid, 'contents': paragraphs[chosen]['context']}
                stream.write(json.dumps(record, ensure_ascii=False) + '\n')
                for language, paragraph in zip(pair, paragraphs, strict=True):
                    for question in paragraph['qas'][:QUESTIONS_OF_PARAGRAPH]:
                        group = f'{language}, documents {pair[chosen]}'
                        asked.append(Asked(group, question['question'], {docid}))
    return asked


def folder_questions(source: Path, folder: Path) -> list[Asked]:
    """Write a person's folder; its questions: names and subjects, and sentences."""
    asked = []
    for question, answer in read_folder(source, folder):
        is_short = len(question.split()) <= FEW_WORDS
        asked.append(Asked('names' if is_short else 'sentences', question, Beginning(answer)))
    return asked


def read_questions(
    xquad: Path | None, folders: Sequence[Path], work: Path
) -> dict[Path, list[Asked]]:
    """Write the mixed collections and the folders of persons; the questions about each, by path."""
    work.mkdir(parents=True, exist_ok=True)
    asked_of: dict[Path, list[Asked]] = {}
    if xquad is not None:
        for pair in LANGUAGES:
            corpus = work / f'{pair[0]}-{pair[1]}.jsonl'
            asked_of[corpus] = mixed_xquad(xquad, pair, corpus)
    for source in folders:
        folder = work / source.stem
        asked_of[folder] = folder_questions(source, folder)
    return asked_of


def set_questions(folder: Path) -> Iterator[Asked]:
    """The questions and the titles of a folder that `short_questions.py` wrote."""
    for kind in ('questions', 'titles'):
        topics = folder / f'{kind}.tsv'
        if not topics.exists():
            continue
        qrels: Qrels = load_qrels(str(folder / f'{kind}.qrels'))
        for topic in load_topics(str(topics)):
            grades = qrels.get(topic.qid, {})
            answers = {docid for docid, grade in grades.items() if grade > 0}
            if answers:
                yield Asked(kind, topic.text, answers)


def first_answer(ranking: Ranking, answers: Container[str]) -> int:
    """The rank of the first document that answers, from 1; beyond `HITS` if none of them does."""
    for rank, docid in enumerate(ranking.docids[:HITS], 1):
        if docid in answers:
            return rank
    return HITS + 1


def measured(
    index: Path, source: Path, encoder: str, asked: list[Asked], shares: list[float]
) -> Iterator[list[str]]:
    """A row for each group: words and fusion with each share, beside the difference of the last
    from the first.
    """
    is_new = not index.exists()
    gains: dict[tuple[str, str, float], list[float]] = {}
    with Collection.open(index, encoder=encoder) as collection:
        if is_new:
            collection.sync(source)
        with closing(collection.searcher(rankings=RANKINGS)) as searcher:
            dense, words = searcher.parts
            for each in asked:
                topic = Query('1', each.question)
                by_vectors = dense.rank([topic], None, None)
                for share in shares:
                    shared = words.with_settings(word_share=share)
                    by_words = {'1': shared.rank([topic], None, None).get('1', NO_HITS)}
                    runs = {
                        'words': by_words,
                        'fusion': fuse_runs([by_vectors, by_words], default_fusion(RANKINGS), HITS),
                    }
                    for name, run in runs.items():
                        value = gain(first_answer(run['1'], each.answers))
                        gains.setdefault((each.group, name, share), []).append(value)
    for group in dict.fromkeys(each.group for each in asked):
        row = [f'{index.name}, {group} ({len(gains[group, "words", shares[0]])})']
        for name in ('words', 'fusion'):
            columns = [gains[group, name, share] for share in shares]
            row += [f'{mean(column):.3f}' for column in columns]
        differences = [new - old for old, new in zip(columns[0], columns[-1], strict=True)]
        error = stdev(differences) / sqrt(len(differences))
        yield [*row, f'{mean(differences):+.3f} ± {error:.3f}']


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--xquad', type=Path)
    parser.add_argument('--work', type=Path, required=True)
    parser.add_argument('--folders', nargs='*', type=Path, default=[])
    parser.add_argument('--sets', nargs='*', type=Path, default=[])
    parser.add_argument('--encoders', nargs='+', default=['e5-small', 'minilm'])
    parser.add_argument('--shares', nargs='+', type=float, default=[1, 0.25])
    options = parser.parse_args()
    asked_of = read_questions(options.xquad, options.folders, options.work)
    for folder in options.sets:
        asked_of[folder / 'docs.jsonl'] = list(set_questions(folder))
    rows: list[list[str]] = []
    for source, asked in asked_of.items():
        name = source.parent.name if source.name == 'docs.jsonl' else source.stem
        for encoder in options.encoders:
            index = options.work / f'{name}, {encoder}'
            rows += measured(index, source, encoder, asked, options.shares)
    shares = [f'{share:g}' for share in options.shares]
    head = ['', *(f'words, {share}' for share in shares), *(f'fused, {share}' for share in shares)]
    print(markdown([*head, 'difference'], rows))


if __name__ == '__main__':
    main()
