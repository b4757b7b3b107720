"""Documents in another language than the question: what if their vectors stood for words, too?

    python regressions/studies/other_languages.py --xquad FOLDER --work WORK
      [--folders regressions/studies/folders/*.txt] [--encoders e5-small minilm]
      [--shares 0 .5 .75 1]

The default fusion adds .6 of a document's share of the best vector score to .4 of its share of the
best word score. Words cannot find a document in another language. Here, such a document has at
least SHARE of its vector's share as its share of words; 0 is the default.

The language of a document is guessed from its frequent words, and the one of a question is the one
whose list has most of its words, at least two. Where either is not known, nothing changes. Sources
and groups of questions are those of `frequent_words.py`. The cells are nDCG@10, and how often an
answer is among the first three.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import mean

from frequent_words import Asked, first_answer, read_questions
from small_folders import RANKINGS, gain

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.rankings import default_fusion
from pyserini_repbert.data.word_forms import unite
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.fusion.fusing import scaled
from pyserini_repbert.fusion.methods import Normalization
from pyserini_repbert.lucene.frequent_words import frequent_words
from pyserini_repbert.lucene.guessing import guess_language
from pyserini_repbert.ranking import NO_HITS, Query, Ranking, by_score

_FEWEST_WORDS = 2
_CHARACTERS = 4000


def language_of_question(question: str) -> str | None:
    """The language whose list of frequent words has most of a question's words."""
    words = set(unite(question).lower().split())
    counts = Counter({name: len(words & listed) for name, listed in frequent_words().items()})
    (best, n_best), (_, n_second) = counts.most_common(2)
    return best if n_best >= _FEWEST_WORDS and n_best > n_second else None


def shares_of_best(ranking: Ranking) -> dict[str, float]:
    """The score of each hit above the background, as a share of the best one's."""
    if not ranking.docids:
        return {}
    values = scaled(ranking.scores, Normalization.BACKGROUND, ranking.background)
    return dict(zip(ranking.docids, values.tolist(), strict=True))


def fused(
    vectors: Mapping[str, float],
    words: Mapping[str, float],
    other_language: set[str],
    share: float,
) -> Ranking:
    """The default fusion, in which `share` of the vectors stands for words where these cannot."""
    of_vectors, of_words = default_fusion(RANKINGS).weights_for(2)
    scores = {}
    for docid in vectors.keys() | words.keys():
        by_vector = vectors.get(docid, 0.0)
        by_words = words.get(docid, 0.0)
        if docid in other_language:
            by_words = max(by_words, share * by_vector)
        scores[docid] = of_vectors * by_vector + of_words * by_words
    return by_score(list(scores), list(scores.values()))


def measured(
    index: Path, source: Path, encoder: str, asked: Sequence[Asked], shares: Sequence[float]
) -> Iterator[list[str]]:
    """A row for each group of questions: vectors alone, and fused with each share."""
    is_new = not index.exists()
    ranks: dict[tuple[str, str], list[int]] = {}
    with Collection.open(index, encoder=encoder) as collection:
        if is_new:
            collection.sync(source)
        with closing(collection.searcher(rankings=RANKINGS)) as searcher:
            dense, bm25 = searcher.parts
            language_of: dict[str, str | None] = {}
            for each in asked:
                topic = Query('1', each.question)
                by_vectors = dense.rank([topic], None, None)['1']
                by_words = bm25.rank([topic], None, None).get('1', NO_HITS)
                if not language_of:
                    texts = collection.generation.texts(by_vectors.docids)
                    for docid, text in zip(by_vectors.docids, texts, strict=True):
                        language_of[docid] = guess_language([(text or '')[:_CHARACTERS]])
                own = language_of_question(each.question)
                others = {
                    docid for docid, name in language_of.items() if own and name not in (None, own)
                }
                rank = first_answer(by_vectors, each.answers)
                ranks.setdefault((each.group, 'vectors'), []).append(rank)
                vectors = shares_of_best(by_vectors)
                words = shares_of_best(by_words)
                for share in shares:
                    rank = first_answer(fused(vectors, words, others, share), each.answers)
                    ranks.setdefault((each.group, f'{share:g}'), []).append(rank)
    for group in dict.fromkeys(each.group for each in asked):
        columns = ['vectors', *(f'{share:g}' for share in shares)]
        row = [f'{index.name}, {group} ({len(ranks[group, "vectors"])})']
        for column in columns:
            own_ranks = ranks[group, column]
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
    parser.add_argument('--shares', nargs='+', type=float, default=[0, 0.5, 0.75, 1])
    options = parser.parse_args()
    asked_of = read_questions(options.xquad, options.folders, options.work)
    rows: list[list[str]] = []
    for source, asked in asked_of.items():
        for encoder in options.encoders:
            index = options.work / f'{source.stem}, {encoder}'
            rows += measured(index, source, encoder, asked, options.shares)
    print(markdown(['', 'vectors', *(f'fused, {share:g}' for share in options.shares)], rows))


if __name__ == '__main__':
    main()
