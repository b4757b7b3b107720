"""The command `evaluate latency`: how long each stage of a search takes on this machine."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence

from pyserini_repbert.commands.command import (
    parser,
    positive_int,
    progress,
    refuse,
    use_threads,
    zero_or_more,
)
from pyserini_repbert.commands.flags import FUSION_SETTINGS, add_flags, parse_flags
from pyserini_repbert.commands.reranking import spec_of
from pyserini_repbert.evaluate.studies.latency import StageLatency, measure_latency
from pyserini_repbert.evaluate.tables import markdown, write_csv
from pyserini_repbert.names.topics import load_topics
from pyserini_repbert.search.scans import scans

_HEADER = ['stage', 'mean ms', 'median ms', '95% ms']
# EPIC section 3: 1,000 queries after 1,000 to warm up the cache.
_EPIC_QUERIES = 1000


def latency(arguments: Sequence[str]) -> None:
    """Print the time of each stage, and of the whole search, for one query at a time."""
    options = _parse_latency(arguments)
    use_threads(options.threads)
    from pyserini_repbert.pipeline.opening import open_pipeline

    spec, machine = spec_of(options)
    refuse(
        spec.index is None and not spec.sparse,
        'nothing to search: name an --index, or a --sparse ranking',
    )
    topics = load_topics(options.topics)
    pipeline = open_pipeline(spec, machine).pipeline
    n_queries = options.warm_up + options.queries
    with (
        contextlib.closing(pipeline),
        progress(n_queries, 'latency', 'queries', options.quiet) as bar,
    ):
        latencies = measure_latency(
            pipeline,
            topics,
            n_warmup=options.warm_up,
            n_timed=options.queries,
            k=options.hits,
            on_progress=bar.update,
        )
    rows = [_row(stage) for stage in latencies]
    print(markdown(_HEADER, rows))
    print(
        f'\n{options.queries:,} queries after {options.warm_up:,} to warm up, one at a time, '
        f'{options.hits:,} hits.'
    )
    print(f'On this machine: {_hardware(options)}.')
    if options.csv:
        write_csv(options.csv, _HEADER, rows)


def _parse_latency(arguments: Sequence[str]) -> argparse.Namespace:
    flags = parser(
        'evaluate latency',
        'How long a search takes for one query at a time, by stage. EPIC times 1,000 queries '
        'after 1,000 to warm up; its Table 1 has the means.',
    )
    add_flags(flags, 'topics', required=True)
    flags.add_argument(
        '--warm-up',
        type=zero_or_more,
        default=_EPIC_QUERIES,
        metavar='N',
        help='topics to rank first, without timing them',
    )
    flags.add_argument(
        '--queries',
        type=positive_int,
        default=_EPIC_QUERIES,
        metavar='N',
        help='topics to time after these',
    )
    add_flags(flags, 'hits', type=positive_int, help='hits of a query')
    add_flags(flags, 'index', 'encoder', 'sparse', 'rankings', 'aggregate', *scans(), 'k1', 'b')
    add_flags(flags, 'fusion', default=None)
    add_flags(flags, 'sparse_first', *FUSION_SETTINGS, 'depth')
    add_flags(flags, 'stages', flag='--rerank')
    flags.add_argument('--corpus', help='the passages, for --rerank')
    add_flags(flags, 'csv', 'overwrite', 'device', 'precision', 'threads', 'offline')
    # What `search` has for runs: one query at a time needs none of it.
    flags.set_defaults(devices=None, workers=0, ray=None)
    return parse_flags(flags, arguments)


def _row(latency: StageLatency) -> list[str]:
    times = (latency.mean, latency.percentile(50), latency.percentile(95))
    return [latency.stage, *(f'{value:.1f}' for value in times)]


def _hardware(options: argparse.Namespace) -> str:
    """The processor and its threads, and the GPU that models run on."""
    import torch

    from pyserini_repbert.models.precision import usable_device
    from pyserini_repbert.models.timing import machine_name

    device = usable_device(options.device)
    if device.type != 'cuda':
        return machine_name()
    return f'{machine_name()}, {torch.cuda.get_device_name(device)}'
