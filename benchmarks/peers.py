"""One collection, searched by this package and by what a user might take in its place.

    python benchmarks/peers.py --data ../shared/data/vaswani [--threads 1] [--only NAME …]

Needs a separate environment: `pip install '.[demo]' lancedb chromadb bm25s qdrant-client`, whose
files pip has compiled, as it does unless it is told otherwise.
The 11,429 abstracts of Vaswani, the same encoder (`minilm`) and the same 93 questions for all. Each
system builds in one process, and is opened and asked in another. The vectors of documents that
sentence-transformers makes are made once, and their time is added to each build that takes them.
Times are of the wall; `--clock processor` takes processor times, with all threads, which
say more on a machine that does other work. `open and first answer` has all that a new process
does, imports and the model, too. A question's time includes its vector. A dash stands for what a
system cannot do, or could do only by building again.

`start to first answer` is of a whole process that opens the system, asks one question and ends,
Python's own start included; so is `processor time of it`, whatever the clock. `filter` lets through
one document in ten. `add` is one document until a question finds it. `memory` is the peak of the
process that is asked, `disk` the size of the folder. nDCG@10 is by the judgments of Vaswani; words
and vectors are fused as each system does by default.

`words to the first relevant` is what a program reads that takes the hits in order until the first
relevant one, that hit included: the mean over questions of the words of their texts. Where none of
ten is relevant, it has read all ten; `questions with a relevant hit` says how often there is one.
ripgrep (`apt install ripgrep`) stands for a program that searches files for a question's words: it
takes the files with the most different words of four letters or more, then those with most matches.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import figures
import numpy as np
from figures import Figure
from peer_systems import SYSTEMS, Document, Faiss, System, Vectors, WithVectors

from pyserini_repbert.data.ordering import reciprocal_scores
from pyserini_repbert.data.qrels import read_qrels
from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Ranking, Run

_MANY = 1000
_STARTS = 3
_STEPS = ('encode', 'build', 'first', 'ask')
_WARMING = 20
_BATCH = 1000
_NEW = {'id': 'new', 'text': 'the zymurgical quokka of ballarat', 'tenth': 1}
_NEW_QUESTION = 'zymurgical quokka'
_NEAR = 1.1  # as good as the best: within ten percent
_LONG_WORD = re.compile(r'\w{4,}')


# What is measured, its unit, and whether less is better.
MEASURED = {
    'build': ('s', True),
    'start to first answer': ('s', True),
    'processor time of it': ('s', True),
    'open and first answer': ('s', True),
    'one question, median': ('ms', True),
    'one question, p95': ('ms', True),
    'a thousand questions': ('s', True),
    'filter, median': ('ms', True),
    'add': ('ms', True),
    'memory': ('MB', True),
    'disk': ('MB', True),
    'nDCG@10': ('', False),
    'words to the first relevant': ('', True),
    'questions with a relevant hit': ('', False),
}


# Seconds of the wall, and of this process.
CLOCKS = {'wall': time.perf_counter, 'processor': time.process_time}
Clock = Callable[[], float]


def read_documents(data: Path) -> list[Document]:
    """The documents of Vaswani, numbered by their order."""
    documents = []
    for number, found in enumerate(open_corpus(data / 'doc-text.trec.gz').documents()):
        documents.append(Document(found.docid, found.text, number % 10))
    return documents


def build(
    made: Callable[[], System], data: Path, clock: Clock, vectors: Vectors
) -> dict[str, float]:
    """What it takes to build, in this process."""
    documents = read_documents(data)
    began = clock()
    system = made()
    system.build(documents, vectors)
    seconds = clock() - began
    files = [path for path in system.folder.rglob('*') if path.is_file()]
    return {'build': seconds, 'disk': sum(path.stat().st_size for path in files) / 1e6}


def ask(made: Callable[[], System], data: Path, clock: Clock) -> dict[str, float]:
    """What it takes to ask, in this process."""
    topics = read_topics(data / 'query-text.trec')
    questions = [topic.text for topic in topics]
    found: dict[str, float] = {}
    began = clock()
    system = made()
    system.open()
    system.search(questions[0])
    found['open and first answer'] = clock() - began
    for question in islice(cycle(questions), _WARMING):
        system.search(question)
        system.search_tenth(question)
    run = {}
    times = []
    for topic in topics:
        began = clock()
        docids = system.search(topic.text)
        times.append(clock() - began)
        run[topic.qid] = Ranking(docids, reciprocal_scores(len(docids)))
    found['one question, median'] = 1000 * statistics.median(times)
    found['one question, p95'] = 1000 * float(np.quantile(times, 0.95))
    if system.search_tenth(questions[0]) is not None:
        found['filter, median'] = 1000 * _median_of_tenths(system, questions, clock)
    many = list(islice(cycle(questions), _MANY))
    began = clock()
    system.search_many(many)
    found['a thousand questions'] = clock() - began
    measures = parse_measures(['nDCG@10'])
    qrels = read_qrels(data / 'qrels')
    found['nDCG@10'] = evaluate(run, qrels, measures).means['nDCG@10']
    found |= reading_costs(run, qrels, read_documents(data))
    began = clock()
    if system.add(Document(_NEW['id'], _NEW['text'], _NEW['tenth'])):
        hits = system.search(_NEW_QUESTION)
        found['add'] = 1000 * (clock() - began)
        if hits[0] != _NEW['id']:
            sys.exit(f'{type(system).__name__} did not find the new document: {hits}')
    found['memory'] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return found


def reading_costs(
    run: Run, qrels: Mapping[str, Mapping[str, int]], documents: Sequence[Document]
) -> dict[str, float]:
    """What a program reads until the first relevant hit, and how often there is one."""
    words_of = {document.docid: len(document.text.split()) for document in documents}
    costs = []
    n_found = 0
    for qid, ranking in run.items():
        n_words = 0
        for docid in ranking.docids:
            n_words += words_of[docid]
            if qrels.get(qid, {}).get(docid, 0) > 0:
                n_found += 1
                break
        costs.append(n_words)
    return {
        'words to the first relevant': statistics.mean(costs),
        'questions with a relevant hit': n_found / len(costs),
    }


def _median_of_tenths(system: System, questions: Sequence[str], clock: Clock) -> float:
    """The seconds of a question within the filter."""
    times = []
    for question in questions:
        began = clock()
        system.search_tenth(question)
        times.append(clock() - began)
    return statistics.median(times)


def run_step(step: str, name: str, folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """The figures of one step, in a separate process; `folder` is of the run."""
    flags = ['--data', str(options.data), '--clock', options.clock, '--only', name]
    command = [sys.executable, __file__, *flags, '--step', step, '--folder', str(folder)]
    environment = {**os.environ, 'OMP_NUM_THREADS': str(options.threads)}
    # Else each process compiles what it imports, for twenty seconds.
    environment.pop('PYTHONDONTWRITEBYTECODE', None)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def run_first(name: str, folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """The seconds of processes that ask one question and end, the least of some."""
    seconds = []
    processor = []
    for _ in range(_STARTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        run_step('first', name, folder, options)
        seconds.append(time.perf_counter() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {'start to first answer': min(seconds), 'processor time of it': min(processor)}


def take_step(options: argparse.Namespace) -> dict[str, float]:
    """What `run_step` asks of its process."""
    clock = CLOCKS[options.clock]
    (name,) = options.only
    kept = options.folder / 'vectors.npy'
    if options.step == 'encode':
        began = clock()
        model = Faiss(options.folder)
        np.save(kept, model.encode([document.text for document in read_documents(options.data)]))
        return {'build': clock() - began}
    made = partial(SYSTEMS[name], options.folder / name)
    if options.step == 'first':
        system = made()
        system.open()
        system.search(read_topics(options.data / 'query-text.trec')[0].text)
        return {}
    if options.step == 'build':
        return build(made, options.data, clock, np.load(kept))
    return ask(made, options.data, clock)


def measure(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """The figures of each system."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        encoding = run_step('encode', 'faiss', folder, options)['build']
        for name in options.only:
            values = run_step('build', name, folder, options)
            if issubclass(SYSTEMS[name], WithVectors):
                values['build'] += encoding
            values |= run_first(name, folder, options)
            found[name] = values | run_step('ask', name, folder, options)
            print(f'{name}: {json.dumps(found[name])}', file=sys.stderr)
    return found


def show_table(found: dict[str, dict[str, float]]) -> None:
    """A row for each measure, a column for each system."""
    print('| | ' + ' | '.join(found) + ' |')
    print('|---|' + '---:|' * len(found))
    print('| searches | ' + ' | '.join(SYSTEMS[name].searches for name in found) + ' |')
    for measured, (unit, _) in MEASURED.items():
        cells = []
        for values in found.values():
            value = values.get(measured)
            cells.append('–' if value is None else figures.number(value, ''))
        label = f'{measured}, {unit}' if unit else measured
        print(f'| {label} | ' + ' | '.join(cells) + ' |')


def ratios(found: dict[str, dict[str, float]]) -> list[Figure]:
    """The collection against the best of the others, measure by measure: 1 and more is first."""
    own = found['collection']
    figures_of = []
    for measured, (_, is_less_better) in MEASURED.items():
        others = []
        for name, values in found.items():
            if name != 'collection' and measured in values:
                others.append((values[measured], name))
        if not others:
            continue
        best, name = min(others) if is_less_better else max(others)
        ratio = best / own[measured] if is_less_better else own[measured] / best
        figures_of.append(Figure(f'{measured}: {name}', ratio, 'x', 1 / _NEAR))
    return figures_of


def main() -> None:
    """The table, and the collection's result in each row."""
    parser = figures.parser(__doc__, ('lancedb', 'chromadb', 'bm25s', 'qdrant_client'))
    parser.add_argument('--data', type=Path, required=True, help='the folder of Vaswani')
    parser.add_argument('--threads', type=int, default=1, help='of PyTorch, NumPy and FAISS')
    parser.add_argument('--only', nargs='+', choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument('--clock', choices=CLOCKS, default='wall')
    parser.add_argument('--step', choices=_STEPS, help='what this process does')
    parser.add_argument('--folder', type=Path, help='with --step: of the run')
    options = parser.parse_args()
    if options.step:
        print(json.dumps(take_step(options)))
        return
    found = measure(options)
    show_table(found)
    if 'collection' in found and len(found) > 1:
        figures.tell(options, ratios(found))


if __name__ == '__main__':
    main()
