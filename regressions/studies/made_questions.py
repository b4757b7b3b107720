"""Can a collection without judgments teach itself? A table of `docs/guides/adapting.md`.

    python regressions/studies/made_questions.py NAME=DENSE,LUCENE,CORPUS[#FIELD],TOPICS,QRELS …

The arguments are those of `fusion_default.py`, and the corpus of both indexes. Questions are made
of 300 documents that a seed draws: the first sentence or title line of each, without its last
stop. Two teachers judge them:

- source: the document of which the question was made is relevant
- reranker: the one that monobert-demo likes best among the default fusion's best 10 is

`adapt` then learns a query map and the weights of the fusion. Both are measured on the
collection's real topics, beside the default fusion, which learns nothing.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fusion_default import DEPTH, MEASURE

from pyserini_repbert.adapt.learning import adapt
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.measures import Evaluation, by_rank, evaluate, parse_measures
from pyserini_repbert.evaluate.significance import compare
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.fusion import fuse
from pyserini_repbert.lucene import LuceneSparseSearcher
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.ranking import Query, Run
from pyserini_repbert.rerank import MonoBertReranker
from pyserini_repbert.search import DenseSearcher

N_QUESTIONS = 300
# A question has at least 4 words, and its document three times as many.
LEAST_WORDS = 4
MOST_WORDS = 30
RERANKED = 10
DEFAULT_WEIGHTS = (0.6, 0.4)


@dataclass(frozen=True)
class Search:
    """The rankings of one collection."""

    dense: DenseSearcher
    bm25: LuceneSparseSearcher

    def run(self, topics: Sequence[Query], weights: tuple[float, ...]) -> Run:
        """The fusion after min-max of both rankings."""
        runs = [self.dense.rank(topics, None, DEPTH), self.bm25.rank(topics, None, DEPTH)]
        return fuse(runs, 'interpolation', DEPTH, weights, normalize='minmax')


def opening(text: str) -> str:
    """The first line or sentence of a text that has enough words; '' without one."""
    for part in re.split(r'(?<=[.?!])\s+|\n', text):
        words = part.split()
        if LEAST_WORDS <= len(words) <= MOST_WORDS:
            return ' '.join(words).rstrip('.')
    return ''


def make_questions(texts: Mapping[str, str]) -> Iterator[tuple[Query, str]]:
    """Questions, and the docid of which each was made."""
    docids = sorted(texts)
    random.Random(0).shuffle(docids)
    n_made = 0
    for docid in docids:
        question = opening(texts[docid])
        if not question or len(texts[docid].split()) < 3 * len(question.split()):
            continue
        yield Query(f'made-{n_made}', question), docid
        n_made += 1
        if n_made == N_QUESTIONS:
            return


def judge_by_reranker(
    questions: Sequence[Query], search: Search, texts: Mapping[str, str]
) -> Qrels:
    """Each question's best document by monoBERT, among the default fusion's best."""
    reranker = MonoBertReranker('monobert-demo')
    run = search.run(questions, DEFAULT_WEIGHTS)
    qrels: Qrels = {}
    for question in questions:
        candidates = run[question.qid][:RERANKED].with_texts(texts)
        (best, *_) = reranker.rerank(question.text, candidates)
        qrels[question.qid] = {best.docid: 1}
    return qrels


def row(name: str, run: Run, qrels: Qrels, baseline: Evaluation | None) -> list[str]:
    """A name, nDCG@10, and the difference from the default with its p."""
    evaluation = evaluate(by_rank(run), qrels, parse_measures([MEASURE]))
    cells = [name, f'{evaluation.means[MEASURE]:.4f}']
    if baseline is None:
        return [*cells, '']
    (comparison,) = compare(baseline, evaluation)
    return [*cells, f'{comparison.difference:+.4f}, p {comparison.p:.2g}']


def study(dense: str, lucene: str, corpus: str, topics: str, qrels: str) -> str:
    """The table of one collection."""
    search = Search(DenseSearcher(dense), LuceneSparseSearcher(lucene))
    path, _, field = corpus.partition('#')
    texts = {}
    for passage in open_corpus(path, fields=[field] if field else ()):
        texts[passage.docid] = passage.text
    made = list(make_questions(texts))
    if len(made) < N_QUESTIONS:
        return f'{len(made)} questions can be made: too few documents begin with a sentence'
    questions = [question for question, _ in made]
    judgments = {
        'source': {question.qid: {docid: 1} for question, docid in made},
        'reranker': judge_by_reranker(questions, search, texts),
    }
    real_topics = load_topics(topics)
    real_qrels = load_qrels(qrels)
    default = search.run(real_topics, DEFAULT_WEIGHTS)
    baseline = evaluate(by_rank(default), real_qrels, parse_measures([MEASURE]))
    rows = [row('the default', default, real_qrels, None)]
    for teacher, made_qrels in judgments.items():
        learnt = adapt(search.dense, [search.bm25], questions, made_qrels)
        weights = learnt.weights
        run = search.run(real_topics, weights)
        label = f'{teacher}: weights {weights[0]:.2f}, {weights[1]:.2f}'
        rows.append(row(label, run, real_qrels, baseline))
        search.dense.query_map = learnt.query_map
        run = search.run(real_topics, DEFAULT_WEIGHTS)
        rows.append(row(f'{teacher}: the query map', run, real_qrels, baseline))
        run = search.run(real_topics, weights)
        rows.append(row(f'{teacher}: both', run, real_qrels, baseline))
        search.dense.query_map = None
    return markdown(['', MEASURE, 'against the default'], rows, is_padded=False)


def main() -> None:
    """Print a table for each collection."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('collections', nargs='+', metavar='NAME=DENSE,LUCENE,CORPUS,TOPICS,QRELS')
    for argument in parser.parse_args().collections:
        name, _, files = argument.partition('=')
        print(f'\n{name}\n\n{study(*files.split(","))}')


if __name__ == '__main__':
    main()
