"""`python -m pyserini_repbert.search`: answer questions, or write a run file for topics."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands import command
from pyserini_repbert.commands.encode import add_model_arguments
from pyserini_repbert.commands.fusion import add_formula_arguments, formula
from pyserini_repbert.commands.rerank import add_stage_arguments, report, rerank_update, stage_settings

if TYPE_CHECKING:
    from pyserini_repbert.formats.passages import PassageTexts
    from pyserini_repbert.names.indexes import NamedIndex
    from pyserini_repbert.pipeline.reranking import Reranked
    from pyserini_repbert.ranking import Query, Run
    from pyserini_repbert.search.dense import RepBertSearcher
    from pyserini_repbert.search.first_stage import FirstStage

_SHOWN_HITS = 3
_RUN_HITS = 1000


def make_parser() -> argparse.ArgumentParser:
    """The command's flags."""
    parser = command.parser(
        'search',
        'Dense, sparse or hybrid search: questions answered in the terminal, or a run file for topics. With --encoder '
        'the search is dense, with --sparse it is sparse, with both their rankings are fused; --rerank adds stages.',
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        '--query',
        action='append',
        type=command.utf8_text,
        metavar='TEXT',
        help='a question; may be given several times',
    )
    what.add_argument('--topics', help="a TSV, TREC or JSON lines file, a catalog name, or one of Pyserini's names")
    parser.add_argument('--index', help='an index folder or a catalog name; not needed where --sparse names one')
    parser.add_argument('--encoder', help='catalog name or checkpoint folder; by default the one the index names')
    parser.add_argument('--ann', action='store_true', help='search the approximate index that `index ann` built')
    parser.add_argument('--sparse', action='append', metavar='NAME[@INDEX]', help='a sparse technique; repeatable')
    parser.add_argument('--download', action='store_true', help='fetch a prebuilt sparse index that is not here')
    parser.add_argument('--fusion', choices=('interleave', 'rrf', 'interpolation'), help='default interleave')
    parser.add_argument('--sparse-first', action='store_true', help='fuse with the sparse rankings first')
    add_formula_arguments(parser)
    parser.add_argument('--provenance', metavar='FILE', help="each hit's rank in each ranking, .tsv or .jsonl")
    parser.add_argument('--output', help='the run file to write, with --topics')
    parser.add_argument('--output-format', default='trec', choices=('trec', 'msmarco'), help='of the run file')
    parser.add_argument('--tag', help="the run's tag; by default the name of the output file")
    parser.add_argument('--hits', type=command.positive_int, help=f'default {_RUN_HITS}, {_SHOWN_HITS} with --query')
    parser.add_argument('--threads', type=command.threads, default=1, help="1 leaves PyTorch's own setting")
    parser.add_argument('--batch-size', type=command.positive_int, default=512, help='topics searched together')
    parser.add_argument('--max-length', type=command.positive_int, help='wordpieces kept of a query')
    parser.add_argument('--build', action='store_true', help="build a catalog index that isn't there")
    parser.add_argument(
        '--corpus', help="with --build: where the catalog's collection lies; with --rerank: read passages there"
    )
    add_model_arguments(parser)
    add_stage_arguments(parser.add_argument_group('reranking'), '--rerank', precision_too=False)
    return parser


def main(arguments: list[str]) -> int | None:
    """Run the command."""
    options = make_parser().parse_args(arguments)
    if (options.topics is None) != (options.output is None):
        raise command.usage('--output is for --topics: give both, or ask a --query')
    if options.provenance and options.topics is None:
        raise command.usage('--provenance is for --topics')
    from pyserini_repbert.download import forbid_downloads
    from pyserini_repbert.formats.runs import check_format, default_tag

    forbid_downloads(options.offline)
    if options.query:
        _answer(options)
        return 0
    tag = options.tag or default_tag(options.output)
    check_format(options.output_format, tag)
    _write_run(options, tag)
    return 0


def _answer(options: argparse.Namespace) -> None:
    from pyserini_repbert.commands.terminal import shown_hits
    from pyserini_repbert.ranking import Query

    texts = _corpus_texts(options)
    first = _first_stage(options)
    hits = options.hits or _SHOWN_HITS
    for number, text in enumerate(options.query):
        run, _ = first.run([Query('0', text)], _depth(options, hits), options.threads)
        if options.stages and run['0']:
            run = _reranked(options, [Query('0', text)], run, texts or first).run
        found = run['0'][:hits]
        found = found.with_texts(dict(zip(found.docids, first.texts(found.docids), strict=True)))
        print(('\n' if number else '') + shown_hits(text, found))


def _first_stage(options: argparse.Namespace) -> FirstStage:
    """From the flags: a dense searcher unless only --sparse is given, and the sparse ones."""
    from pyserini_repbert.fusion.methods import FusionMethod, combiner
    from pyserini_repbert.search.first_stage import FirstStage, open_sparse

    sparse = list(options.sparse or [])
    dense = bool(options.encoder) or not sparse
    n_rankings = len(sparse) + dense
    if (options.fusion or options.depth) and n_rankings < 2:
        flag = '--fusion' if options.fusion else '--depth'
        raise command.usage(f'{flag} needs two rankings: give --encoder with --sparse, or --sparse twice')
    if options.ann and not dense:
        raise command.usage('--ann is for dense search: give --encoder with --sparse')
    if dense and options.index is None:
        raise command.usage('--index names the dense index: a folder or a catalog name')
    if options.corpus and not options.build and not options.stages:
        raise command.usage('--corpus is for --build, or for --rerank: an index is searched as it is')
    method = FusionMethod(options.fusion or FusionMethod.INTERLEAVE)
    alpha, rrf_k = formula(method, options)
    combiner(n_rankings, method, None, alpha, rrf_k)  # refuses what does not go together before anything is opened
    named: list[tuple[str, Any]] = []
    for spec in sparse:
        named.append((spec, open_sparse(spec, options.index, _building_lucene, options.download, options.device)))
    if dense:
        searcher = _dense(options)
        name = getattr(searcher.query_encoder, 'name', 'dense')
        named.insert(len(named) if options.sparse_first else 0, (Path(name).name, searcher))
    names, searchers = zip(*named, strict=True)
    return FirstStage(names, searchers, method, alpha, rrf_k, options.depth)


def _dense(options: argparse.Namespace) -> RepBertSearcher:
    from pyserini_repbert.encode.encoders import RepBertQueryEncoder
    from pyserini_repbert.names.index_building import ready_folder
    from pyserini_repbert.search.dense import RepBertSearcher

    def building(named: NamedIndex) -> Callable[[int], object]:
        _say(f"building index '{named.entry.name}' for encoder '{named.encoder}' in {named.folder}")
        total = None if options.corpus else named.collection.values['passages']
        update: Callable[[int], object] = command.progress(total, 'encode', 'passages', options.quiet).update
        return update if named.builds_itself else command.model_update(update, options)

    device, precision = options.device, command.precision(options)
    folder = ready_folder(
        options.index, options.encoder, device, options.build, options.corpus, precision, on_build=building
    )
    encoder = None
    if options.encoder:
        encoder = RepBertQueryEncoder(options.encoder, device, precision=precision, max_length=options.max_length)
    return RepBertSearcher(folder, encoder, device, ann=options.ann)


def _building_lucene(folder: Path) -> None:
    _say(f'building a Lucene index in {folder}')


def _say(message: str) -> None:
    print(message, file=sys.stderr)


def _depth(options: argparse.Namespace, hits: int) -> int:
    """Hits asked of the first stage: those wanted, and those that the first reranker takes."""
    from pyserini_repbert.pipeline.specs import parse_stage

    return max([hits, *(parse_stage(stage).k for stage in (options.stages or [])[:1])])


def _corpus_texts(options: argparse.Namespace) -> Callable[[Iterable[str]], PassageTexts] | None:
    """The passages of --corpus, opened before any model is loaded; None where the searchers' own are reranked."""
    if not options.stages or not options.corpus or options.build:
        return None
    from pyserini_repbert.names.texts import texts_opener

    return texts_opener(options.corpus, None)


def _reranked(
    options: argparse.Namespace,
    topics: Sequence[Query],
    run: Run,
    texts: PassageTexts | Callable[[Iterable[str]], PassageTexts],
) -> Reranked:
    from pyserini_repbert.pipeline.reranking import run_stages
    from pyserini_repbert.pipeline.specs import parse_stage

    stages = [parse_stage(stage) for stage in options.stages]
    with command.progress(None, 'rerank', 'inputs', options.quiet) as bar:

        def begin(total: int) -> Callable[[int], object]:
            bar.reset(total)
            return rerank_update(bar.update, options)

        return run_stages(topics, run, stages, texts, stage_settings(options), on_total=begin)


def _write_run(options: argparse.Namespace, tag: str) -> None:
    from pyserini_repbert.formats.runs import write_run
    from pyserini_repbert.fusion.origins import write_provenance
    from pyserini_repbert.names.topics import load_topics
    from pyserini_repbert.pipeline.specs import parse_stage

    hits = options.hits or _RUN_HITS
    depth = _depth(options, hits)
    topics = load_topics(options.topics)
    texts = _corpus_texts(options)
    stage = _first_stage(options)
    run: Run = {}
    parts: list[Run] = [{} for _ in stage.names]
    start = time.perf_counter()
    with command.progress(len(topics), 'search', 'topics', options.quiet) as bar:
        for first in range(0, len(topics), options.batch_size):
            batch = topics[first : first + options.batch_size]
            found, own = stage.run(batch, depth, options.threads)
            run |= found
            for part, more in zip(parts, own, strict=True):
                part |= more
            bar.update(len(batch))
    milliseconds = 1000 * (time.perf_counter() - start) / len(topics)
    reranked = _reranked(options, topics, run, texts or stage) if options.stages else None
    if reranked is not None:
        run = reranked.run
    run = {qid: ranking[:hits] for qid, ranking in run.items()}
    write_run(options.output, run, options.output_format, tag)
    if options.provenance:
        write_provenance(options.provenance, stage.names, parts, run)
    silent = sum(not ranking for ranking in run.values())
    without = f', {silent} without hits' if silent else ''
    searched = f'{milliseconds:.1f} ms each ({" + ".join(stage.names)})'
    print(f'{options.output}: {len(topics)} topics{without}, {searched}')
    if reranked is not None:
        report(options, reranked, {'run': options.output, 'k1': parse_stage(options.stages[-1]).k})
