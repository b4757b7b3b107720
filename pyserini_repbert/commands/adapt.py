"""`python -m pyserini_repbert.adapt`: a search learns from your judgments, in seconds, without a
new index.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands import command, outputs
from pyserini_repbert.commands.flags import add_flags, record_output
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import add_flags_of, parts_of
from pyserini_repbert.files import check_replaced

if TYPE_CHECKING:
    from pyserini_repbert.adapt.adaptation import Adaptation, Estimate
    from pyserini_repbert.adapt.offering import OfferedSearch
    from pyserini_repbert.pipeline.opening import RecordedPipeline
    from pyserini_repbert.pipeline.resolving import ResolvedSearch
    from pyserini_repbert.pipeline.spec import PipelineSpec, StageSpec
    from pyserini_repbert.ranking import Ranker


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command's flags."""
    parser = command.parser(
        'adapt',
        'Learn from your judgments, in seconds: the weights of a fusion, and a map of query '
        'vectors. Compare the learned search with the present one, and with every fusion that '
        'needs no judgments. Write the best to --output if its gain is likely and its risk small; '
        '`search --adapted` uses it.',
    )
    add = parser.add_argument
    add_flags(parser, 'index', required=True)
    add_flags(parser, 'encoder', 'sparse', 'language')
    add(
        '--rerank',
        metavar='NAME@K',
        help='also learn the share of a reranker, which reads the best K hits',
    )
    add_flags(parser, 'corpus')
    add_flags(parser, 'topics')
    add(
        '--qrels',
        help='judgments: a file or a name; at least 20 different topics need a relevant passage',
    )
    add('--output', type=outputs.OutputPath, metavar='FOLDER', help='the folder to write')
    add('--keep', action='store_true', help='write --output even if the gain may be noise')
    add(
        '--seed',
        type=command.whole_number,
        default=0,
        help='seed of the folds and of random passages',
    )
    add_flags(parser, 'overwrite', 'max_length', 'device', 'precision', 'offline')
    add_flags_of('adapt', parser)
    return parser


def main(arguments: list[str]) -> None:
    """Learn from judgments and print the gain; write the folder --output if the gain is likely and
    its risk small.
    """
    options = make_parser().parse_args(arguments)
    parts = parts_of('adapt')
    for part in parts:
        part.check(options)
    if any(part.run(options) for part in parts):
        return
    command.refuse(
        not (options.topics and options.qrels and options.output),
        '--topics, --qrels and --output go together: give all three',
    )
    _adapt_index(options)


@dataclass(frozen=True)
class _LearningSearch:
    """The search that learns, open.

    Attributes
    ----------
    spec : what is searched
    dense, sparse : its rankings
    reranker : of its best hits; None without one
    now : the present search
    recorded : its models and indexes
    """

    spec: PipelineSpec
    dense: Any
    sparse: Sequence[Any]
    reranker: Ranker | None
    now: Ranker
    recorded: RecordedPipeline

    @property
    def names(self) -> list[str]:
        """The names of the rankings, dense first."""
        return [self.dense.name, *(ranker.name for ranker in self.sparse)]


def _adapt_index(options: argparse.Namespace) -> None:
    """Learn from topics and their judgments."""
    from pyserini_repbert.adapt.judged_topics import N_MAPS
    from pyserini_repbert.adapt.learning import adapt
    from pyserini_repbert.commands.model_grades import load_judgments
    from pyserini_repbert.names.topics import load_topics
    from pyserini_repbert.search.adapted_form import ADAPTED, ADAPTED_FORM

    check_replaced(options.output, options.overwrite, ADAPTED, ADAPTED_FORM)
    spec = _spec_of(options)
    topics = load_topics(options.topics)
    qrels = load_judgments(options.qrels)
    search = _open_search(spec, options)
    with command.progress(N_MAPS, 'adapt', 'map', options.quiet) as bar:
        adaptation = adapt(
            search.dense,
            search.sparse,
            topics,
            qrels,
            seed=options.seed,
            on_progress=bar.update,
            reranker=search.reranker,
            now=search.now,
        )

    estimate = adaptation.estimate()
    names = search.names
    _print_estimate(adaptation, estimate, [names[0], *(spec.sparse or names[1:])])
    if not options.keep and not estimate.is_worth_using:
        print(f'the gain may be noise, so {options.output} is not written: --keep writes it')
        return
    _write_learned(options, search, adaptation, estimate)


def _open_search(spec: PipelineSpec, options: argparse.Namespace) -> _LearningSearch:
    """Open the search that learns. Raises InputError for one that cannot."""
    from pyserini_repbert.adapt.offering import learned_parts, search_as_now
    from pyserini_repbert.indexes.machine import Machine
    from pyserini_repbert.pipeline.opening import join_rankers, open_resolved
    from pyserini_repbert.pipeline.resolving import resolve

    machine = Machine(devices=(options.device,))
    resolved = resolve(spec, machine)
    try:
        _check_can_learn(resolved, options.index)
    except InputError:
        resolved.close()
        raise
    opened = open_resolved(resolved, machine)
    pipeline = opened.pipeline
    first: Any = pipeline.first
    dense, *sparse = learned_parts(first)
    reranker = None
    if pipeline.rerankers is not None:
        reranker = join_rankers(spec, [], [pipeline.rerankers], pipeline.source)
    # What a collection learned is not used beside other rankings.
    index = None if spec.sparse else resolved.index
    now = search_as_now(index, first, machine)
    return _LearningSearch(spec, dense, sparse, reranker, now, opened.recorded())


def _write_learned(
    options: argparse.Namespace,
    search: _LearningSearch,
    adaptation: Adaptation,
    estimate: Estimate,
) -> None:
    """Write what was learned, unless a single sparse ranking is best.

    Parameters
    ----------
    options : the flags
    search : has learned
    adaptation, estimate : what it learned, and what that gains
    """
    from pyserini_repbert.adapt.judged_topics import DEPTH
    from pyserini_repbert.adapt.offering import offered_search
    from pyserini_repbert.search.adapted_folder import write_adapted

    spec = search.spec
    offered = offered_search(adaptation, search.names)
    own = _stored_rankings(spec, offered, search.names)
    if own is None:
        (position,) = offered.rankings
        sparse_name = spec.sparse[position - 1]
        print(f'{options.output} is not written: search with --sparse {sparse_name} alone')
        return
    stages: tuple[str, ...] = ()
    if offered.rerank_weight is not None:
        stages = tuple(_weighted(stage, offered.rerank_weight) for stage in spec.stages)
    query_encoder = search.dense.query_encoder
    write_adapted(
        options.output,
        offered.query_map,
        overwrite=options.overwrite,
        index=options.index,
        encoder=getattr(query_encoder, 'name', search.dense.name),
        encoder_weights=getattr(query_encoder, 'weights_sha256', ''),
        depth=DEPTH,
        estimate=asdict(estimate),
        stages=stages,
        **own,
        **offered.fusion,
    )
    recorded = search.recorded
    record_output(options, options.output, ('topics', 'qrels'), recorded.models, recorded.indexes)
    print(f'{options.output}: search with --adapted {options.output}')


def _check_can_learn(resolved: ResolvedSearch, name: str) -> None:
    """Raise InputError for a search without vectors, or of an index that stores nothing learned.

    `name` is the index's, as the user gave it.
    """
    if not resolved.searches_vectors:
        raise InputError('no dense index was given: name the encoder of --index as --encoder')
    index = resolved.index
    if index is not None and 'adapted' not in index.kind.takes:
        raise InputError(
            f"'{name}' is {index.kind.what}, and what is learned is of one index: name one",
            parameters=('index',),
        )


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


def print_means(means: Mapping[str, float], now: str) -> None:
    """Print the mean of each way of searching, with a mark at the present search."""
    labels = {name: f'{name} (now)' if name == now else name for name in means}
    width = max(map(len, labels.values()))
    for name, value in means.items():
        print(f'  {labels[name]:<{width}}  {value:.4f}')


def _spec_of(options: argparse.Namespace) -> PipelineSpec:
    """The search that learns."""
    from pyserini_repbert.pipeline.resolving import NO_ADAPTATION
    from pyserini_repbert.pipeline.spec import PipelineSpec

    values = {
        name: value for name, value in vars(options).items() if name in PipelineSpec.model_fields
    }
    values['stages'] = [options.rerank] if options.rerank else []
    # Learning does not depend on what was learned before.
    values['adapted'] = NO_ADAPTATION
    return PipelineSpec.of(values)


def _weighted(stage: StageSpec, weight: float | None) -> str:
    """The stage, as `--rerank` takes it, with this share of the score."""
    separator = ',' if stage.options else ':'
    return f'{stage}{separator}weight={weight:g}'


def _print_estimate(adaptation: Adaptation, estimate: Estimate, names: Sequence[str]) -> None:
    """Print the means of all rankings, what was learned, and the gain; `names` are of the fused."""
    texts = '' if estimate.texts == estimate.topics else f' of {estimate.texts} different texts'
    print(f'nDCG@10 on {estimate.topics} topics{texts}, cross-validated:')
    values_of = adaptation.untuned.values | adaptation.steps
    means = {name: float(values.mean()) for name, values in values_of.items()}
    print_means(means, estimate.now)
    if len(names) > 1:
        weighted = [
            f'{name} {weight:g}' for name, weight in zip(names, adaptation.weights, strict=True)
        ]
        print(f'weights that were learned: {", ".join(weighted)}')
    if adaptation.rerank_weight is not None:
        print(f"the reranker's share that was learned: {adaptation.rerank_weight:g}")
    print(f'best: {estimate.winner}{" (now)" if estimate.keeps_now else ""}')
    print(
        f'{estimate.offered}, over now: {estimate.gain:+.4f}, 95% interval {estimate.low:+.4f} to '
        f'{estimate.high:+.4f}, p {estimate.p:.2g}'
    )
