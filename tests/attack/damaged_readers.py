"""Every reader of files that users bring, with whole files that it takes."""

from __future__ import annotations

import io
import random
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mutations
import numpy as np
from sample_files import (
    CEDR,
    CORPUS_JSONL,
    DOCUMENTS,
    FOLD,
    FOLDS,
    HTML,
    ID_TRIPLES,
    JSON_WEIGHTS,
    MSMARCO_RUN,
    PREDICTIONS,
    QRELS,
    RECIPE,
    REGRESSION,
    REPORT,
    TERM_WEIGHTS,
    TOPICS_JSONL,
    TOPICS_TREC,
    TREC_RUN,
    TRIPLES,
    TSV,
    encoded,
)

from pyserini_repbert.commands.regression import joined_reports
from pyserini_repbert.data.runs import iter_run, read_run
from pyserini_repbert.data.topics import read_qrels, read_topics
from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.evaluate.folds import read_folds
from pyserini_repbert.index.expansions import predicted_queries, weighted_texts
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.regression.reading import read_regression
from pyserini_repbert.regression.report import as_html
from pyserini_repbert.rerank.saved_scores import SavedScores, read_saved_scores, write_saved_scores
from pyserini_repbert.train.inputs import Guard, first_columns
from pyserini_repbert.train.reading import read_recipe
from pyserini_repbert.train.recipe import Source
from pyserini_repbert.train.sources import TrainingSource


def archive() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode='w') as packed:
        for name in ('a.html', 'b.html'):
            member = tarfile.TarInfo(name)
            member.size = len(HTML)
            packed.addfile(member, io.BytesIO(HTML.encode()))
        link = tarfile.TarInfo('c.txt')
        link.type, link.linkname = tarfile.SYMTYPE, 'a.html'
        packed.addfile(link)
    return stream.getvalue()


def kept_scores(folder: Path) -> list[bytes]:
    """An .npz, and the JSON in it with the arrays behind."""
    differences = np.arange(4, dtype=float).reshape(2, 2)
    query = SavedScores('q', 'text', ('a', 'b', 'c'), np.array([-1.0, -2.0]), np.array([0, 2]), differences)
    path = folder / 'kept.npz'
    write_saved_scores(path, [query, query], {'costs': [{'seconds': 1.0, 'inferences': 3}], 'k1': 2})
    return [path.read_bytes()]


def repacked(draw: random.Random, data: bytes) -> bytes:
    """With an accident in one of its arrays, which are packed again."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(made, 'w') as after:
        names = before.namelist()
        chosen = draw.choice(names)
        for name in names:
            content = before.read(name)
            if name == chosen == 'names.npy':
                with io.BytesIO(content) as stream:
                    text = mutations.mutated(draw, np.load(stream).tobytes())
                with io.BytesIO() as stream:
                    np.save(stream, np.frombuffer(text, dtype=np.uint8))
                    content = stream.getvalue()
            elif name == chosen:
                content = mutations.mutated(draw, content)
            after.writestr(name, content)
    return made.getvalue()


def corpus(fmt: str, **options: Any) -> Callable[[Path], Any]:
    def read(path: Path) -> Any:
        found = open_corpus(path, fmt, **options)
        return [tuple(passage) for passage in found], found.skipped

    return read


def run_of(path: Path) -> Any:
    run = read_run(path)
    one_by_one = _or_refused(lambda: dict(iter_run(path)))
    assert one_by_one in (run, None)  # None where a query's lines are in several places
    return run


def _or_refused(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except PyseriniRepbertError:
        return None


def topics(path: Path) -> Any:
    return [(query.qid, query.text) for query in read_topics(path)]


def triples(of_texts: bool) -> Callable[[Path], Any]:
    def read(path: Path) -> Any:
        source = TrainingSource(Source(triples=str(path)), 0, Guard(), 'data.0')
        source.of_texts = of_texts
        source.queries = {'q1': '', 'q2': ''}
        return list(source.instances(0, 0))

    return read


def report(path: Path) -> Any:
    return as_html(joined_reports([str(path)]))


def last_docids() -> list[str]:
    return ['d0', 'd1', 'd2']


@dataclass(frozen=True)
class Reader:
    """A reader and files that it takes; `pack` makes the bytes from the damaged text."""

    name: str
    seeds: Sequence[bytes]
    read: Callable[[Path], Any]
    file: str = 'file'
    pack: Callable[[random.Random, bytes], bytes] | None = None
    refuses: bool = True


READERS = [
    Reader('run', encoded(TREC_RUN, MSMARCO_RUN), run_of),
    Reader('run.gz', encoded(TREC_RUN, MSMARCO_RUN), run_of, file='run.gz', pack=mutations.packed),
    Reader('qrels', encoded(QRELS), read_qrels),
    Reader('topics TSV', encoded(TSV), topics),
    Reader('topics JSONL', encoded(TOPICS_JSONL), topics),
    Reader('topics TREC', encoded(TOPICS_TREC), topics),
    Reader('topics documents', encoded(DOCUMENTS), topics),
    Reader('topics CEDR', encoded(CEDR), topics),
    Reader('corpus TSV', encoded(TSV), corpus('tsv')),
    Reader(
        'corpus TSV, skip', encoded(TSV), corpus('tsv', on_error='skip'),
        refuses=False,
    ),
    Reader('corpus JSONL', encoded(CORPUS_JSONL), corpus('jsonl')),
    Reader(
        'corpus JSONL, skip', encoded(CORPUS_JSONL), corpus('jsonl', on_error='skip'), refuses=False,
    ),
    Reader('corpus TREC', encoded(DOCUMENTS), corpus('trec')),
    Reader('corpus TREC, skip', encoded(DOCUMENTS), corpus('trec', on_error='skip'), refuses=False),
    Reader('corpus CEDR', encoded(CEDR), corpus('cedr')),
    Reader(
        'corpus, guessed', encoded(TSV, CORPUS_JSONL, DOCUMENTS, CEDR), corpus('auto', on_error='skip'), refuses=False
    ),
    Reader('corpus HTML in .tar', [archive()], corpus('html'), file='pages.tar'),
    Reader('corpus HTML in .tgz', [archive()], corpus('html'), file='pages.tgz', pack=mutations.packed),
    Reader('corpus CEDR, skip', encoded(CEDR), corpus('cedr', on_error='skip'), refuses=False),
    Reader('predicted queries', encoded(PREDICTIONS), lambda path: list(predicted_queries(path, last_docids))),
    Reader('term weights', encoded(TERM_WEIGHTS, JSON_WEIGHTS), lambda path: list(weighted_texts(path, last_docids))),
    Reader('triples of texts', encoded(TRIPLES), triples(True)),
    Reader('triples of ids', encoded(ID_TRIPLES), triples(False)),
    Reader('list of qids', encoded(FOLD), lambda path: first_columns(str(path))),
    Reader('folds as lists', encoded(FOLD), lambda path: read_folds([path] * 3)),
    Reader('folds as JSON', encoded(FOLDS), lambda path: read_folds([path])),
    Reader('report of regressions', encoded(REPORT), report),
    Reader('regression', encoded(REGRESSION), read_regression, file='file.yaml'),
    Reader('recipe', encoded(RECIPE), read_recipe, file='recipe.yaml'),
    Reader('saved scores', [], read_saved_scores, file='kept.npz', pack=repacked),
]  # fmt: skip
