"""`python -m pyserini_repbert.adapt`: a search learns from your judgments, in seconds, without a
new index.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.collection.commands.model_judging import add_model_grades_flag
from pyserini_repbert.commands import command
from pyserini_repbert.commands.console import printable
from pyserini_repbert.commands.flags import add_flags, record_output
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import check_replaced

if TYPE_CHECKING:
    from pyserini_repbert.adapt.adaptation import Adaptation, Estimate
    from pyserini_repbert.adapt.offering import OfferedSearch
    from pyserini_repbert.pipeline.spec import PipelineSpec, StageSpec


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command's flags."""
    parser = command.parser(
        'adapt',
        'Learn the weights of a fusion and a map of query vectors from your '
        'judgments, in seconds. Choose among that, all that needs no judgments, and the search '
        'as it is now. Write --output if the gain is more than noise; '
        '`search --adapted` uses it. A collection learns from the judgments in it: '
        '`adapt --index mine`, then --use.',
    )
    add = parser.add_argument
    add_flags(parser, 'index', required=True)
    add_flags(parser, 'encoder', 'sparse', 'language')
    add_flags(
        parser,
        'filter',
        help='of a collection: learn within the documents that match; judgments of others do not '
        'count',
    )
    add_flags(parser, 'only_ids', 'not_ids')
    add(
        '--rerank',
        metavar='NAME@K',
        help="also learn a reranker's share of the score; it reads the best K",
    )
    add_flags(parser, 'corpus')
    add_flags(parser, 'topics')
    add(
        '--qrels',
        help='judgments: a file or a name; at least 20 different topics need a relevant passage',
    )
    add_model_grades_flag(
        parser,
        'of a collection: learn from the grades of this language model, too, where no person '
        'judged; `index judgments` prints its name',
    )
    add('--output', metavar='FOLDER', help='the folder to make')
    add(
        '--use',
        action='store_true',
        help='search the collection as it learned last, if that is better than it is now',
    )
    add('--even-if-worse', action='store_true', help='--use what is not better, too')
    add('--go-back', action='store_true', help='search the collection as before it learned')
    add('--keep', action='store_true', help='write --output even if the gain may be noise')
    add(
        '--seed',
        type=command.whole_number,
        default=0,
        help='seed of the folds and of random passages',
    )
    add_flags(parser, 'overwrite', 'max_length', 'device', 'precision', 'offline')
    return parser


def main(arguments: list[str]) -> None:
    """Learn from judgments and print the gain; write the folder --output if the gain is more than
    noise.
    """
    options = make_parser().parse_args(arguments)
    files = (options.topics, options.qrels, options.output)
    if not any(files):
        _adapt_collection(options)
        return
    command.refuse(
        not all(files),
        '--topics, --qrels and --output go together; without them, a collection learns from the '
        'judgments in it',
    )
    command.refuse(
        options.use or options.go_back or options.even_if_worse,
        '--use, --even-if-worse and --go-back are for what a collection learned: search with '
        '--adapted FOLDER',
    )
    command.refuse(
        options.with_model_grades is not None,
        '--with-model-grades is for the judgments in a collection: leave out --topics and --qrels',
    )
    _adapt_index(options)


def _adapt_index(options: argparse.Namespace) -> None:
    """Learn from topics and their judgments."""
    from pyserini_repbert.adapt.judged_topics import DEPTH
    from pyserini_repbert.adapt.learning import N_MAPS, adapt
    from pyserini_repbert.adapt.offering import learned_parts, offered_search, search_as_now
    from pyserini_repbert.commands.model_grades import load_judgments
    from pyserini_repbert.indexes.machine import Machine
    from pyserini_repbert.names.topics import load_topics
    from pyserini_repbert.pipeline.opening import join_rankers, open_resolved
    from pyserini_repbert.pipeline.resolving import resolve
    from pyserini_repbert.search.adapted_folder import ADAPTED, ADAPTED_FORM, write_adapted

    check_replaced(options.output, options.overwrite, ADAPTED, ADAPTED_FORM)
    spec = _spec_of(options)
    topics = load_topics(options.topics)
    qrels = load_judgments(options.qrels)
    machine = Machine(devices=(options.device,))
    resolved = resolve(spec, machine)
    if not resolved.searches_vectors:
        resolved.close()
        raise InputError('no dense index was given: name the encoder of --index as --encoder')
    opened = open_resolved(resolved, machine)
    recorded = opened.recorded()
    pipeline = opened.pipeline
    first: Any = pipeline.first
    dense: Any
    dense, *sparse = learned_parts(first)
    reranker = pipeline.rerankers and join_rankers(spec, [], [pipeline.rerankers], pipeline.source)
    # What a collection learned is not used beside other rankings.
    now = search_as_now(None if spec.sparse else resolved.index, first, machine)
    with command.progress(N_MAPS, 'adapt', 'map', options.quiet) as bar:
        learnt = adapt(dense, sparse, topics, qrels, options.seed, bar.update, reranker, now)

    estimate = learnt.estimate()
    names = [dense.name, *(ranker.name for ranker in sparse)]
    _print_estimate(learnt, estimate, [dense.name, *(spec.sparse or names[1:])])
    if not options.keep and not estimate.is_convincing:
        print(f'the gain may be noise, so {options.output} is not written: --keep writes it')
        return
    offered = offered_search(learnt, names)
    own = _stored_rankings(spec, offered, names)
    if own is None:
        (position,) = offered.rankings
        sparse_name = spec.sparse[position - 1]
        print(f'{options.output} is not written: search with --sparse {sparse_name} alone')
        return
    stages: tuple[str, ...] = ()
    if offered.rerank_weight is not None:
        stages = tuple(_weighted(stage, offered.rerank_weight) for stage in spec.stages)
    write_adapted(
        options.output,
        offered.query_map,
        overwrite=options.overwrite,
        index=options.index,
        encoder=getattr(dense.query_encoder, 'name', dense.name),
        encoder_weights=getattr(dense.query_encoder, 'weights_sha256', ''),
        depth=DEPTH,
        estimate=asdict(estimate),
        stages=stages,
        **own,
        **offered.fusion,
    )
    record_output(options, options.output, ('topics', 'qrels'), recorded.models, recorded.indexes)
    print(f'{options.output}: search with --adapted {options.output}')


def _stored_rankings(
    spec: PipelineSpec, offered: OfferedSearch, names: Sequence[str]
) -> dict[str, Any] | None:
    """The attributes of `AdaptedSearch` that say which rankings are searched.

    None for a sparse ranking beside an index and without it: no query map can change it.
    """
    from pyserini_repbert.adapt.offering import collection_rankings

    if not spec.sparse:
        return {'sparse': (), 'rankings': collection_rankings(offered, names)}
    if offered.rankings == (0,):
        return {'sparse': ()}
    if len(offered.rankings) == 1:
        return None
    return {'sparse': spec.sparse, 'sparse_first': offered.rankings[0] != 0}


def _adapt_collection(options: argparse.Namespace) -> None:
    """Learn from the judgments in a collection, or say how it is searched."""
    from pyserini_repbert.adapt.learning import N_MAPS
    from pyserini_repbert.collection.judging.from_judgments import (
        learn_from_judgments,
        use_learning,
    )
    from pyserini_repbert.collection.judging.own_settings import learning_in_use
    from pyserini_repbert.indexes.kind import kind_of

    folder = Path(options.index)
    advice = 'give --topics, --qrels and --output'
    kind_of(options.index).check_writable(options.index, advice)
    of_rankings = ('encoder', 'sparse', 'language', 'rerank', 'corpus', 'max_length')
    of_documents = ('filter', 'only_ids', 'not_ids')
    for name in (*of_rankings, *of_documents, 'keep', 'overwrite'):
        command.refuse(
            bool(getattr(options, name)),
            f'--{name.replace("_", "-")} is for --topics, --qrels and --output: a collection '
            'learns with its own rankings',
        )
    command.refuse(options.use and options.go_back, 'give --use or --go-back')
    command.refuse(options.even_if_worse and not options.use, '--even-if-worse is for --use')
    command.refuse(
        options.with_model_grades is not None and (options.use or options.go_back),
        '--with-model-grades is for learning: leave out --use and --go-back',
    )
    if options.go_back and learning_in_use(folder) is None:
        raise InputError(
            f'collection {options.index} is not searched as it learned: there is nothing to take '
            'back'
        )
    if options.use or options.go_back:
        use_learning(folder, options.use, options.even_if_worse)
        how = 'as it learned' if options.use else 'as before it learned'
        print(f'{options.index}: searched {how}')
        return
    with command.progress(N_MAPS, 'adapt', 'map', options.quiet) as bar:
        learning = learn_from_judgments(
            folder, options.device, options.seed, bar.update, options.with_model_grades
        )
    report = learning.report
    print(f'nDCG@10 on {report["topics"]} questions, cross-validated:')
    _print_means(report['means'], report['baseline'])
    print(printable(report['sentence']))
    if 'confidence' in report:
        _print_confidence(report['confidence'])
    if report['is_convincing']:
        print(f'to search so: adapt --index {options.index} --use')
    else:
        print('to learn more: judge more questions')


def _print_confidence(confidence: Mapping[str, Any]) -> None:
    """Print how far probabilities can be believed, on questions held out."""
    from pyserini_repbert.collection.estimating import MODEL
    from pyserini_repbert.search.confidence import parse_model

    print('confidence, held out:')
    hits = _reliability_text(confidence['hits'])
    print(f'  P(relevant) of {confidence["hits"]["n"]} hits: {hits}')
    questions = _reliability_text(confidence['questions'])
    print(f'  P(answered) of questions, and of the same without their answers: {questions}')
    elsewhere = confidence.get('elsewhere_auc')
    if elsewhere is not None:
        print(f"  P(answered) of questions, and of the demo collection's: AUC {elsewhere:.3f}")
    treated = 'count as not relevant' if confidence['counts_unjudged'] else 'are left out'
    print(f'  unjudged hits {treated}')
    problem = parse_model(confidence[MODEL], 'the report').why_not_shown()
    if problem is not None:
        print(f'  searches show no probabilities: {problem}: judge more questions')


def _reliability_text(values: Mapping[str, Any]) -> str:
    """AUC, ECE and Brier score, in a line."""
    auc = 'none' if values['auc'] is None else f'{values["auc"]:.3f}'
    return f'AUC {auc}, ECE {values["ece"]:.3f}, Brier {values["brier"]:.3f}'


def _print_means(means: Mapping[str, float], now: str) -> None:
    """Print the mean of each way of searching, with a mark at the search as it is now."""
    labels = {name: f'{name} (now)' if name == now else name for name in means}
    width = max(map(len, labels.values()))
    for name, value in means.items():
        print(f'  {labels[name]:<{width}}  {value:.4f}')


def _spec_of(options: argparse.Namespace) -> PipelineSpec:
    """The search that learns."""
    from pyserini_repbert.pipeline.resolving import NO_ADAPTATION
    from pyserini_repbert.pipeline.spec import PipelineSpec

    values = command.pick_options(
        options,
        'index',
        'encoder',
        'sparse',
        'language',
        'filter',
        'only_ids',
        'not_ids',
        'max_length',
        'precision',
        'corpus',
    )
    values['stages'] = [options.rerank] if options.rerank else []
    # What is learned does not depend on what was learned before.
    values['adapted'] = NO_ADAPTATION
    return PipelineSpec.of(values)


def _weighted(stage: StageSpec, weight: float | None) -> str:
    """The stage, as `--rerank` takes it, with this share of the score."""
    separator = ',' if stage.options else ':'
    return f'{stage}{separator}weight={weight:g}'


def _print_estimate(learnt: Adaptation, estimate: Estimate, names: Sequence[str]) -> None:
    """Print the means of all rankings, what was learnt, and the gain; `names` are of the fused."""
    texts = '' if estimate.texts == estimate.topics else f' of {estimate.texts} different texts'
    print(f'nDCG@10 on {estimate.topics} topics{texts}, cross-validated:')
    values_of = learnt.untuned | learnt.steps
    means = {name: float(values.mean()) for name, values in values_of.items()}
    _print_means(means, estimate.now)
    if len(names) > 1:
        weighted = [
            f'{name} {weight:g}' for name, weight in zip(names, learnt.weights, strict=True)
        ]
        print(f'weights that were learnt: {", ".join(weighted)}')
    if learnt.rerank_weight is not None:
        print(f"the reranker's share that was learnt: {learnt.rerank_weight:g}")
    print(f'best: {estimate.winner}{" (now)" if estimate.keeps_now else ""}')
    print(
        f'{estimate.offered}, over now: {estimate.gain:+.4f}, 95% interval {estimate.low:+.4f} to '
        f'{estimate.high:+.4f}, p {estimate.p:.2g}'
    )
