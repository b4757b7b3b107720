"""The quality of approximate search: nDCG@10 and R@1000 of exact search and of --ann on three
collections.

python benchmarks/ann_quality.py [--only demo] [--data FOLDER] [--work FOLDER] [--recall 0.98]

The demo collection comes with the package; Vaswani and LiveQA-Med are read from --data, where
regressions/vaswani.yaml and liveqa-med.yaml expect them; one that is not there is named and left
out. Passages are encoded by repbert-demo; --work keeps the bundles for a second run.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import figures
from figures import Figure

from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.extensions.approximate import AnnSettings, build_ann
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.indexes import ready_folder
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.search import DenseSearcher

DENSE = 'repbert-demo'
_HITS = 1000


class Collection(NamedTuple):
    """Catalog names, or paths below --data; `fields` of the corpus that are searched."""

    name: str
    title: str
    corpus: str
    topics: str
    qrels: str
    recall: str = 'R@1000'
    fields: tuple[str, ...] = ()

    def within(self, data: str) -> Collection:
        """The collection with its files below this folder."""
        paths = {
            key: f'{data}/{value}'
            for key in ('corpus', 'topics', 'qrels')
            if '/' in (value := getattr(self, key))
        }
        return self._replace(**paths)


COLLECTIONS = (
    Collection('demo', 'Demo collection', 'demo', 'demo', 'demo'),
    Collection(
        'vaswani', 'Vaswani', 'vaswani/doc-text.trec.gz', 'vaswani/query-text.trec', 'vaswani/qrels'
    ),
    Collection(
        'liveqa',
        'LiveQA-Med',
        'medquad/corpus.jsonl.gz',
        'medquad/liveqa.topics.tsv',
        'medquad/liveqa.qrels.txt',
        'R(rel=2)@1000',
        ('answer',),  # grade 1 is 'incorrect but related'
    ),
)
_NAMES = [collection.name for collection in COLLECTIONS]


def bundle_of(collection: Collection, work: Path) -> Path:
    """The folder below `work` of a bundle of the collection's passages; one of an earlier run is
    taken as it is.
    """
    folder = work / collection.name
    if (folder / 'manifest.json').is_file():
        return folder
    if collection.name == 'demo':
        shutil.copytree(ready_folder('demo', DENSE), folder, ignore=shutil.ignore_patterns('ann'))
    else:
        passages = open_corpus(collection.corpus, fields=collection.fields)
        encode_corpus(passages, RepBertDocumentEncoder(DENSE), folder, resume=folder.exists())
    return folder


def measured(collection: Collection, work: Path, recall: float) -> list[Figure]:
    """The figures of one collection."""
    folder = bundle_of(collection, work)
    settings = AnnSettings(recall=recall, hits=_HITS)
    record = build_ann(folder, settings, overwrite=True)
    print(f'{collection.title}: {record}', flush=True)
    topics = load_topics(collection.topics)
    qrels = load_qrels(collection.qrels)
    measures = parse_measures(['nDCG@10', collection.recall])
    told = []
    for name in ('exact', 'ann'):
        searcher = DenseSearcher(folder, ann=name == 'ann')
        run = searcher.rank(topics, None, _HITS)
        means = evaluate(run, qrels, measures).means
        told += [
            Figure(f'{collection.title}, {len(topics)} topics, {of}: {name}', means[of], '')
            for of in means
        ]
    return told


def main() -> None:
    """Measure each collection that is here."""
    parser = figures.parser(__doc__)
    parser.add_argument('--only', nargs='+', choices=_NAMES, default=_NAMES)
    parser.add_argument('--data', default='data')
    parser.add_argument('--work', type=Path)
    parser.add_argument('--recall', type=float, default=0.98)
    options = parser.parse_args()
    told: list[Figure] = []
    with contextlib.ExitStack() as stack:
        work = options.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for collection in (
            one.within(options.data) for one in COLLECTIONS if one.name in options.only
        ):
            missing = [
                path
                for path in (collection.corpus, collection.topics, collection.qrels)
                if path != collection.name and not Path(path).exists()
            ]
            if missing:
                print(f'{collection.title} is left out: {missing[0]} is not there', file=sys.stderr)
                continue
            told += measured(collection, work, options.recall)
    figures.tell(options, told)


if __name__ == '__main__':
    main()
