"""`python -m pyserini_repbert.adapt`: a search learns from your judgments, in seconds, without a
new index.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from pyserini_repbert.commands import command
from pyserini_repbert.commands.flags import add_flags, record_output
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import check_replaced

if TYPE_CHECKING:
    from pyserini_repbert.adapt.adaptation import Adaptation, Estimate
    from pyserini_repbert.pipeline.spec import PipelineSpec, StageSpec


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command's flags."""
    parser = command.parser(
        'adapt',
        'Learn the weights of a fusion and a map of query vectors from your judgments, in seconds. '
        '--output is written if the gain is more than noise: search --adapted.',
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
    add_flags(parser, 'topics', required=True)
    add(
        '--qrels',
        required=True,
        help='judgments, likewise: at least 20 different topics with a relevant passage',
    )
    add('--output', required=True, metavar='FOLDER', help='the folder to make')
    add('--keep', action='store_true', help='write --output whatever the gain')
    add(
        '--seed',
        type=command.whole_number,
        default=0,
        help='seed of the folds and of random passages',
    )
    add_flags(parser, 'overwrite', 'max_length', 'device', 'precision', 'offline')
    return parser


def main(arguments: list[str]) -> None:
    """Learn from judgments and print the gain; write the folder --output if the gain is no
    noise.
    """
    options = make_parser().parse_args(arguments)
    from pyserini_repbert.adapt.learning import DEPTH, N_MAPS, adapt
    from pyserini_repbert.names.topics import load_qrels, load_topics
    from pyserini_repbert.pipeline.adapted_folder import ADAPTED, write_adapted
    from pyserini_repbert.pipeline.opening import join_rankers, open_pipeline
    from pyserini_repbert.pipeline.spec import Machine
    from pyserini_repbert.search.dense import DenseSearcher

    check_replaced(options.output, options.overwrite, ADAPTED, 'adapted search')
    spec = _spec_of(options)
    topics = load_topics(options.topics)
    qrels = load_qrels(options.qrels)
    opened = open_pipeline(spec, Machine(devices=(options.device,)))
    pipeline = opened.pipeline
    assert pipeline.first is not None
    dense, *sparse = pipeline.first.leaves()
    if not isinstance(dense, DenseSearcher):
        raise InputError('no dense index was given: name the encoder of --index as --encoder')
    reranker = pipeline.rerankers and join_rankers(spec, [], [pipeline.rerankers], pipeline.source)
    with command.progress(N_MAPS, 'adapt', 'map', options.quiet) as bar:
        learnt = adapt(dense, sparse, topics, qrels, options.seed, bar.update, reranker)

    estimate = learnt.estimate()
    sparse_names = spec.sparse or [ranker.name for ranker in sparse]
    _print_estimate(learnt, estimate, [dense.name, *sparse_names])
    if not options.keep and not estimate.is_convincing:
        print(
            f'no gain that can be told from noise: {options.output} is not written (--keep writes '
            f'it)'
        )
        return
    write_adapted(
        options.output,
        learnt.query_map,
        overwrite=options.overwrite,
        index=options.index,
        encoder=getattr(dense.query_encoder, 'name', dense.name),
        encoder_weights=getattr(dense.query_encoder, 'weights_sha256', ''),
        sparse=spec.sparse,
        weights=learnt.weights,
        depth=DEPTH,
        estimate=asdict(estimate),
        stages=tuple(_weighted(stage, learnt.rerank_weight) for stage in spec.stages),
    )
    record_output(options, options.output, ('topics', 'qrels'), opened.models, opened.indexes)
    print(f'{options.output}: search with --adapted {options.output}')


def _spec_of(options: argparse.Namespace) -> PipelineSpec:
    """The search that learns."""
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
    return PipelineSpec.of(values)


def _weighted(stage: StageSpec, weight: float | None) -> str:
    """The stage, as `--rerank` takes it, with this share of the score."""
    separator = ',' if stage.options else ':'
    return f'{stage}{separator}weight={weight:g}'


def _print_estimate(learnt: Adaptation, estimate: Estimate, names: Sequence[str]) -> None:
    """Print the means of all rankings, what was learnt, and the gain; `names` are of the fused."""
    texts = '' if estimate.texts == estimate.topics else f' of {estimate.texts} different texts'
    print(f'nDCG@10 on {estimate.topics} topics{texts}, each by what the others taught:')
    values_of = learnt.untuned | learnt.steps
    width = max(map(len, values_of))
    for name, values in values_of.items():
        print(f'  {name:<{width}}  {values.mean():.4f}')
    if len(names) > 1:
        weighted = [
            f'{name} {weight:g}' for name, weight in zip(names, learnt.weights, strict=True)
        ]
        print(f'weights: {", ".join(weighted)}')
    if learnt.rerank_weight is not None:
        print(f"the reranker's share: {learnt.rerank_weight:g}")
    print(
        f'gain: {estimate.gain:+.4f} +- {estimate.standard_error:.4f} over the best untuned '
        f'({estimate.baseline}), p {estimate.p:.2g}'
    )
