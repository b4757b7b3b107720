"""`python -m pyserini_repbert.fusion`: fuse run files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.commands import recording
from pyserini_repbert.commands.command import parser, progress, zero_or_more
from pyserini_repbert.commands.fusion_flags import add_formula_arguments, check_provenance, check_scores, formula
from pyserini_repbert.commands.output_files import add_run_form, parsed, run_tag

if TYPE_CHECKING:
    from pyserini_repbert.ranking import Ranking, Run

    Combine = Callable[[Sequence[Ranking]], Ranking]


def main(arguments: list[str]) -> None:
    """Fuse run files into one; with --provenance, also write each hit's rank in each run."""
    if arguments[:1] == ['tune']:
        from pyserini_repbert.commands.fusion_tune import main as tune

        tune(arguments[1:])
        return
    options = parsed(_parser(), arguments)
    from pyserini_repbert.fusion.methods import combiner

    options.tag = run_tag(options)
    check_provenance(options.provenance)
    settings = formula(options.method, options)
    check_scores(options.method, options.runs)
    combine = combiner(len(options.runs), k=options.hits or None, **settings)
    pipes = [path for path in (*options.runs, options.output) if Path(path).exists() and not Path(path).is_file()]
    whole = options.provenance or pipes  # a pipe is read and written once
    n_queries = (None if whole else _in_step(options, combine)) or _in_memory(options, combine)
    recording.write(options, options.output, ('runs',))
    if not options.quiet:
        print(f'{options.output}: {n_queries} queries', file=sys.stderr)


def _in_step(options: argparse.Namespace, combine: Combine) -> int | None:
    """Fuse query by query while reading. Returns the number of queries; None, with nothing written, if the files differ
    in queries or their order.
    """
    from pyserini_repbert.data.runs import ScatteredQueryError, iter_run, write_run
    from pyserini_repbert.ranking import NO_HITS

    class OutOfStep(Exception):
        pass

    n_queries = 0

    def fused() -> Iterator[tuple[str, Ranking]]:
        nonlocal n_queries
        readers = [iter_run(path, options.depth) for path in options.runs]
        for queries in zip_longest(*readers, fillvalue=('', NO_HITS)):
            if len({qid for qid, _ in queries}) > 1:
                raise OutOfStep
            bar.update()
            n_queries += 1
            yield queries[0][0], combine([ranking for _, ranking in queries])

    with progress(None, 'fusion', 'query', options.quiet) as bar:
        try:
            write_run(options.output, fused(), options.output_format, options.tag)
        except (OutOfStep, ScatteredQueryError):
            return None
    return n_queries


def _in_memory(options: argparse.Namespace, combine: Combine) -> int:
    from pyserini_repbert.data.runs import read_run, write_run
    from pyserini_repbert.fusion.methods import fuse_by

    with progress(len(options.runs) + 2, 'fusion', 'step', options.quiet) as bar:
        runs: list[Run] = []
        for path in options.runs:
            runs.append(read_run(path, options.depth))
            bar.update()
        fused = fuse_by(combine, runs)
        bar.update()
        write_run(options.output, fused, options.output_format, options.tag)
        if options.provenance:
            from pyserini_repbert.fusion.origins import write_provenance

            write_provenance(options.provenance, options.runs, runs, fused)
        bar.update()
    return len(fused)


def _parser() -> argparse.ArgumentParser:
    made = parser(
        'fusion',
        'Fuse run files (TREC or MS MARCO format, plain or .gz) query by query. With the word tune in '
        'front, find out how on judged topics (it has its own --help).',
    )
    made.add_argument('--runs', nargs='+', required=True, metavar='RUN', help='run files; the first one leads')
    made.add_argument(
        '--method',
        '--fusion',
        default='interleave',
        choices=['interleave', 'rrf', 'interpolation'],
        help='interleave: alternate, keep the highest positions; rrf: reciprocal rank fusion; interpolation: of scores',
    )
    add_formula_arguments(made)
    made.add_argument('--hits', type=zero_or_more, default=1000, help='hits to keep for each query, 0 for all')
    made.add_argument('--output', required=True, help='run file to write; a name that ends in .gz is compressed')
    add_run_form(made)
    made.add_argument(
        '--provenance', metavar='FILE', help="also write each hit's rank in each run, as FILE.tsv or FILE.jsonl"
    )
    return made
