"""k1 and b of BM25 for documents of different lengths: the table of `docs/guides/documents.md`.

    python regressions/studies/bm25_settings.py paragraphs articles answers pages cacm \
      --data FOLDER --work FOLDER

FOLDER of `--data` has `medquad/` and `cacm/`. The work folder keeps Lucene's indexes. Topics are
training topics, at most 1,000 of each collection, but for CACM, which has no others: its topics
are shown, and choose nothing.

- paragraphs: the demo's 1,583 paragraphs, with its training topics
- articles: the same, those of an article joined, with XQuAD's topics
- answers: MedQuAD's 17,328 answers, with its training topics
- pages: the same, the answers of a page joined
- cacm: 3,204 abstracts
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from statistics import median

from documents import Judged, join_parts, judge_documents, page_of, read_articles

from pyserini_repbert import catalog
from pyserini_repbert.data.passages import corpus_of
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.measures import Evaluation, evaluate, parse_measures
from pyserini_repbert.evaluate.significance import compare
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.sparse_settings import SparseSettings
from pyserini_repbert.names.corpora import collection_file, open_corpus
from pyserini_repbert.names.topics import load_qrels, load_topics

MEASURE = 'nDCG@10'
MOST_TOPICS = 1000
USUAL_K1 = 0.9
USUAL_B = 0.4
K1 = (0.6, 0.9, 1.2, 1.6, 2.0)
B = (0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9)


def read_paragraphs(data: Path) -> Judged:
    """The demo's paragraphs."""
    texts = {}
    path = collection_file(catalog.get('collections', 'demo'))
    with gzip.open(path, 'rt', encoding='utf-8') as stream:
        for line in stream:
            record = json.loads(line)
            texts[record['id']] = record['contents']
    return Judged(texts, load_topics('demo-train'), load_qrels('demo-train'))


def read_all_answers(data: Path) -> Judged:
    """All of MedQuAD's answers."""
    folder = data / 'medquad'
    texts = {}
    with gzip.open(folder / 'corpus.jsonl.gz', 'rt', encoding='utf-8') as stream:
        for line in stream:
            record = json.loads(line)
            texts[record['id']] = record['answer']
    topics = load_topics(str(folder / 'train.queries.tsv.gz'))
    return Judged(texts, topics, load_qrels(str(folder / 'train.qrels.txt.gz')))


def read_all_pages(data: Path) -> Judged:
    """MedQuAD's pages, the answers of each joined."""
    answers = read_all_answers(data)
    document_of = {docid: page_of(docid) for docid in answers.texts}
    texts = join_parts(answers.texts, document_of)
    return Judged(texts, answers.topics, judge_documents(answers.qrels, document_of))


def read_cacm(data: Path) -> Judged:
    """CACM's abstracts."""
    folder = data / 'cacm'
    texts = {}
    for passage in open_corpus(str(folder / 'cacm.tar.gz')):
        texts[passage.docid] = passage.text
    topics = load_topics(str(folder / 'topics.cacm.txt'))
    return Judged(texts, topics, load_qrels(str(folder / 'qrels.cacm.txt')))


READERS: dict[str, Callable[[Path], Judged]] = {
    'paragraphs': read_paragraphs,
    'articles': read_articles,
    'answers': read_all_answers,
    'pages': read_all_pages,
    'cacm': read_cacm,
}


def select_topics(judged: Judged) -> Judged:
    """At most `MOST_TOPICS` judged topics, evenly spread."""
    topics = [topic for topic in judged.topics if topic.qid in judged.qrels]
    step = -(-len(topics) // MOST_TOPICS)
    topics = topics[::step]
    qrels: Qrels = {topic.qid: judged.qrels[topic.qid] for topic in topics}
    return Judged(judged.texts, topics, qrels)


def measure_settings(judged: Judged, folder: Path) -> dict[tuple[float, float], Evaluation]:
    """How well BM25 ranks with each k1 and b."""
    if not folder.exists():
        build_lucene_index(corpus_of(judged.texts.items()), folder)
    measures = parse_measures([MEASURE])
    evaluations = {}
    for k1 in K1:
        for b in B:
            searcher = LuceneSparseSearcher(folder, SparseSettings(k1=k1, b=b))
            run = searcher.rank(judged.topics, None, 10)
            searcher.close()
            evaluations[k1, b] = evaluate(run, judged.qrels, measures)
    return evaluations


def row_of(name: str, judged: Judged, found: dict[tuple[float, float], Evaluation]) -> list[str]:
    """A line of the table."""
    words = median(len(text.split()) for text in judged.texts.values())
    usual = found[USUAL_K1, USUAL_B]
    cells = [name, str(len(judged.texts)), f'{words:.0f}', str(len(judged.topics))]
    cells.append(f'{usual.means[MEASURE]:.4f}')
    for b in B:
        if b != USUAL_B:
            cells.append(difference(found[USUAL_K1, b], usual))
    best = max(found, key=lambda setting: found[setting].means[MEASURE])
    cells.append(f'{best[0]:g}, {best[1]:g}: {difference(found[best], usual)}')
    return cells


def difference(evaluation: Evaluation, usual: Evaluation) -> str:
    """'+.0228*': a star where the p of a paired t-test over topics is below .05."""
    (comparison,) = compare(usual, evaluation)
    star = '*' if comparison.p < 0.05 else ''
    return f'{comparison.difference:+.4f}{star}'


def main() -> None:
    """Print the table of the collections that are named."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('collections', nargs='+', choices=list(READERS))
    parser.add_argument('--data', type=Path, required=True)
    parser.add_argument('--work', type=Path, required=True)
    options = parser.parse_args()
    rows = []
    for name in options.collections:
        judged = select_topics(READERS[name](options.data))
        found = measure_settings(judged, options.work / f'bm25.{name}')
        rows.append(row_of(name, judged, found))
        print(' '.join(rows[-1]), flush=True)
    header = ['', 'documents', 'median words', 'topics', f'k1 {USUAL_K1:g}, b {USUAL_B:g}']
    header += [f'b {b:g}' for b in B if b != USUAL_B]
    print(markdown([*header, 'best k1, b'], rows, is_padded=False))


if __name__ == '__main__':
    main()
