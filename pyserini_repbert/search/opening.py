"""The searchers that a command line asks for: dense, sparse, or both."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert import catalog, command
from pyserini_repbert.errors import MissingResourceError
from pyserini_repbert.fusion.__main__ import formula
from pyserini_repbert.fusion.methods import ALPHA, RRF_K, FusionMethod, combiner
from pyserini_repbert.index.named import NamedIndex
from pyserini_repbert.ranking import Query
from pyserini_repbert.runs import RankedList, Run
from pyserini_repbert.search.named_index import ready_folder

if TYPE_CHECKING:
    from pyserini_repbert.pyserini_bridge.impact import EpicImpactSearcher
    from pyserini_repbert.pyserini_bridge.lucene import LuceneSparseSearcher
    from pyserini_repbert.search.dense import RepBertSearcher


@dataclass(frozen=True)
class Searchers:
    """What is searched: names and searchers in the order in which they are fused, and how.

    Attributes
    ----------
    names : 'repbert-demo', 'bm25', …
    searchers : one or several
    method : how their rankings become one
    alpha, rrf_k : as in `fusion.fuse`
    depth : hits of each ranking that are fused; default: as many as make no difference for 'interleave', else 1000 or
        as many as are wanted
    """

    names: tuple[str, ...]
    searchers: tuple[Any, ...]
    method: FusionMethod = FusionMethod.INTERLEAVE
    alpha: float = ALPHA
    rrf_k: float = RRF_K
    depth: int | None = None

    def search(self, topics: Sequence[Query], k: int, threads: int = 1) -> tuple[Run, list[Run]]:
        """The fused run, k deep, and each searcher's own; several searchers work at the same time.

        An interleaved ranking's beginning depends on its parts' beginnings only; the other methods need more.
        """
        from pyserini_repbert.search.hybrid import DEPTH, HybridSearcher

        texts, qids = [query.text for query in topics], [query.qid for query in topics]
        if len(self.searchers) == 1:
            found = self.searchers[0].batch_search(texts, qids, k, threads)
            run = {
                qid: RankedList([hit.docid for hit in hits], [hit.score for hit in hits]) for qid, hits in found.items()
            }
            return run, [run]
        first, *others = self.searchers
        hybrid = HybridSearcher(first, others, self.method, rrf_k=self.rrf_k, alpha=self.alpha)
        depth = self.depth or (k if self.method is FusionMethod.INTERLEAVE else max(k, DEPTH))
        runs = hybrid.rankings(texts, qids, depth, threads)
        return hybrid.fused(runs, k), runs

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Passage texts from the first searcher that stores any."""
        found: list[str | None] = [None] * len(docids)
        for searcher in self.searchers:
            if any(found):
                break
            found = searcher.texts(docids)
        return found


def open_searchers(options: argparse.Namespace) -> Searchers:
    """From the search command's flags: a dense searcher unless only --sparse is given, and the sparse ones.

    Raises the errors of opening an index, and InputError for flags that do not go together.
    """
    sparse = list(options.sparse or [])
    dense = bool(options.encoder) or not sparse
    n_rankings = len(sparse) + dense
    if (options.fusion or options.depth) and n_rankings < 2:
        flag = '--fusion' if options.fusion else '--depth'
        raise command.usage(f'{flag} needs two rankings: give --encoder with --sparse, or --sparse twice')
    if dense and options.index is None:
        raise command.usage('--index names the dense index: a folder or a catalog name')
    if options.corpus and not options.build and not options.stages:
        raise command.usage('--corpus is for --build, or for --rerank: an index is searched as it is')
    method = FusionMethod(options.fusion or FusionMethod.INTERLEAVE)
    alpha, rrf_k = formula(method, options)
    combiner(n_rankings, method, None, alpha, rrf_k)  # refuses what does not go together before anything is opened
    named: list[tuple[str, Any]] = [(spec, _open_sparse(spec, options)) for spec in sparse]
    if dense:
        searcher = _open_dense(options)
        name = getattr(searcher.query_encoder, 'name', 'dense')
        named.insert(len(named) if options.sparse_first else 0, (Path(name).name, searcher))
    names, searchers = zip(*named, strict=True)
    return Searchers(names, searchers, method, alpha, rrf_k, options.depth)


def _open_dense(options: argparse.Namespace) -> RepBertSearcher:
    from pyserini_repbert.encode.encoders import RepBertQueryEncoder
    from pyserini_repbert.search.dense import RepBertSearcher

    folder = ready_folder(
        options.index,
        options.encoder,
        options.device,
        options.build,
        options.corpus,
        command.precision(options),
        lambda named: _building(named, options),
    )
    encoder = None
    if options.encoder:
        encoder = RepBertQueryEncoder(
            options.encoder, options.device, precision=command.precision(options), max_length=options.max_length
        )
    return RepBertSearcher(folder, encoder, options.device)


def _building(named: NamedIndex, options: argparse.Namespace) -> Callable[[int], object]:
    _say(f"building index '{named.entry.name}' for encoder '{named.encoder}' in {named.folder}")
    collection = catalog.get('collections', named.entry.values['collection'])
    total = None if options.corpus else collection.values['passages']
    update: Callable[[int], object] = command.progress(total, 'encode', 'passages', options.quiet).update
    return update if named.builds_itself else command.model_update(update, options)


def _open_sparse(spec: str, options: argparse.Namespace) -> LuceneSparseSearcher | EpicImpactSearcher:
    from pyserini_repbert.pyserini_bridge.corpora import is_lucene_index
    from pyserini_repbert.search.sparse import open_sparse

    entry = catalog.find('indexes', options.index or '')
    if '@' not in spec and entry is None and catalog.find('sparse', spec):
        if options.index is None or not is_lucene_index(options.index):
            raise MissingResourceError(
                f"'{spec}' needs a Lucene index{f' beside {options.index}' if options.index else ''}: build one of the "
                f'same corpus with python -m pyserini_repbert.index lucene, and name it as --sparse {spec}@FOLDER'
            )
        spec = f'{spec}@{options.index}'
    collection = entry.values['collection'] if entry else None
    return open_sparse(
        spec,
        collection,
        lambda folder: _say(f'building a Lucene index in {folder}'),
        options.download,
        options.device,
    )


def _say(message: str) -> None:
    print(message, file=sys.stderr)
