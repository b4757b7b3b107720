"""Topics and judgments by name: of a file, the catalog, ir_datasets, or Pyserini."""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.data.qrels import Qrels, read_qrels
from pyserini_repbert.data.topics import TopicsFormat, read_topics
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import open_by_extension
from pyserini_repbert.names.datasets import IR_DATASETS, dataset
from pyserini_repbert.ranking import Query


def load_topics(spec: str, topics_format: str = TopicsFormat.DEFAULT) -> list[Query]:
    """The topics of a file, a collection, a catalog name, `ir_datasets:ID`, or one of Pyserini's
    names.

    A name is looked up in this order. The topics of a collection are the questions that people have
    judged in it. Only Pyserini's names start a JVM. A `topics_format` other
    than the default applies to files only. Raises UnknownNameError, with the nearest names, for an
    unknown name, and InputError for an unknown format.
    """
    chosen = TopicsFormat(topics_format)
    opened: list[Query] | None = open_by_extension('topics', spec)
    if opened is not None:
        return opened
    path = _file('topics', spec)
    if path is not None:
        return read_topics(path, chosen)
    if chosen is not TopicsFormat.DEFAULT:
        problem = f"there is no topics file '{spec}', and format '{chosen}' is one of files"
        raise InputError(problem, parameters=('topics_format',))
    if spec.startswith(IR_DATASETS):
        queries = dataset(spec).queries_iter()
        return [Query(query.query_id, query.default_text()) for query in queries]
    from pyserini_repbert.lucene.pyserini_names import pyserini_topics

    return pyserini_topics(spec)


def load_qrels(spec: str) -> Qrels:
    """The judgments of a file or a name, which is looked up as in `load_topics`."""
    opened: Qrels | None = open_by_extension('qrels', spec)
    if opened is not None:
        return opened
    path = _file('qrels', spec)
    if path is None and spec.startswith(IR_DATASETS):
        qrels: Qrels = {}
        for judgment in dataset(spec).qrels_iter():
            qrels.setdefault(judgment.query_id, {})[judgment.doc_id] = judgment.relevance
        return qrels
    if path is None:
        from pyserini_repbert.lucene.pyserini_names import pyserini_qrels

        path = pyserini_qrels(spec)
    return read_qrels(path)


def _file(kind: str, spec: str) -> Path | None:
    """The file at the path `spec`, or of this catalog name; None if there is neither.

    A folder hides no name.
    """
    path = Path(spec)
    if path.is_file():
        return path
    shipped = catalog.file(kind, spec)
    if shipped:
        return shipped
    if path.exists():
        return path
    return None
