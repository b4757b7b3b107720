"""`python -m pyserini_repbert.adapt`: a search learns from your judgments, in seconds, without a
new index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from pyserini_repbert.commands import command
from pyserini_repbert.commands.flags import add_flags, record_output
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import check_replaced

if TYPE_CHECKING:
    from pyserini_repbert.train.adapting import Adaptation, Estimate


def main(arguments: list[str]) -> None:
    """Learn from judgments and print the gain; write the folder --output if the gain is no
    noise.
    """
    text = (
        'Learn the weights of a fusion and a map of query vectors from your judgments, in seconds.'
    )
    parser = command.parser(
        'adapt', f'{text} --output is written if the gain is more than noise: search --adapted.'
    )
    add_flags(parser, 'index', required=True)
    add_flags(parser, 'encoder', 'sparse')
    add = parser.add_argument
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
    options = parser.parse_args(arguments)
    from pyserini_repbert.names.topics import load_qrels, load_topics
    from pyserini_repbert.pipeline.adapted import ADAPTED, write_adapted
    from pyserini_repbert.pipeline.opening import joined, open_pipeline
    from pyserini_repbert.pipeline.spec import Machine, PipelineSpec
    from pyserini_repbert.search.dense import RepBertSearcher
    from pyserini_repbert.train.adapting import DEPTH, N_MAPS, adapt

    check_replaced(options.output, options.overwrite, ADAPTED, 'adapted search')
    given = command.picked(
        options, 'index', 'encoder', 'sparse', 'max_length', 'precision', 'corpus'
    )
    spec = PipelineSpec.of(given | {'stages': [options.rerank] if options.rerank else []})
    topics = load_topics(options.topics)
    qrels = load_qrels(options.qrels)
    opened = open_pipeline(spec, Machine(devices=(options.device,)))
    pipeline = opened.pipeline
    assert pipeline.first is not None
    dense, *sparse = pipeline.first.leaves()
    if not isinstance(dense, RepBertSearcher):
        raise InputError('no dense index was given: name the encoder of --index as --encoder')
    reranker = pipeline.rerankers and joined(spec, [], [pipeline.rerankers], pipeline.source)
    with command.progress(N_MAPS, 'adapt', 'map', options.quiet) as bar:
        learnt = adapt(dense, sparse, topics, qrels, options.seed, bar.update, reranker)

    estimate = learnt.estimate()
    _print_estimate(learnt, estimate, [dense.name, *spec.sparse])
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
        encoder=dense.name,
        encoder_weights=getattr(dense.query_encoder, 'weights_sha256', ''),
        sparse=spec.sparse,
        weights=learnt.weights,
        depth=DEPTH,
        estimate=asdict(estimate),
        stages=tuple(
            f'{stage}{"," if stage.options else ":"}weight={learnt.rerank_weight:g}'
            for stage in spec.stages
        ),
    )
    record_output(options, options.output, ('topics', 'qrels'), opened.models, opened.indexes)
    print(f'{options.output}: search with --adapted {options.output}')


def _print_estimate(learnt: Adaptation, estimate: Estimate, names: Sequence[str]) -> None:
    """Print the means of all rankings, what was learnt, and the gain; `names` are of the fused."""
    texts = '' if estimate.texts == estimate.topics else f' of {estimate.texts} different texts'
    print(f'nDCG@10 on {estimate.topics} topics{texts}, each by what the others taught:')
    rows = learnt.untuned | learnt.steps
    width = max(map(len, rows))
    for name, values in rows.items():
        print(f'  {name:<{width}}  {values.mean():.4f}')
    if len(names) > 1:
        weights = zip(names, learnt.weights, strict=True)
        print(f'weights: {", ".join(f"{name} {weight:g}" for name, weight in weights)}')
    if learnt.rerank_weight is not None:
        print(f"the reranker's share: {learnt.rerank_weight:g}")
    print(
        f'gain: {estimate.gain:+.4f} +- {estimate.standard_error:.4f} over the best untuned '
        f'({estimate.baseline}), p {estimate.p:.2g}'
    )
