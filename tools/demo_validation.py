"""Evaluates rerankers and RepBERT on the questions that `demo_candidates.py` holds back, beside BM25 and the cosine.

    python tools/demo_validation.py --work FOLDER [NAME=CHECKPOINT …] [--lexical 0.1 0.3 1]

nDCG@10 over BM25's best 16 for questions about paragraphs of XQuAD and QED, about MedQuAD's documents, and for first
sentences of docstrings; AP over the sentences of an article or paragraph. A RepBERT of the catalog ranks the same
candidates by cosine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from demo_candidates import VALIDATION_DEPTH
from demo_cosine import with_lexical
from demo_runs import LEXICAL, named

from pyserini_repbert import catalog
from pyserini_repbert.commands.command import Parser, run
from pyserini_repbert.data.runs import read_run, reciprocal_scores
from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.names.texts import open_texts
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.pipeline.specs import open_reranker
from pyserini_repbert.ranking import NO_HITS, Ranking, Run
from pyserini_repbert.train.teachers import BiEncoderTeacher

KINDS = {'x': 'XQuAD', 'q': 'QED', 'M': 'MedQuAD', 'd': 'docstrings'}


def main(arguments: list[str]) -> int | None:
    """Print the table."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--work', required=True, help='the folder in which material/ is')
    parser.add_argument('--precision', default='float32', help='of the rerankers')
    parser.add_argument('--lexical', type=float, nargs='*', default=[LEXICAL], help='weights of BM25 beside the cosine')
    parser.add_argument('checkpoints', nargs='*', metavar='NAME=CHECKPOINT', help='a folder, or a catalog name')
    options = parser.parse_args(arguments)
    folder = Path(options.work) / 'material'
    rows = [['BM25', *_means(folder, None, '')]]
    for weight in (0.0, *options.lexical):
        rows.append([f'cosine + {weight:g} BM25', *_means(folder, weight, '')])
    for name, checkpoint in named(options.checkpoints, 'checkpoint').items():
        rows.append([name, *_means(folder, checkpoint, options.precision)])
    print(markdown(['', *KINDS.values(), 'all, nDCG@10', 'sentences, AP'], rows))
    return None


def _means(folder: Path, checkpoint: str | float | None, precision: str) -> list[str]:
    qrels, found = load_qrels(str(folder / 'validation.qrels.txt')), {}
    ranked = _ranked(folder, 'validation', 'held', checkpoint, precision)
    measures = parse_measures(['nDCG@10'])
    for kind in KINDS:
        own = {qid: grades for qid, grades in qrels.items() if qid.startswith(kind)}
        found[kind] = evaluate({qid: ranked[qid] for qid in own if qid in ranked}, own, measures).means['nDCG@10']
    everything = evaluate(ranked, qrels, measures).means['nDCG@10']
    selected = _ranked(folder, 'selection', 'selection', checkpoint, precision)
    ap = evaluate(selected, load_qrels(str(folder / 'selection.qrels.txt')), parse_measures(['AP'])).means['AP']
    return [*(f'{value:.4f}' for value in found.values()), f'{everything:.4f}', f'{ap:.4f}']


def _ranked(folder: Path, stem: str, cosines: str, checkpoint: str | float | None, precision: str) -> Run:
    """The candidates in BM25's or the article's order (None), by cosine plus a weight of BM25, or by a checkpoint."""
    first = read_run(folder / f'{stem}.run.txt', VALIDATION_DEPTH if stem == 'validation' else None)
    if stem == 'selection':
        first = {qid: _in_order(own) for qid, own in first.items()}
    if checkpoint is None:
        return first
    if isinstance(checkpoint, float):
        scored = read_run(folder / f'{cosines}.run.txt')
        lexical = {} if stem == 'selection' else first
        scored = {qid: with_lexical(scored[qid], lexical.get(qid, NO_HITS), checkpoint) for qid in first}
        return {qid: _by(own, dict(zip(scored[qid].docids, scored[qid].scores))) for qid, own in first.items()}  # noqa: B905
    queries = {query.qid: query.text for query in load_topics(str(folder / f'{stem}.tsv'))}
    wanted = [docid for own in first.values() for docid in own.docids]
    passages = open_texts(str(folder / 'texts.jsonl'), None, wanted)
    lists = [Ranking(own.docids, own.scores, passages.texts(own.docids)) for own in first.values()]
    scores = _scores(checkpoint, precision, [queries[qid] for qid in first], lists)
    return {
        qid: _by(own, dict(zip(own.docids, values, strict=True)))
        for (qid, own), values in zip(first.items(), scores, strict=True)
    }


def _scores(checkpoint: str, precision: str, queries: Sequence[str], lists: Sequence[Ranking]) -> list[list[float]]:
    if catalog.find('encoders', checkpoint) is None:
        found = open_reranker(checkpoint, precision=precision).score_lists(queries, lists)
        return [scores.tolist() for scores in found]
    bi_encoder = BiEncoderTeacher(open_checkpoint(checkpoint))
    return [
        bi_encoder.scores('', query, own.docids, [text or '' for text in own.texts or ()])
        for query, own in zip(queries, lists, strict=True)
    ]


def _in_order(own: Ranking) -> Ranking:
    docids = sorted(own.docids, key=lambda name: (name.rpartition('.s')[0], int(name.rpartition('.s')[2])))
    return Ranking(docids, reciprocal_scores(len(docids)))


def _by(own: Ranking, scores: Mapping[str, float]) -> Ranking:
    docids = sorted(own.docids, key=lambda docid: -scores[docid])  # ties keep the order of the stage before
    return Ranking(docids, reciprocal_scores(len(docids)))


if __name__ == '__main__':
    sys.exit(run(main))
