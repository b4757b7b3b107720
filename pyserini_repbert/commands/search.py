"""`python -m pyserini_repbert.search`: answer questions, or write a run file for topics.

The way of a query: the flags become a `PipelineSpec` (the request) and a `Machine` (where it runs).
`resolve` decides what is searched, and opens the index. `open_resolved` opens its rankings. The
pipeline ranks all questions or topics together. Their hits are printed, or written as a run.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands import command
from pyserini_repbert.commands.console import printable
from pyserini_repbert.commands.flags import (
    FUSION_SETTINGS,
    OutputFile,
    RanksFile,
    add_flags,
    parse_flags,
    record_output,
    used_fusion,
)
from pyserini_repbert.commands.parts import recorded_by_parts
from pyserini_repbert.commands.reranking import (
    add_stage_arguments,
    connect_to_ray,
    report,
    spec_of,
)
from pyserini_repbert.commands.terminal import (
    ProgressBars,
    answer_questions,
    cut_text,
    hits_text,
    piped_questions,
    say_device,
    scores_in_rankings,
)
from pyserini_repbert.data.copies import DistinctHits, depths_of, distinct_hits
from pyserini_repbert.data.model_judges import TAUGHT_BY
from pyserini_repbert.data.origins import readable_docid, stored_docid
from pyserini_repbert.errors import MissingResourceError
from pyserini_repbert.extension import add_flags_of, parts_of
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Query, Ranking, Run, check_question
from pyserini_repbert.search.scans import scans

if TYPE_CHECKING:
    from pyserini_repbert.commands.parts import SearchFollower
    from pyserini_repbert.data.snippets import WordMatch
    from pyserini_repbert.pipeline.pipeline import Pipeline
    from pyserini_repbert.pipeline.resolving import ResolvedSearch
    from pyserini_repbert.rerank.base import Reranker
    from pyserini_repbert.trace import Notes

_SHOWN_HITS = 3
_RUN_HITS = 1000
# From so many queries together on, exact search is faster (figures: docs/guides/own-corpus.md).
_MANY = 8

_EXAMPLES = """\
examples, on the collection of the extra 'demo':
  %(prog)s --index demo --query 'who got the first nobel prize in physics'
  %(prog)s --index demo --sparse bm25@demo --rerank monobert-demo@20 \\
    --query 'what is the main mineral in lithium batteries'
  %(prog)s --index demo --topics demo --output run.txt
"""


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command's flags."""
    parser = command.parser(
        'search',
        'Answer questions in the terminal, or write a run file for topics. Without a question, '
        'ask at a prompt, or read questions from a pipe, one on each line. '
        '--index adds one ranking. Each --sparse NAME@INDEX adds one more, such '
        'as bm25@FOLDER or bm25@demo. All rankings are fused, '
        'including the rankings of a collection. --rerank reranks the best hits.',
    )
    _add_questions(parser.add_argument_group('what is asked'))
    _add_searched(parser.add_argument_group('what is searched'))
    fused = parser.add_argument_group('how rankings are fused')
    add_flags(fused, 'fusion', default=None)
    add_flags(fused, 'sparse_first', *FUSION_SETTINGS, 'depth')
    add_stage_arguments(parser.add_argument_group('reranking'), '--rerank')
    _add_answers(parser.add_argument_group('what is shown or written'))
    add_flags_of('search', parser)
    _add_machine(parser.add_argument_group('where it runs'))
    parser.epilog = _EXAMPLES
    return parser


def _add_questions(flags: argparse._ArgumentGroup) -> None:
    what = flags.add_mutually_exclusive_group()
    add_flags(what, 'query', action='append', required=False, help='a question; repeatable')
    what.add_argument(
        '--like',
        action='append',
        metavar='DOCID',
        type=command.utf8_text,
        help='find documents like the one with this docid; repeatable',
    )
    add_flags(what, 'topics')
    flags.add_argument(
        '--topics-format',
        default='default',
        choices=('default', 'kilt', 'raw_jsonl'),
        help="format of the topics, by Pyserini's names; 'default' recognises the format",
    )


def _add_searched(flags: argparse._ArgumentGroup) -> None:
    add_flags(flags, 'index', action='append')
    add_flags(flags, 'encoder', 'sparse', 'rankings', 'aggregate', *scans(), 'adapted')
    add_flags(flags, 'prf', 'k1', 'b', 'language', 'max_length', 'download', 'build')
    flags.add_argument(
        '--corpus', help="the catalog's collection, for --build; the passages, for --rerank"
    )


def _add_answers(flags: argparse._ArgumentGroup) -> None:
    add = flags.add_argument
    add(
        '--hits',
        type=command.positive_int,
        help=f'hits of each query; default: {_RUN_HITS} for topics, {_SHOWN_HITS} for a question',
    )
    add(
        '--explain',
        action='store_true',
        help="show each hit's rank in each ranking, and what the rankings and rerankers saw in it",
    )
    add('--output', type=OutputFile, help='with --topics: the run file to write')
    add_flags(flags, 'overwrite', 'output_format', 'tag', 'remove_duplicates')
    add(
        '--provenance',
        type=RanksFile,
        metavar='FILE',
        help="write each hit's rank in each ranking, as FILE.tsv or FILE.jsonl",
    )


def _add_machine(flags: argparse._ArgumentGroup) -> None:
    add_flags(flags, 'device', 'precision', 'device_dtype', 'batch_size', 'ray')
    add_flags(
        flags,
        'threads',
        type=command.threads_or_auto,
        help='CPU threads to use at most; auto: as many as compute one question fastest; default: '
        '$OMP_NUM_THREADS',
    )
    add_flags(flags, 'offline')


def _check_outputs(options: argparse.Namespace) -> None:
    """Raise InputError for flags of runs beside a question, and for flags of questions beside
    topics.
    """
    asks = options.topics is None
    command.refuse(
        asks == bool(options.output), '--output is for --topics: give both, or ask a --query'
    )
    command.refuse(
        asks and (options.provenance or options.cost),
        '--provenance and --cost describe a run: give --topics and --output',
    )
    command.refuse(
        options.explain and not asks,
        '--explain is for questions: a run has --provenance',
    )
    for part in parts_of('search'):
        part.check(options)


def _check_searchers(
    options: argparse.Namespace, resolved: ResolvedSearch, machine: Machine
) -> None:
    """Raise InputError for flags of searchers that are not asked, and for a setting of another
    method of fusion.
    """
    spec = resolved.spec
    used_fusion(spec)
    command.refuse(
        (options.fusion or options.depth) and spec.n_rankings < 2,
        '--fusion and --depth need two rankings: give --index with --sparse, --sparse twice, or '
        'two --rankings of a collection',
    )
    command.refuse(
        spec.bm25_constants and not resolved.searches_words,
        '--k1 and --b are for --sparse: add it, or leave them out',
    )
    reads_corpus = machine.build or spec.stages
    command.refuse(
        spec.corpus and not reads_corpus,
        '--corpus is for --build, or for --rerank: an index is searched as it is',
    )


def _check_index_flags(options: argparse.Namespace, spec: PipelineSpec) -> None:
    """Raise InputError for a missing --index, and for flags of another one."""
    command.refuse(
        spec.index is None and not spec.adapted and (spec.encoder or not spec.sparse),
        'there is nothing to search: name a folder or a catalog index as --index',
    )
    names_index = spec.index is not None or spec.adapted is not None
    command.refuse(
        spec.scan and not names_index, f'--{spec.scan} is for the vectors of an --index: name one'
    )
    command.refuse(
        options.ray is not None and (not names_index or spec.scan),
        '--ray is for the exact search of an --index: name one, or leave --ray out',
    )
    command.refuse(
        options.like and spec.stages,
        'a reranker reads a question, and --like is a document: leave one out',
    )


def main(arguments: list[str]) -> None:
    """Print the hits of questions, or write the run file of topics."""
    options = parse_flags(make_parser(), arguments)
    measures_threads = options.threads == 'auto'
    if measures_threads:
        command.refuse(
            options.topics,
            '--threads auto is for questions: topics are ranked together, so give a number',
        )
        options.threads = None
    command.use_threads(options.threads)
    options.hits = options.hits or (_RUN_HITS if options.topics else _SHOWN_HITS)
    for question in options.query or ():
        check_question(question)
    from pyserini_repbert.pipeline.resolving import resolve

    spec, machine = spec_of(options)
    _check_outputs(options)
    _check_index_flags(options, spec)
    with contextlib.ExitStack() as held:
        resolved = resolve(spec, machine)
        held.callback(resolved.close)
        if options.like:
            # The collection's own rerankers read a question.
            resolved = resolved.without_stages()
        _check_searchers(options, resolved, machine)
        resolved = _rank_deeper(resolved, options)
        if measures_threads and _runs_a_model(resolved):
            command.use_fastest_threads()
        machine = _start_engines(options, resolved, machine, held)
        if options.topics:
            _write_run(options, resolved, machine)
        else:
            _answer(options, resolved, machine)


def _used(spec: PipelineSpec) -> dict[str, Any]:
    """The values that flags have, or would have, for the record."""
    decided = {'rankings': spec.rankings, 'adapted': spec.adapted, 'fusion': spec.fusion}
    return decided | used_fusion(spec)


def _teacher_of(resolved: ResolvedSearch) -> dict[str, str]:
    """The language model from whose grades the search learned, for the record; empty without
    one.
    """
    teacher = None if resolved.index is None else resolved.index.taught_by()
    return {} if teacher is None else {TAUGHT_BY: teacher}


def _shows_ranks(options: argparse.Namespace) -> bool:
    """Whether the ranks of hits in each ranking are shown."""
    return bool(options.provenance or options.explain) or _asks_at_prompt(options)


def _asks_at_prompt(options: argparse.Namespace) -> bool:
    """Whether questions are typed: none is given, and stdin is a terminal."""
    if options.query or options.like or options.topics:
        return False
    return sys.stdin is not None and sys.stdin.isatty()


def _reading_ranks(pipeline: Pipeline, options: argparse.Namespace) -> Pipeline:
    """The pipeline, which searches as deep as it takes to show ranks, and as what follows
    it reads.
    """
    if _shows_ranks(options):
        return pipeline.searching_deeper(_RUN_HITS)
    depth = max((part.depth(options) for part in parts_of('search')), default=0)
    if depth:
        return pipeline.searching_deeper(depth)
    return pipeline


def _rank_deeper(resolved: ResolvedSearch, options: argparse.Namespace) -> ResolvedSearch:
    """The search, with deeper rankings where ranks are shown.

    Interleaving needs no more than --hits of each ranking. A hit's rank in each needs more.
    """
    spec = resolved.spec
    if not _shows_ranks(options) or spec.fusion != 'interleave' or spec.scan:
        return resolved
    deepest = max(options.hits, _RUN_HITS, *(stage.k for stage in spec.stages))
    return resolved.with_depth(spec.depth or deepest)


def _start_engines(
    options: argparse.Namespace,
    resolved: ResolvedSearch,
    machine: Machine,
    held: contextlib.ExitStack,
) -> Machine:
    """The machine, connected to the Ray cluster if one is named; Java starts meanwhile if needed.

    Parameters
    ----------
    options : the command's flags
    resolved : what is searched
    machine : where
    held : closes what was opened
    """
    if resolved.needs_java:
        from pyserini_repbert.lucene.jvm import started_ahead

        held.enter_context(started_ahead(few_queries=bool(options.query or options.like)))
    if _runs_a_model(resolved):
        say_device(options)
        if options.topics:
            from pyserini_repbert.encode.text_network import use_pytorch

            # A run has the same digits however many topics it has.
            use_pytorch()
    return connect_to_ray(options, machine, held)


def _runs_a_model(resolved: ResolvedSearch) -> bool:
    """Whether a ranking encodes the query, or candidates are reranked."""
    if resolved.spec.stages:
        return True
    index = resolved.index
    if index is None:
        return False
    return not index.offered.of_models.isdisjoint(index.rankings)


def _answer(options: argparse.Namespace, resolved: ResolvedSearch, machine: Machine) -> None:
    """Show the hits of each question; with --explain also why they are there."""
    from pyserini_repbert.pipeline.opening import open_resolved

    with ProgressBars(options) as watcher, _naming_command(options):
        pipeline = open_resolved(resolved, machine, watcher.building).pipeline
    pipeline = _reading_ranks(pipeline, options)
    liked: list[str] = []
    if options.like:
        by_documents = pipeline.by_documents()
        liked = _stored_docids(pipeline, options.like)
        pipeline = by_documents

    with contextlib.closing(pipeline):
        followers = _open_followers(options, resolved, pipeline)
        depth = resolved.spec.depth
        if depth is not None:
            # So deep were the rankings searched whose ranks are shown.
            depth = max(depth, _RUN_HITS)

        without_hits = _without_hits(resolved)

        def answers(questions: Sequence[str]) -> list[str]:
            return _answers(questions, pipeline, options, depth, followers, without_hits)

        if _asks_at_prompt(options):
            answer_questions(lambda question: answers([question])[0])
        elif options.query or liked:
            print('\n\n'.join(answers(options.query or liked)))
        else:
            for question in piped_questions():
                print(answers([question])[0], flush=True)


@contextlib.contextmanager
def _naming_command(options: argparse.Namespace) -> Iterator[None]:
    """A context whose error about an index that can be built says which command builds it."""
    try:
        yield
    except MissingResourceError as error:
        if 'build' not in error.parameters:
            raise
        again = shlex.join([*options.command, '--build'])
        raise MissingResourceError(f'{error}: {again}') from error


def _stored_docids(pipeline: Pipeline, docids: Sequence[str]) -> list[str]:
    """The stored docids of documents that are questions. Raises the errors of
    `Searcher.more_like`.
    """
    stored = [stored_docid(docid, pipeline.holds) for docid in docids]
    for docid in stored:
        pipeline.check_document(docid)
    return stored


def _answers(
    questions: Sequence[str],
    pipeline: Pipeline,
    options: argparse.Namespace,
    depth: int | None,
    followers: Sequence[SearchFollower] = (),
    without_hits: str = 'no hits',
) -> list[str]:
    """The hits of each question as text, with reasons on request.

    Parameters
    ----------
    questions : are ranked together
    pipeline : ranks them
    options : the command's flags
    depth : how many hits of each first stage are known; None: as many as it has
    followers : say something of the hits
    without_hits : is said of a question that finds nothing
    """
    from pyserini_repbert.lucene.languages import language_of
    from pyserini_repbert.lucene.query_words import word_finder

    topics = [Query(str(number), text) for number, text in enumerate(questions)]
    answers = _find_distinct(topics, pipeline, options, followers)
    find_words = _find_no_words if options.like else word_finder(language_of(pipeline))
    texts = []
    for topic in topics:
        answer = answers[topic.qid]
        hits = answer.distinct.hits
        reasons: Sequence[Sequence[str]] = ()
        if options.explain or _asks_at_prompt(options):
            reasons = _reasons(topic, hits, pipeline, options, answer.watcher, depth)
        question = f'like {readable_docid(topic.text)}' if options.like else topic.text
        text = hits_text(
            question,
            hits,
            reasons,
            find_words,
            lines_below=answer.lines if hits else [*answer.lines, without_hits],
            marks=answer.marks,
            scores=_shown_scores(topic, hits, pipeline, answer.watcher),
            copies=answer.distinct.copies,
        )
        texts.append(text)
    return texts


@dataclass(frozen=True)
class _ShownHits:
    """The answer to a question.

    Attributes
    ----------
    distinct : the hits that are shown
    lines : what extensions say about the question
    marks : of each hit; none if nothing is said
    watcher : has the intermediate runs
    """

    distinct: DistinctHits
    lines: Sequence[str]
    marks: Sequence[Sequence[str]]
    watcher: ProgressBars


def _find_distinct(
    topics: Sequence[Query],
    pipeline: Pipeline,
    options: argparse.Namespace,
    followers: Sequence[SearchFollower],
) -> dict[str, _ShownHits]:
    """The answer to each question by its qid, with `--hits` hits of different texts."""
    answers: dict[str, _ShownHits] = {}
    waiting = topics
    for depth in depths_of(options.hits):
        n_hits = max([depth, *(follower.n_hits for follower in followers)])
        with ProgressBars(options) as watcher:
            run = pipeline.rank(waiting, None, n_hits, watcher)
        if not answers:
            _warn_of_queries(topics, pipeline, watcher)
        short = []
        for topic in waiting:
            said = _follow(topic, run[topic.qid], followers, watcher)
            add_texts = partial(pipeline.with_decisive_texts, topic, notes=watcher)
            distinct = distinct_hits(said.ranking, options.hits, add_texts)
            marks = [said.marks[row] for row in distinct.rows] if said.marks else ()
            answers[topic.qid] = _ShownHits(distinct, said.lines, marks, watcher)
            if distinct.are_too_few(options.hits, said.ranking, n_hits):
                short.append(topic)
        if not short:
            break
        waiting = short
    return answers


def _without_hits(resolved: ResolvedSearch) -> str:
    """The message for a question without hits."""
    index = resolved.index
    if index is None or resolved.spec.sparse:
        return 'no hits'
    of_models = index.offered.of_models
    # From an index with vectors, users expect hits by meaning.
    if of_models and of_models.isdisjoint(index.rankings):
        return 'no hits: this search is only by words'
    return 'no hits'


def _shown_scores(
    topic: Query, hits: Ranking, pipeline: Pipeline, watcher: ProgressBars
) -> list[str]:
    """The scores of hits as a person reads them; none: their own.

    The best hit of a fusion has nearly the same score for any question, so the scores in the
    rankings that were fused are shown.
    """
    if pipeline.first is None or len(pipeline.first.parts) < 2 or pipeline.rerankers is not None:
        return []
    rankings = {}
    for name, notes in watcher.parts['search'].parts.items():
        rankings[name] = notes.run[topic.qid]
    return scores_in_rankings(hits, rankings)


@dataclass(frozen=True)
class _Said:
    """Hits of a question, and what extensions say of them.

    Attributes
    ----------
    ranking : the hits that are shown
    lines : of the question
    marks : of each hit; none if nothing is said
    """

    ranking: Ranking
    lines: Sequence[str] = ()
    marks: Sequence[Sequence[str]] = ()


def _follow(
    topic: Query, ranking: Ranking, followers: Sequence[SearchFollower], watcher: ProgressBars
) -> _Said:
    """The hits of a topic that are shown, and what followers say, one after the other."""
    if not followers:
        return _Said(ranking)
    lines: list[str] = []
    marks: list[tuple[str, ...]] = [()] * len(ranking)
    for follower in followers:
        followed = follower.follow(topic, ranking, watcher)
        if followed.line:
            lines.append(followed.line)
        if followed.marks:
            marks = [(*own, mark) for own, mark in zip(marks, followed.marks, strict=True)]
        if followed.rows is not None:
            marks = [marks[row] for row in followed.rows]
            scores = [ranking.scores[row] for row in followed.rows]
            ranking = ranking.select_rows(followed.rows, scores)
    return _Said(ranking, lines, marks)


def _reasons(
    topic: Query,
    hits: Ranking,
    pipeline: Pipeline,
    options: argparse.Namespace,
    watcher: ProgressBars,
    depth: int | None,
) -> list[list[str]]:
    """The lines below each hit: its rank in each ranking, and with --explain why it is there.

    Parameters
    ----------
    topic, hits : the question and its answer
    pipeline : has ranked
    options : the command's flags
    watcher : has the run of each ranking
    depth : as in `_answers`
    """
    from pyserini_repbert.explain.explaining import hit_reasons

    searchers = _searchers(watcher)
    names = [searcher.name for searcher in searchers]
    rankings = [searcher.run[topic.qid] for searcher in searchers]
    if not options.explain:
        return hit_reasons(topic.text, hits, names, rankings, depth=depth)
    reasons = pipeline.reasons(topic.text, hits.docids)
    reranker = last_reranker(pipeline)
    return hit_reasons(topic.text, hits, names, rankings, reranker, depth, reasons)


def _open_followers(
    options: argparse.Namespace, resolved: ResolvedSearch, pipeline: Pipeline
) -> list[SearchFollower]:
    """What extensions say about hits, if flags ask for it. Raises the errors of
    `CommandPart.follow`.
    """
    followers = []
    for part in parts_of('search'):
        follower = part.follow(options, resolved, pipeline)
        if follower is not None:
            followers.append(follower)
    return followers


def _find_no_words(query: str, text: str) -> list[WordMatch]:
    """No word of a document's text: its name has no meaning."""
    return []


def _warn_of_queries(
    topics: Sequence[Query],
    pipeline: Pipeline,
    watcher: ProgressBars,
    *,
    with_qids: bool = False,
) -> None:
    """Say on stderr which query a searcher cannot read; of several, the first."""
    warnings: list[str] = []
    for topic in topics:
        # A searcher that finds something has read words.
        if all(searcher.run[topic.qid] for searcher in _searchers(watcher)):
            continue
        about = f"topic '{topic.qid}': " if with_qids else ''
        warnings += [f'{about}{warning}' for warning in pipeline.warnings(topic.text)]
    if warnings:
        others = f' (and {len(warnings) - 1} more)' if len(warnings) > 1 else ''
        print(f'warning: {printable(warnings[0])}{others}', file=sys.stderr)


def _searchers(watcher: ProgressBars) -> list[Notes]:
    """What each searcher of the first stage reported."""
    return watcher.parts['search'].leaves()


def last_reranker(pipeline: Pipeline) -> Reranker | None:
    """The last reranker of a pipeline on one device; None without one."""
    from pyserini_repbert.rerank.base import Reranker

    rerankers = [leaf for leaf in pipeline.leaves() if isinstance(leaf, Reranker)]
    return rerankers[-1] if rerankers else None


def _write_run(options: argparse.Namespace, resolved: ResolvedSearch, machine: Machine) -> None:
    """Write the run of all topics and the other requested outputs; print times and costs."""
    from pyserini_repbert.data.runs import write_run
    from pyserini_repbert.fusion.interleaving import write_provenance
    from pyserini_repbert.names.topics import load_topics
    from pyserini_repbert.pipeline.opening import open_resolved
    from pyserini_repbert.pipeline.pipeline import run_pipeline

    topics = load_topics(options.topics, options.topics_format)
    _advise_exact_search(options, resolved.spec.scan, n_topics=len(topics))
    with ProgressBars(options) as watcher:
        with _naming_command(options):
            opened = open_resolved(resolved, machine, watcher.building)
        pipeline = _reading_ranks(opened.pipeline, options)
        with contextlib.closing(pipeline):
            recorded = opened.recorded()
            # A search that cannot be followed is refused before it takes its time.
            followers = _open_followers(options, resolved, pipeline)
            run = run_pipeline(
                pipeline,
                topics,
                k=options.hits,
                trace=watcher,
                batch_topics=machine.batch_size,
            )
            ended = time.perf_counter()
            for follower in followers:
                follower.write(topics, run, watcher)
            _warn_of_queries(topics, pipeline, watcher, with_qids=True)
    write_run(options.output, run, options.output_format, options.tag)
    record_output(
        options,
        options.output,
        ('topics', 'corpus', 'index', 'sparse'),
        models=recorded.models,
        inputs=recorded.indexes,
        rankers=recorded.rankers,
        used={
            **_used(resolved.spec),
            **_teacher_of(resolved),
            **recorded_by_parts('search', watcher),
        },
    )
    searchers = _searchers(watcher)
    names = [searcher.name for searcher in searchers]
    if options.provenance:
        first_runs = [searcher.run for searcher in searchers]
        write_provenance(options.provenance, names, first_runs, run)
    times = _times_text(watcher.began, ended, len(topics), ' + '.join(names))
    n_topics = command.count_text(len(topics), 'topic')
    print(f'{options.output}: {n_topics}{_losses_text(run, pipeline)}, {times}')
    if 'rerank' in watcher.began or pipeline.rewriting is not None:
        report(options, pipeline.rerankers, watcher)


def _advise_exact_search(options: argparse.Namespace, scan: str, n_topics: int) -> None:
    """Say on stderr that a scan is slower for so many topics, if it is."""
    together = min(n_topics, options.batch_size)
    # Exact search multiplies the vectors of many questions together, not those of their tokens.
    is_dense = not options.rankings or 'dense' in options.rankings
    if scan and is_dense and together >= _MANY and not options.quiet:
        print(
            f'for {together} topics together, exact search is faster, and misses '
            f'nothing: leave out --{scan}',
            file=sys.stderr,
        )


def _losses_text(run: Run, pipeline: Pipeline) -> str:
    """', 2 without hits, 3 cut to 20 wordpieces'; '' if nothing was lost."""
    silent = sum(not ranking for ranking in run.values())
    text = f', {silent} without hits' if silent else ''
    searchers = pipeline.first.leaves() if pipeline.first else ()
    for searcher in searchers:
        text += cut_text(getattr(searcher, 'query_encoder', None))
    return text


def _times_text(began: Mapping[str, float], ended: float, n_topics: int, searchers: str) -> str:
    """'12.3 ms each (bm25)'; with a reranker the total, then what searching and reranking took.

    Parameters
    ----------
    began : when each step began, in seconds of `time.perf_counter`
    ended : when the last step ended
    n_topics : how many topics shared the time
    searchers : their names
    """

    def each(seconds: float) -> str:
        return f'{1000 * seconds / max(n_topics, 1):.1f}'

    total = each(ended - began['search'])
    if 'rerank' not in began:
        return f'{total} ms each ({searchers})'
    searching = each(began['rerank'] - began['search'])
    reranking = each(ended - began['rerank'])
    return f'{total} ms each: {searching} searching ({searchers}), {reranking} reranking'
