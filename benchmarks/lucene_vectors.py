"""Vectors in a Lucene index: how long writing takes, and which share of exact search's hits its graph finds.

python benchmarks/lucene_vectors.py [--vectors 10000] [--dimension 384] [--queries 50]

The vectors are those of ann.py; one thread writes. Memory is the whole process's peak, Java and exact search included.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import figures
from ann import Rows, clustered
from figures import Figure

from pyserini_repbert.data.passages import Passage, corpus_of_files
from pyserini_repbert.encode import encode_corpus
from pyserini_repbert.index import DenseBundle
from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.search import exact
from pyserini_repbert.search.lucene_vectors import LuceneVectorSearcher


def main() -> None:
    """Write the index, search both, print the figures."""
    parser = figures.parser(__doc__)
    parser.add_argument('--vectors', type=int, default=10_000)
    parser.add_argument('--dimension', type=int, default=384)
    parser.add_argument('--queries', type=int, default=50)
    parser.add_argument('--hits', type=int, nargs='+', default=[10, 100, 1000])
    options = parser.parse_args()
    everything = clustered(options.vectors + options.queries, options.dimension)
    vectors, queries = everything[: options.vectors], everything[options.vectors :]
    told = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with open(folder / 'corpus.tsv', 'w', encoding='utf-8') as stream:
            stream.writelines(f'd{row}\t{row}\n' for row in range(len(vectors)))
        passages = [Passage(f'd{row}', str(row)) for row in range(len(vectors))]
        encode_corpus(passages, Rows(vectors), folder / 'bundle')  # type: ignore[arg-type]
        bundle = DenseBundle(folder / 'bundle')
        wall, own = time.perf_counter(), time.process_time()
        build_lucene_index(corpus_of_files(folder / 'corpus.tsv'), folder / 'lucene', vectors=bundle)
        wall, own = time.perf_counter() - wall, time.process_time() - own
        told += [
            Figure('vectors in Lucene, writing a passage, processor', 1000 * own / len(vectors), 'ms'),
            Figure('vectors in Lucene, writing a passage, by the clock', 1000 * wall / len(vectors), 'ms'),
        ]
        searcher = LuceneVectorSearcher(folder / 'lucene', Rows(vectors))  # type: ignore[arg-type]
        qids = [str(number) for number in range(len(queries))]
        for k in options.hits:
            found = searcher.batch_search(queries, qids, k)
            shared = 0
            for qid, top in zip(qids, exact.search(bundle, queries, k), strict=True):
                shared += len({hit.docid for hit in found[qid]} & {bundle.docid(int(row)) for row in top.rows[:k]})
            told.append(Figure(f'vectors in Lucene, recall@{k}', shared / (k * len(queries)), ''))
        searcher.close()
    told.append(
        Figure('vectors in Lucene, peak of the process', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 'GB')
    )
    figures.tell(options, told)


if __name__ == '__main__':
    main()
