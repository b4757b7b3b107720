"""Documents whose language is not the question's: is it better if vectors stand for their words?

    python regressions/studies/other_languages.py --xquad FOLDER --work WORK
      [--folders regressions/studies/folders/*.txt] [--encoders e5-small minilm]

The default fusion adds .6 of a document's share of the best vector score to .4 of its share of the
best word score. Words cannot find a document in another language, so at least its share of vectors
stands for its share of words. The study compares this with the words' shares as they are.

Sources and groups of questions are those of `frequent_words.py`. The cells are nDCG@10, and how
often an answer is among the first three.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from statistics import mean

from frequent_words import HITS, Asked, first_answer, read_questions
from small_folders import RANKINGS, gain

from pyserini_repbert.collection import Collection
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.fusion.fusing import fuse_runs
from pyserini_repbert.ranking import Query

COLUMNS = ('vectors', 'words as they are', 'fused')


def measured(
    index: Path, source: Path, encoder: str, asked: Sequence[Asked]
) -> Iterator[list[str]]:
    """A row for each group of questions."""
    is_new = not index.exists()
    ranks: dict[tuple[str, str], list[int]] = {}
    with Collection.open(index, encoder=encoder) as collection:
        if is_new:
            collection.sync(source)
        with closing(collection.searcher(rankings=RANKINGS)) as searcher:
            for each in asked:
                topics = [Query('1', each.question)]
                runs = [part.rank(topics, None, None) for part in searcher.parts]
                rankings = {
                    'vectors': runs[0]['1'],
                    'words as they are': fuse_runs(runs, searcher.settings, HITS)['1'],
                    'fused': searcher.fused(topics, runs, HITS)['1'],
                }
                for name, ranking in rankings.items():
                    rank = first_answer(ranking, each.answers)
                    ranks.setdefault((each.group, name), []).append(rank)
    for group in dict.fromkeys(each.group for each in asked):
        row = [f'{index.name}, {group} ({len(ranks[group, "vectors"])})']
        for name in COLUMNS:
            own_ranks = ranks[group, name]
            in_three = sum(rank <= 3 for rank in own_ranks)
            row.append(f'{mean(map(gain, own_ranks)):.3f}, {in_three}')
        yield row


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--xquad', type=Path)
    parser.add_argument('--work', type=Path, required=True)
    parser.add_argument('--folders', nargs='*', type=Path, default=[])
    parser.add_argument('--encoders', nargs='+', default=['e5-small', 'minilm'])
    options = parser.parse_args()
    asked_of = read_questions(options.xquad, options.folders, options.work)
    rows: list[list[str]] = []
    for source, asked in asked_of.items():
        for encoder in options.encoders:
            index = options.work / f'{source.stem}, {encoder}'
            rows += measured(index, source, encoder, asked)
    print(markdown(['', *COLUMNS], rows))


if __name__ == '__main__':
    main()
