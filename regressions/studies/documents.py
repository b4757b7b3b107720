"""Searching long documents by their passages: the tables of `docs/guides/documents.md`.

    python regressions/studies/documents.py articles answers pages --data FOLDER --work FOLDER

FOLDER of `--data` has `medquad/` (MedQuAD's answers, LiveQA-Med's topics and judgments). What is
missing there is skipped with a line that begins with !!!!. The work folder keeps collections and
runs: said again, the command encodes nothing.

- articles: the paragraphs of each Wikipedia article in the demo collection, joined: 1,361
  documents, of which 75 have several paragraphs. The topics are XQuAD's 1,190 questions, on which
  the demo's rerankers were trained: none is measured here.
- answers: MedQuAD's answers of the 919 pages with an answer that LiveQA-Med judges.
- pages: the same pages, the answers of each joined.

A document's grade is the best of its parts.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pyserini_repbert import catalog
from pyserini_repbert.collection import Collection
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.data.runs import read_run, write_run
from pyserini_repbert.encode import document_encoder
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.evaluate.measures import Evaluation, evaluate, parse_measures
from pyserini_repbert.evaluate.significance import compare
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.fusion import fuse
from pyserini_repbert.names.corpora import collection_file
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.pipeline import Pipeline
from pyserini_repbert.ranking import Query, Run
from pyserini_repbert.rerank import CedrReranker, MonoBertReranker
from pyserini_repbert.rerank.base import Reranker
from pyserini_repbert.search import DenseSearcher

DEPTH = 1000
# Documents of a run that rerankers read: two CPU cores are slow.
RERANKED = 10
MEASURE = 'nDCG@10'
ONE_PASSAGE = f'monobert-demo@{RERANKED}, 1 passages'
WHOLE = 800  # wordpieces of a document that CEDR reads, as in its paper
DEFAULT = {'method': 'interpolation', 'alpha': 0.6, 'normalize': 'minmax'}


@dataclass(frozen=True)
class Judged:
    """A corpus of documents with judged topics.

    Attributes
    ----------
    texts : by docid
    topics, qrels : those judged
    """

    texts: dict[str, str]
    topics: list[Query]
    qrels: Qrels


def join_parts(parts: Mapping[str, str], document_of: Mapping[str, str]) -> dict[str, str]:
    """The texts of documents: their parts in order, a blank line between."""
    texts: dict[str, list[str]] = {}
    for part, text in parts.items():
        texts.setdefault(document_of[part], []).append(text)
    return {docid: '\n\n'.join(several) for docid, several in texts.items()}


def judge_documents(qrels: Qrels, document_of: Mapping[str, str]) -> Qrels:
    """Judgments of documents: the best grade of their parts."""
    judged: Qrels = {}
    for qid, grades in qrels.items():
        judged[qid] = {}
        for part, grade in grades.items():
            docid = document_of[part]
            judged[qid][docid] = max(grade, judged[qid].get(docid, grade))
    return judged


def read_articles(data: Path) -> Judged:
    """The demo's paragraphs, those of an article joined. A docid is that of the first one."""
    parts = {}
    document_of = {}
    firsts: dict[tuple[str, str], str] = {}
    path = collection_file(catalog.get('collections', 'demo'))
    with gzip.open(path, 'rt', encoding='utf-8') as stream:
        for line in stream:
            record = json.loads(line)
            docid = record['id']
            source = docid.partition('-')[0]
            parts[docid] = record['contents']
            document_of[docid] = firsts.setdefault((source, record['title']), docid)
    qrels = judge_documents(load_qrels('demo-xquad'), document_of)
    return Judged(join_parts(parts, document_of), load_topics('demo-xquad'), qrels)


def page_of(answer: str) -> str:
    """'ADAM_0000011' of 'ADAM_0000011_Sec1'."""
    return answer.rpartition('_Sec')[0]


def read_answers(data: Path) -> Judged:
    """MedQuAD's answers of pages with a judged answer."""
    folder = data / 'medquad'
    qrels = load_qrels(str(folder / 'liveqa.qrels.txt'))
    pages = set()
    for grades in qrels.values():
        pages.update(page_of(docid) for docid in grades)
    texts = {}
    with gzip.open(folder / 'corpus.jsonl.gz', 'rt', encoding='utf-8') as stream:
        for line in stream:
            record = json.loads(line)
            if page_of(record['id']) in pages:
                texts[record['id']] = record['answer']
    return Judged(texts, load_topics(str(folder / 'liveqa.topics.tsv')), qrels)


def read_pages(data: Path) -> Judged:
    """The pages of `read_answers`, the answers of each joined."""
    answers = read_answers(data)
    document_of = {docid: page_of(docid) for docid in answers.texts}
    for grades in answers.qrels.values():
        document_of |= {docid: page_of(docid) for docid in grades}
    texts = join_parts(answers.texts, document_of)
    return Judged(texts, answers.topics, judge_documents(answers.qrels, document_of))


READERS: dict[str, Callable[[Path], Judged]] = {
    'articles': read_articles,
    'answers': read_answers,
    'pages': read_pages,
}


def open_reranker(name: str, passages: int) -> Reranker:
    """A reranker of passages, or of the beginning of whole documents."""
    if name.startswith('monobert'):
        return MonoBertReranker(name)
    return CedrReranker(name, max_length=None if passages else WHOLE)


class Study:
    """The runs of one collection and encoder, and where they are kept.

    Parameters
    ----------
    judged : what is searched
    folder : keeps the collection, the frozen index and the runs
    encoder : a catalog name
    """

    def __init__(self, judged: Judged, folder: Path, encoder: str) -> None:
        self.judged = judged
        self.folder = folder
        self.encoder = encoder
        self.documents = [{'id': docid, 'text': text} for docid, text in judged.texts.items()]
        self.collection = Collection.open(folder / 'collection', encoder=encoder)
        self.cut = folder / 'cut'

    def run(self, name: str, make: Callable[[], Run]) -> Run:
        """A run by its name, made unless it is kept."""
        path = self.folder / f'{name}.txt'
        if not path.exists():
            write_run(path, make())
        return read_run(path)

    def search(self, **settings: object) -> Run:
        """The collection's run."""
        searcher = self.collection.searcher(**settings)
        run = searcher.rank(self.judged.topics, None, DEPTH)
        searcher.close()
        return run

    def searches(self) -> dict[str, Run]:
        """The first stages, by name."""

        def search_cut() -> Run:
            if not (self.cut / 'manifest.json').exists():
                # Each document is cut at the encoder's length.
                encoder = document_encoder(self.encoder)
                encode_corpus(self.documents, encoder, self.cut, resume=self.cut.exists())
            return DenseSearcher(self.cut).rank(self.judged.topics, None, DEPTH)

        runs = {'documents cut': self.run('cut', search_cut)}
        for aggregate in ('max', 'first', 'mean', 'top3'):

            def search_dense(aggregate: str = aggregate) -> Run:
                return self.search(rankings=['dense'], aggregate=aggregate)

            runs[f'passages, {aggregate}'] = self.run(aggregate, search_dense)
        runs['BM25'] = self.run('bm25', lambda: self.search(rankings=['bm25']))
        parts = [runs['documents cut'], runs['BM25']]
        runs['documents cut + BM25'] = self.run('cut+bm25', lambda: fuse(parts, k=DEPTH, **DEFAULT))
        runs['the default'] = self.run('default', self.search)
        return runs

    def rerank(self, reranker: Reranker, passages: int) -> Run:
        """The default's run, reranked by so many passages of each document; 0: by its text."""
        topics = self.judged.topics
        reranker = reranker.with_settings(reads=RERANKED, n_excerpts=max(passages, 1))
        searcher = self.collection.searcher()
        if passages:
            run = Pipeline([searcher, reranker]).rank(topics, None, DEPTH)
        else:
            run = searcher.rank(topics, None, DEPTH)
            run = Pipeline([reranker], texts=searcher.generation).rank(topics, run, DEPTH)
        searcher.close()
        return run

    def rerankings(self) -> dict[str, Run]:
        """The default's run and its rerankings, by name."""
        runs = {'the default': self.run('default', self.search)}
        stages = [
            ('monobert-demo', 1),
            ('monobert-demo', 3),
            ('vanilla-demo', 1),
            ('vanilla-demo', 0),
            ('cedr-knrm-demo', 1),
            ('cedr-knrm-demo', 0),
        ]
        for name, passages in stages:

            def rerank(name: str = name, passages: int = passages) -> Run:
                return self.rerank(open_reranker(name, passages), passages)

            read = f'{passages} passages' if passages else f'{WHOLE} wordpieces of the document'
            runs[f'{name}@{RERANKED}, {read}'] = self.run(f'{name}.{passages}', rerank)
        return runs

    def table(self, runs: Mapping[str, Run], baselines: Sequence[str]) -> str:
        """nDCG@10 of runs, and their differences from those that `baselines` names."""
        measures = parse_measures([MEASURE])
        evaluations = {}
        for name, run in runs.items():
            evaluations[name] = evaluate(run, self.judged.qrels, measures)
        header = [f'{len(self.judged.qrels)} topics', MEASURE]
        header += [f'against {baseline}' for baseline in baselines]
        rows = []
        for name, found in evaluations.items():
            cells = [difference(found, evaluations[baseline]) for baseline in baselines]
            rows.append([name, f'{found.means[MEASURE]:.4f}', *cells])
        return markdown(header, rows, is_padded=False)

    def median_words(self, runs: Mapping[str, Run]) -> str:
        """How long the documents are that are relevant, and those among the best 10 of each run."""
        docids: dict[str, list[str]] = {'relevant': []}
        for grades in self.judged.qrels.values():
            docids['relevant'] += [docid for docid, grade in grades.items() if grade > 0]
        for name, run in runs.items():
            docids[name] = []
            for qid in self.judged.qrels:
                docids[name] += run[qid].docids[:10] if qid in run else ()
        texts = self.judged.texts
        medians = []
        for name, several in docids.items():
            words = [len(texts[docid].split()) for docid in several if docid in texts]
            medians.append(f'{name} {median(words):.0f}')
        return f'Median words: {", ".join(medians)}'


def difference(evaluation: Evaluation, baseline: Evaluation) -> str:
    """'+0.0228, p 0.12': of the means, and the two-sided p of a paired t-test over topics."""
    if evaluation is baseline:
        return ''
    (comparison,) = compare(baseline, evaluation)
    return f'{comparison.difference:+.4f}, p {comparison.p:.2g}'


def main() -> None:
    """Print the tables of the collections that are named."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('collections', nargs='+', choices=list(READERS))
    parser.add_argument('--data', type=Path, required=True)
    parser.add_argument('--work', type=Path, required=True)
    parser.add_argument('--encoder', default='minilm')
    parser.add_argument('--rerank', action='store_true', help='the tables of rerankers, instead')
    options = parser.parse_args()
    for name in options.collections:
        if name != 'articles' and not (options.data / 'medquad').is_dir():
            print(f'!!!! {name} is skipped: {options.data} has no folder medquad')
            continue
        judged = READERS[name](options.data)
        study = Study(judged, options.work / f'{name}.{options.encoder}', options.encoder)
        study.collection.sync(study.documents)
        n_passages = study.collection.generation.manifest.passages
        print(
            f'\n{name}, {options.encoder}: {len(judged.texts)} documents, {n_passages} passages\n'
        )
        if options.rerank:
            print(study.table(study.rerankings(), ['the default', ONE_PASSAGE]))
        else:
            runs = study.searches()
            print(study.table(runs, ['documents cut', 'documents cut + BM25']))
            print(f'\n{study.median_words(runs)}')


if __name__ == '__main__':
    main()
