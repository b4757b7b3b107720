"""What an encoder loses and gains in bfloat16 and int8: tables of `docs/guides/precision.md`.

    python regressions/studies/encoder_precision.py --encoder e5-small
      NAME=CORPUS,TOPICS,QRELS … [--most 300] [--passages 64] [--rounds 5]

Passages and questions are encoded in each precision, and searched exactly. int8 is dynamic
quantisation by ONNX Runtime, as `--backend onnx-int8` of rerankers has it; no flag of encoders
offers it. Speed is that of passages of the first collection, in turns, by processor time: other
processes may run beside it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pyserini_repbert.commands.command import threads
from pyserini_repbert.data.ordering import rank_by_score
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.encode.text_network import LazyNetworks
from pyserini_repbert.evaluate.measures import Evaluation, by_rank, evaluate, parse_measures
from pyserini_repbert.evaluate.significance import compare
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.ranking import Query
from pyserini_repbert.rerank.onnx_backend import OnnxForward
from pyserini_repbert.systems.encoders import document_encoder, query_encoder

MEASURE = 'nDCG@10'
HITS = 10
MIXED = 'passages in int8, questions in float32'
PRECISIONS = ('float32', 'bfloat16', 'int8')
Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class TestCollection:
    """Passages, questions and judgments."""

    docids: list[str]
    passages: list[str]
    topics: list[Query]
    qrels: Qrels


@dataclass(frozen=True)
class Encoders:
    """An encoder's two sides in one precision."""

    documents: Any
    queries: Any


def open_encoders(name: str, precision: str) -> Encoders:
    """The encoders of passages and questions; both share one network."""
    computed = 'float32' if precision == 'int8' else precision
    documents: Any = document_encoder(name, precision=computed)
    queries: Any = query_encoder(name, precision=computed, open_encoder=documents)
    if precision == 'int8':
        network = documents._engine._networks.forward
        forward = OnnxForward(network, documents.weights_sha256, int8=True)
        for encoder in (documents, queries):
            encoder._engine._networks = LazyNetworks.made(forward, 'cpu')
    return Encoders(documents, queries)


def read_collection(corpus: str, topics: str, qrels: str, most: int) -> TestCollection:
    """A collection with the first questions that have a relevant passage."""
    judged = load_qrels(qrels)
    asked = []
    for topic in load_topics(topics):
        if max(judged.get(topic.qid, {'': 0}).values()) > 0:
            asked.append(topic)
    docids = []
    passages = []
    for passage in open_corpus(corpus):
        docids.append(passage.docid)
        passages.append(passage.text)
    asked = asked[:most]
    return TestCollection(
        docids, passages, asked, {topic.qid: judged[topic.qid] for topic in asked}
    )


@dataclass(frozen=True)
class Encoded:
    """The vectors of a collection in one precision: float32 (n, d), (m, d)."""

    passages: Vectors
    questions: Vectors


def encode(encoders: Encoders, collection: TestCollection) -> Encoded:
    """The vectors of the passages and of the questions."""
    questions = [topic.text for topic in collection.topics]
    return Encoded(
        encoders.documents.encode(collection.passages), encoders.queries.embed(questions)
    )


def evaluate_search(
    passages: Vectors, questions: Vectors, collection: TestCollection
) -> Evaluation:
    """The measure of exact search."""
    docids = np.array(collection.docids, object)
    run = {}
    for topic, question in zip(collection.topics, questions, strict=True):
        run[topic.qid] = rank_by_score(docids, (passages @ question).astype(np.float64), HITS)
    return evaluate(by_rank(run), collection.qrels, parse_measures([MEASURE]))


def rates_of(
    encoders: dict[str, Encoders], passages: Sequence[str], rounds: int
) -> dict[str, list[float]]:
    """Passages a second of processor time in each precision, in each round."""
    rates: dict[str, list[float]] = {name: [] for name in encoders}
    for opened in encoders.values():
        opened.documents.encode(passages)
    for _ in range(rounds):
        for name, opened in encoders.items():
            begun = time.process_time()
            opened.documents.encode(passages)
            rates[name].append(len(passages) / (time.process_time() - begun))
    return rates


def main() -> None:
    """Print speed, then quality."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('collections', nargs='+', metavar='NAME=CORPUS,TOPICS,QRELS')
    parser.add_argument('--encoder', required=True)
    parser.add_argument('--most', type=int, default=300, help='questions of each collection')
    parser.add_argument('--passages', type=int, default=64, help='whose encoding is timed')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--threads', type=threads, default=1)
    parser.add_argument('--precisions', nargs='+', choices=PRECISIONS, default=PRECISIONS)
    parser.add_argument('--speed-alone', action='store_true')
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    collections = {}
    for text in options.collections:
        name, _, parts = text.partition('=')
        collections[name] = read_collection(*parts.split(','), options.most)
    encoders = {name: open_encoders(options.encoder, name) for name in options.precisions}
    first = next(iter(collections.values()))
    rates = rates_of(encoders, first.passages[: options.passages], options.rounds)
    print(f'{options.encoder}: passages a second of processor time, {options.threads} threads\n')
    lines = []
    for name, values in rates.items():
        lines.append([name, f'{np.median(values):.1f}', f'{min(values):.1f}', f'{max(values):.1f}'])
    print(markdown(['precision', 'median', 'lowest', 'highest'], lines))
    if options.speed_alone:
        return
    print(f'\n{options.encoder}: {MEASURE}\n')
    rows = []
    for collection_name, collection in collections.items():
        row = [f'{collection_name} ({len(collection.topics)})']
        vectors = {name: encode(each, collection) for name, each in encoders.items()}
        found = {}
        for name, encoded in vectors.items():
            found[name] = evaluate_search(encoded.passages, encoded.questions, collection)
        if 'int8' in vectors:
            questions = vectors['float32'].questions
            found[MIXED] = evaluate_search(vectors['int8'].passages, questions, collection)
        exact = found['float32']
        for name, evaluation in found.items():
            mean = evaluation.means[MEASURE]
            cell = f'{mean:.4f}'
            if name != 'float32':
                (compared,) = compare(exact, evaluation)
                cell += f' ({mean - exact.means[MEASURE]:+.4f}, p {compared.p:.2g})'
            row.append(cell)
        rows.append(row)
        print(' | '.join(row), flush=True)
    print()
    print(markdown(['collection', *found], rows))


if __name__ == '__main__':
    main()
