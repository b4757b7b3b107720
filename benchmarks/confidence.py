"""How far P(relevant) and P(answered) can be believed, learned and by priors.

    python benchmarks/confidence.py --data FOLDER --work FOLDER [--collections demo CACM …]
        [--encoder minilm]

FOLDER of `--data` has `cacm/`, `vaswani/` and `medquad/`. What is missing there is skipped, with a
line that begins with !!!!. The collections stay in the work folder: said again, nothing is encoded.
Of a collection with more questions, 200 are asked.

- demo: its test questions
- CACM, Vaswani: all of them
- LiveQA-Med: consumers' questions; the answers of the 919 pages of MedQuAD with a judged answer
- MedQuAD-pages: 400 other pages of MedQuAD, the answers of each joined, and training questions

For each collection, the first table has the reliability on held-out questions:

- own: learned from the collection's own judgments, five folds
- prior: learned from the other collections of the table
- N: learned from N judged questions and tested on the others, `DRAWS` times
- elsewhere: AUC of P(answered) of held-out questions against questions of other collections, by
  the models of the folds

With one collection there is no prior. The second table has the means over collections. The study of
features has the AUC of each alone, and of five folds without it. The tables are in
`docs/guides/confidence.md`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.search_description import SearchedRankings
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.measures import counts_unjudged
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.extensions.confidence.learning import (
    AskedQuestion,
    FittedModels,
    Reliability,
    ask_questions,
    features_elsewhere,
    fit_models,
    judge_models,
    judged_topics,
    learn_confidence,
    search_topics,
)
from pyserini_repbert.extensions.confidence.models import HIT_FEATURES
from pyserini_repbert.extensions.confidence.reliability import area_under_roc
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.ranking import Query

MOST_TOPICS = 200
# Of each other collection.
N_ELSEWHERE = 25
N_PAGES = 400
SAMPLES = (10, 20, 50, 100)
DRAWS = 5
# So few questions cannot judge a model.
LEAST_TESTED = 20
SEED = 0


@dataclass(frozen=True)
class Judged:
    """Documents, as `Collection.sync` takes them, and judged questions."""

    documents: Any
    topics: Sequence[Query]
    qrels: Qrels


def read_demo(data: Path) -> Judged:
    """The demo collection."""
    return Judged('demo', load_topics('demo'), load_qrels('demo'))


def read_cacm(data: Path) -> Judged:
    """CACM."""
    folder = data / 'cacm'
    topics = load_topics(str(folder / 'topics.cacm.txt'))
    return Judged(str(folder / 'cacm.tar.gz'), topics, load_qrels(str(folder / 'qrels.cacm.txt')))


def read_vaswani(data: Path) -> Judged:
    """Vaswani."""
    folder = data / 'vaswani'
    topics = load_topics(str(folder / 'query-text.trec'))
    return Judged(str(folder / 'doc-text.trec.gz'), topics, load_qrels(str(folder / 'qrels')))


def page_of(answer: str) -> str:
    """'ADAM_0000011' of 'ADAM_0000011_Sec1'."""
    return answer.rpartition('_Sec')[0]


def medquad_answers(data: Path) -> Iterator[tuple[str, str]]:
    """Docids and texts of MedQuAD's answers."""
    with gzip.open(data / 'medquad' / 'corpus.jsonl.gz', 'rt', encoding='utf-8') as stream:
        for line in stream:
            record = json.loads(line)
            yield record['id'], record['answer']


def liveqa_pages(qrels: Qrels) -> set[str]:
    """The pages with an answer that LiveQA-Med judges."""
    pages = set()
    for grades in qrels.values():
        pages.update(page_of(docid) for docid in grades)
    return pages


def read_liveqa(data: Path) -> Judged:
    """LiveQA-Med, over the answers of its pages."""
    qrels = load_qrels(str(data / 'medquad' / 'liveqa.qrels.txt'))
    pages = liveqa_pages(qrels)
    documents = []
    for docid, text in medquad_answers(data):
        if page_of(docid) in pages:
            documents.append({'id': docid, 'text': text})
    return Judged(documents, load_topics(str(data / 'medquad' / 'liveqa.topics.tsv')), qrels)


def read_pages(data: Path) -> Judged:
    """Pages of MedQuAD without a judgment of LiveQA-Med, and their training questions."""
    folder = data / 'medquad'
    judged = liveqa_pages(load_qrels(str(folder / 'liveqa.qrels.txt')))
    parts: dict[str, list[str]] = {}
    for docid, text in medquad_answers(data):
        if page_of(docid) not in judged:
            parts.setdefault(page_of(docid), []).append(text)
    pages = random.Random(SEED).sample(sorted(parts), N_PAGES)
    documents = [{'id': page, 'text': '\n\n'.join(parts[page])} for page in pages]
    known = set(pages)
    qrels: Qrels = {}
    for qid, grades in load_qrels(str(folder / 'train.qrels.txt.gz')).items():
        found = {page_of(docid) for docid in grades} & known
        if found:
            qrels[qid] = dict.fromkeys(sorted(found), 1)
    topics = load_topics(str(folder / 'train.queries.tsv.gz'))
    return Judged(documents, [topic for topic in topics if topic.qid in qrels], qrels)


@dataclass(frozen=True)
class Source:
    """A collection with judged topics; `folder` is what it needs below `--data`, '' for nothing."""

    folder: str
    read: Callable[[Path], Judged]


SOURCES = {
    'demo': Source('', read_demo),
    'CACM': Source('cacm', read_cacm),
    'Vaswani': Source('vaswani', read_vaswani),
    'LiveQA-Med': Source('medquad', read_liveqa),
    'MedQuAD-pages': Source('medquad', read_pages),
}


@dataclass(frozen=True)
class Asked:
    """A collection's judged questions, and the features of the other collections' questions.

    Attributes
    ----------
    elsewhere : (questions, features)
    search : by which they were asked, as `SearchedRankings.description` gives it
    """

    questions: Sequence[AskedQuestion]
    elsewhere: np.ndarray
    counts_unjudged: bool
    encoder_weights: str
    search: Mapping[str, Any]


def read_sources(data: Path) -> dict[str, Judged]:
    """The collections that are there, each with at most `MOST_TOPICS` questions."""
    judged = {}
    for name, source in SOURCES.items():
        if not (data / source.folder).exists():
            print(f'!!!! {name} is left out: {data / source.folder} is missing')
            continue
        read = source.read(data)
        n_topics = min(MOST_TOPICS, len(read.topics))
        judged[name] = replace(read, topics=random.Random(SEED).sample(read.topics, n_topics))
    return judged


def ask_all(data: Path, work: Path, encoder: str, names: Sequence[str]) -> dict[str, Asked]:
    """The questions of each of these collections that is there."""
    judged = read_sources(data)
    asked = {}
    for name, source in judged.items():
        if name not in names:
            continue
        others: list[Query] = []
        for other, read in judged.items():
            if other != name:
                others += read.topics[:N_ELSEWHERE]
        elsewhere = [Query(str(number), topic.text) for number, topic in enumerate(others)]
        with Collection.open(work / f'{encoder}-{name}', encoder=encoder) as collection:
            collection.sync(source.documents)
            searcher = collection.searcher()
            topics = judged_topics(source.topics, source.qrels)
            asked[name] = Asked(
                ask_questions(search_topics(searcher, topics), source.qrels),
                features_elsewhere(search_topics(searcher, elsewhere)),
                counts_unjudged(source.qrels),
                searcher.generation.settings.weights_sha256,
                SearchedRankings.of(searcher).description(),
            )
            searcher.close()
    return asked


def fit_prior(asked: Mapping[str, Asked], without: str = '') -> FittedModels | None:
    """Models of all other collections; None for the only collection."""
    questions: list[AskedQuestion] = []
    for name, of_collection in asked.items():
        if name != without:
            questions += of_collection.questions
    return fit_models(questions) if questions else None


@dataclass(frozen=True)
class Row:
    """How far the numbers of a model can be believed.

    Attributes
    ----------
    hits, questions : AUC, ECE and Brier score
    elsewhere : an AUC; None if it was not measured
    """

    hits: tuple[float, float, float]
    questions: tuple[float, float, float]
    elsewhere: float | None = None

    @classmethod
    def of(cls, judged: Mapping[str, Reliability], elsewhere: float | None = None) -> Row:
        """The row of what `judge_models` gives."""
        values = []
        for part in ('hits', 'questions'):
            reliability = judged[part]
            auc = float('nan') if reliability.auc is None else reliability.auc
            values.append((auc, reliability.ece, reliability.brier))
        return cls(values[0], values[1], elsewhere)

    @classmethod
    def mean(cls, rows: Sequence[Row]) -> Row:
        """The mean of rows."""
        known = [row.elsewhere for row in rows if row.elsewhere is not None]
        return cls(
            tuple(map(fmean, zip(*(row.hits for row in rows), strict=True))),
            tuple(map(fmean, zip(*(row.questions for row in rows), strict=True))),
            fmean(known) if known else None,
        )

    def cells(self) -> list[str]:
        """As a table has it."""
        values = [f'{value:.2f}' for value in (*self.hits, *self.questions)]
        return [*values, '' if self.elsewhere is None else f'{self.elsewhere:.2f}']


def rows_of(of_collection: Asked, prior: FittedModels | None) -> dict[str, Row]:
    """The rows of a collection, by their names."""
    questions = list(of_collection.questions)
    own = learn_confidence(questions, SEED, elsewhere=of_collection.elsewhere)
    judged = {'hits': own.hits, 'questions': own.questions}
    rows = {'own': Row.of(judged, own.elsewhere_auc)}
    if prior is not None:
        rows['prior'] = Row.of(judge_models(questions, [prior] * len(questions)))
    for n in SAMPLES:
        if len(questions) - n < LEAST_TESTED:
            continue
        rows[f'{n} questions'] = row_of_sample(questions, n)
    return rows


def row_of_sample(questions: Sequence[AskedQuestion], n: int) -> Row:
    """The mean row of models that n of the questions teach, tested on the others."""
    rows = []
    for draw in range(DRAWS):
        shuffled = random.Random(draw).sample(questions, len(questions))
        tested = shuffled[n:]
        learned = fit_models(shuffled[:n])
        rows.append(Row.of(judge_models(tested, [learned] * len(tested))))
    return Row.mean(rows)


def mean_rows(rows: Mapping[str, Mapping[str, Row]]) -> list[list[str]]:
    """The means over collections, and the greatest ECE of P(relevant) and of P(answered)."""
    cells = []
    names = dict.fromkeys(name for of_collection in rows.values() for name in of_collection)
    for name in names:
        known = [of_collection[name] for of_collection in rows.values() if name in of_collection]
        mean = Row.mean(known)
        greatest_hits = max(row.hits[1] for row in known)
        greatest_questions = max(row.questions[1] for row in known)
        cells.append(
            [
                f'{name}, {len(known)} collections',
                *(f'{value:.2f}' for value in mean.hits[:2]),
                f'{greatest_hits:.2f}',
                *(f'{value:.2f}' for value in mean.questions[:2]),
                f'{greatest_questions:.2f}',
            ]
        )
    return cells


def without_feature(question: AskedQuestion, column: int) -> AskedQuestion:
    """A question without one of its features."""
    return replace(
        question,
        hits=np.delete(question.hits, column, axis=1),
        question=np.delete(question.question, column),
        removed=np.delete(question.removed, column),
    )


def feature_rows(of_collection: Asked) -> list[list[str]]:
    """AUC of each feature alone, and of five folds without it, for hits and for questions."""
    questions = of_collection.questions
    hits = np.concatenate([question.hits for question in questions])
    relevant: list[bool] = []
    for question in questions:
        relevant += question.relevant
    both = np.stack([q.question for q in questions] + [q.removed for q in questions])
    outcomes = [q.is_answered for q in questions] + [False] * len(questions)
    whole = learn_confidence(questions, SEED)
    rows = [['all', '', f'{whole.hits.auc:.3f}', '', f'{whole.questions.auc:.3f}']]
    for column, feature in enumerate(HIT_FEATURES):
        of_hits = area_under_roc(hits[:, column], relevant)
        of_questions = area_under_roc(both[:, column], outcomes)
        left = learn_confidence([without_feature(q, column) for q in questions], SEED)
        rows.append(
            [
                feature,
                f'{of_hits or 0:.2f}',
                f'{left.hits.auc:.3f}',
                f'{of_questions or 0:.2f}',
                f'{left.questions.auc:.3f}',
            ]
        )
    return rows


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--data', type=Path, required=True)
    parser.add_argument('--work', type=Path, required=True)
    parser.add_argument('--collections', nargs='+', choices=list(SOURCES), default=list(SOURCES))
    parser.add_argument('--encoder', default='minilm')
    options = parser.parse_args()
    asked = ask_all(options.data, options.work, options.encoder, options.collections)
    rows = {}
    for name, of_collection in asked.items():
        rows[name] = rows_of(of_collection, fit_prior(asked, without=name))
    print(f'{options.encoder}, unjudged hits count as not relevant: ', end='')
    print(', '.join(name for name, value in asked.items() if value.counts_unjudged))
    header = ['', 'hits: AUC', 'ECE', 'Brier', 'questions: AUC', 'ECE', 'Brier', 'elsewhere']
    cells = []
    for name, of_collection in rows.items():
        begins = f'{name}, {len(asked[name].questions)} questions: '
        for kind, row in of_collection.items():
            cells.append([begins + kind, *row.cells()])
            begins = ''
    print(markdown(header, cells))
    header = ['mean', 'hits: AUC', 'ECE', 'greatest', 'questions: AUC', 'ECE', 'greatest']
    print(markdown(header, mean_rows(rows)))
    for name, of_collection in asked.items():
        header = [name, 'hits: alone', 'without it', 'questions: alone', 'without it']
        print(markdown(header, feature_rows(of_collection)))


if __name__ == '__main__':
    main()
