"""How far P(relevant) and P(answered) can be believed, and the priors: `docs/guides/confidence.md`.

    python benchmarks/confidence.py --data FOLDER --work FOLDER [--collections demo CACM Vaswani]
        [--encoder minilm] [--write-prior]

FOLDER of `--data` has `cacm/` and `vaswani/`. What is missing there is skipped, with a line that
begins with !!!!. The collections stay in the work folder: said again, nothing is encoded.

For each collection, the table has the reliability on questions held out:

- own: learned from the collection's own judgments, five folds
- prior: learned from the other collections of the table
- N: drawn to that prior, learned from N judged questions and tested on the others
- elsewhere: AUC of P(answered) of questions held out against questions of other collections, by
  the models of the folds

With one collection there is no prior: weights are drawn to 0.

A prior for the package (`--write-prior`) is fitted to all collections of the table. Its AUC is the
mean of the column 'prior'.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pyserini_repbert.adapt.confidence import (
    AskedQuestion,
    FittedModels,
    Reliability,
    ask_questions,
    fit_models,
    judge_models,
    learn_confidence,
)
from pyserini_repbert.adapt.judged_topics import FOLDS, deal_folds
from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.confidence import (
    HitFeatures,
    question_features,
    runs_of_rankings,
)
from pyserini_repbert.collection.estimating import PRIORS
from pyserini_repbert.evaluate.calibration import area_under_roc, counts_unjudged
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.ranking import Query
from pyserini_repbert.search.confidence import HIT_FEATURES, TOP, ConfidenceModel, dump_model
from pyserini_repbert.trace import Notes

MOST_TOPICS = 200
SAMPLES = (10, 20, 50, 100)
# So few questions cannot judge a model.
LEAST_TESTED = 20
SEED = 0


@dataclass(frozen=True)
class Source:
    """A collection with judged topics: each a path below `--data`, or a catalog name."""

    name: str
    corpus: str
    topics: str
    qrels: str


SOURCES = (
    Source('demo', 'demo', 'demo', 'demo'),
    Source('CACM', 'cacm/cacm.tar.gz', 'cacm/topics.cacm.txt', 'cacm/qrels.cacm.txt'),
    Source('Vaswani', 'vaswani/doc-text.trec.gz', 'vaswani/query-text.trec', 'vaswani/qrels'),
)


@dataclass(frozen=True)
class Asked:
    """A collection's judged questions, and the features of the other collections' questions.

    Attributes
    ----------
    foreign : (questions, features)
    """

    questions: Sequence[AskedQuestion]
    foreign: np.ndarray
    counts_unjudged: bool
    encoder_weights: str


def foreign_features(searcher, texts: Sequence[str]) -> np.ndarray:
    """The features of questions of other collections, (questions, features)."""
    topics = [Query(str(number), text) for number, text in enumerate(texts)]
    notes = Notes()
    fused = searcher.rank(topics, None, TOP, notes)
    runs = runs_of_rankings(searcher, notes)
    features = HitFeatures(searcher.dense, searcher.words)
    rows = []
    for topic in topics:
        rankings = {name: run[topic.qid] for name, run in runs.items()}
        hits = features.of_hits(topic.text, fused[topic.qid].docids, rankings)
        rows.append(question_features(hits))
    return np.stack(rows)


def ask_all(data: Path, work: Path, encoder: str, names: Sequence[str]) -> dict[str, Asked]:
    """The questions of each of these collections that is there."""

    def located(name: str) -> str:
        return str(data / name) if '/' in name else name

    present = {}
    for source in SOURCES:
        if '/' in source.corpus and not (data / source.corpus).exists():
            print(f'!!!! {source.name} is left out: {data / source.corpus} is missing')
            continue
        topics = load_topics(located(source.topics))
        present[source] = random.Random(SEED).sample(topics, min(MOST_TOPICS, len(topics)))
    asked = {}
    for source, topics in present.items():
        if source.name not in names:
            continue
        qrels = load_qrels(located(source.qrels))
        others = []
        for other, other_topics in present.items():
            if other is not source:
                others += [topic.text for topic in other_topics[:50]]
        with Collection.open(work / f'{encoder}-{source.name}', encoder=encoder) as collection:
            collection.sync(located(source.corpus))
            searcher = collection.searcher()
            asked[source.name] = Asked(
                ask_questions(searcher, topics, qrels),
                foreign_features(searcher, others),
                counts_unjudged(qrels),
                searcher.generation.settings.weights_sha256,
            )
            searcher.close()
    return asked


def fit_prior(asked: dict[str, Asked], without: str = '') -> FittedModels | None:
    """Models of all collections but one; None where there is no other."""
    questions: list[AskedQuestion] = []
    for name, of_collection in asked.items():
        if name != without:
            questions += of_collection.questions
    return fit_models(questions) if questions else None


def auc_elsewhere(questions: Sequence[AskedQuestion], foreign: np.ndarray) -> float | None:
    """AUC of P(answered) of questions held out against questions of other collections.

    A foreign question gets the mean of the models of all folds.
    """
    folds = deal_folds([question.text for question in questions], SEED)
    values = np.zeros(len(questions))
    of_foreign = np.zeros(len(foreign))
    for fold in range(FOLDS):
        model = fit_models([q for q in questions if folds[q.text] != fold]).questions
        rows = [row for row, question in enumerate(questions) if folds[question.text] == fold]
        values[rows] = model.probabilities(np.stack([questions[row].question for row in rows]))
        of_foreign += model.probabilities(foreign) / FOLDS
    outcomes = [True] * len(values) + [False] * len(of_foreign)
    return area_under_roc(np.concatenate([values, of_foreign]), outcomes)


def row_of(name: str, judged: dict[str, Reliability], elsewhere: float | None) -> list[str]:
    """A row of the table."""
    cells = [name]
    for part in ('hits', 'questions'):
        value = judged[part]
        auc = '–' if value.auc is None else f'{value.auc:.2f}'
        cells += [auc, f'{value.ece:.2f}', f'{value.brier:.2f}']
    return [*cells, '' if elsewhere is None else f'{elsewhere:.2f}']


def rows_of(name: str, of_collection: Asked, prior: FittedModels | None) -> list[list[str]]:
    """The rows of a collection."""
    questions = list(of_collection.questions)
    own = learn_confidence(questions, SEED)
    judged = {'hits': own.hits, 'questions': own.questions}
    elsewhere = auc_elsewhere(questions, of_collection.foreign)
    rows = [row_of(f'{name}, {len(questions)} questions: own', judged, elsewhere)]
    if prior is not None:
        rows.append(row_of('prior', dict(judge_models(questions, [prior] * len(questions))), None))
    shuffled = random.Random(SEED).sample(questions, len(questions))
    for n in SAMPLES:
        tested = shuffled[n:]
        if len(tested) < LEAST_TESTED:
            continue
        learned = fit_models(shuffled[:n], prior)
        judged = dict(judge_models(tested, [learned] * len(tested)))
        rows.append(row_of(f'{n} questions', judged, None))
    return rows


def feature_rows(of_collection: Asked) -> list[list[str]]:
    """AUC of each feature alone: hits of different questions, and questions without answers."""
    questions = of_collection.questions
    hits = np.concatenate([question.hits for question in questions])
    relevant: list[bool] = []
    for question in questions:
        relevant += question.relevant
    both = np.stack([q.question for q in questions] + [q.removed for q in questions])
    outcomes = [q.is_answered for q in questions] + [False] * len(questions)
    rows = []
    for column, feature in enumerate(HIT_FEATURES):
        of_hits = area_under_roc(hits[:, column], relevant)
        of_questions = area_under_roc(both[:, column], outcomes)
        rows.append([feature, f'{of_hits or 0:.2f}', f'{of_questions or 0:.2f}'])
    return rows


def main() -> None:
    """Print the table, and write the prior if asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--data', type=Path, required=True)
    parser.add_argument('--work', type=Path, required=True)
    names = [source.name for source in SOURCES]
    parser.add_argument('--collections', nargs='+', choices=names, default=names)
    parser.add_argument('--encoder', default='minilm')
    parser.add_argument('--write-prior', action='store_true')
    options = parser.parse_args()
    asked = ask_all(options.data, options.work, options.encoder, options.collections)
    header = ['', 'hits: AUC', 'ECE', 'Brier', 'questions: AUC', 'ECE', 'Brier', 'elsewhere']
    rows = []
    aucs = []
    for name, of_collection in asked.items():
        prior = fit_prior(asked, without=name)
        rows += rows_of(name, of_collection, prior)
        if prior is not None:
            questions = of_collection.questions
            by_prior = judge_models(questions, [prior] * len(questions))
            aucs.append(by_prior['questions'].auc or 0.5)
    print(f'{options.encoder}, unjudged hits count as not relevant: ', end='')
    print(', '.join(name for name, value in asked.items() if value.counts_unjudged))
    print(markdown(header, rows))
    for name, of_collection in asked.items():
        print(markdown([name, 'hits: AUC', 'questions: AUC'], feature_rows(of_collection)))
    models = fit_prior(asked)
    if options.write_prior and models is not None and aucs:
        sha256 = next(iter(asked.values())).encoder_weights
        model = ConfidenceModel(
            models.hits, models.questions, 'prior', float(np.mean(aucs)), sha256
        )
        path = PRIORS / f'{sha256[:8]}.json'
        path.write_bytes(dump_model(model))
        print(path)


if __name__ == '__main__':
    main()
