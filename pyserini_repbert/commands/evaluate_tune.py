"""`evaluate tune`: the settings of a Lucene search, chosen on a grid."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.commands.command import parser, positive_int, progress, refuse
from pyserini_repbert.commands.flags import OutputFile, add_flags, parse_flags, record_output
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.tables import markdown

if TYPE_CHECKING:
    from pyserini_repbert.evaluate.studies.tuning import TunedFold


def _make_parser() -> argparse.ArgumentParser:
    flags = parser(
        'evaluate tune',
        'Search Lucene indexes with every setting of a grid, and choose one by a measure: for '
        'each fold by the topics of the others, or by the test topics themselves.',
    )
    add = flags.add_argument
    add(
        '--technique',
        choices=('bm25', 'ql', 'bm25+rm3', 'sdm'),
        default='bm25',
        help='what is searched with',
    )
    add('--index', nargs='+', required=True, help='a Lucene index, or one for each --topics')
    add('--topics', nargs='+', required=True, help='topics of each index')
    add_flags(flags, 'qrels')
    add_flags(flags, 'measure', default='nDCG@10')
    add(
        '--grid',
        nargs='+',
        default=[],
        metavar='AXIS',
        help='k1=0.1:4:0.1 or b=0.4,0.75; replaces an axis of the technique, or adds one',
    )
    how = flags.add_mutually_exclusive_group(required=True)
    how.add_argument(
        '--folds',
        nargs='+',
        metavar='FILE',
        help='as for split-folds: the setting of each fold is chosen on the others',
    )
    how.add_argument(
        '--on-test',
        action='store_true',
        help='choose on the topics that are scored, to see the most that a technique can reach',
    )
    add('--hits', type=positive_int, default=1000, help='hits of each topic')
    add('--output', type=OutputFile, metavar='RUN', help='write the run of the chosen settings')
    add_flags(flags, 'overwrite')
    return flags


def tune(arguments: Sequence[str]) -> None:
    """Print the chosen settings with their measures, and write their run."""
    options = parse_flags(_make_parser(), arguments)
    refuse(
        len(options.index) not in (1, len(options.topics)),
        f'{len(options.index)} indexes and {len(options.topics)} topics files were given: give '
        'one index, or one for each',
    )
    from pyserini_repbert.data.runs import write_run
    from pyserini_repbert.evaluate.measures import parse_measures
    from pyserini_repbert.evaluate.studies import tuning
    from pyserini_repbert.names.topics import load_qrels, load_topics

    (measure,) = parse_measures([options.measure])
    settings = tuning.make_settings(options.technique, options.grid)
    indexes = options.index * (len(options.topics) // len(options.index))
    parts = []
    qids = []
    for index, spec in zip(indexes, options.topics, strict=True):
        topics = load_topics(spec)
        parts.append(tuning.TunedTopics(index, topics))
        qids += [topic.qid for topic in topics]
    judged = load_qrels(options.qrels)
    qrels = {qid: judged[qid] for qid in qids if qid in judged}
    if not qrels:
        raise InputError(f'none of the topics is judged in {options.qrels}: check both')
    folds = _judged_folds(options.folds, qids, list(qrels)) if options.folds else []
    with progress(len(settings), options.technique, 'settings', options.quiet) as bar:
        values = tuning.measure_settings(
            parts, settings, qrels, measure, hits=options.hits, on_progress=bar.update
        )
    if options.on_test:
        setting = tuning.best_setting(values, list(qrels))
        mean = sum(values[setting].values()) / len(qrels)
        print(
            f'{setting}: {measure.name} {mean:.4f} over {len(qrels)} topics, the best of '
            f'{len(settings)} settings on these topics themselves'
        )
        search = partial(tuning.search_all, parts, setting, options.hits)
    else:
        chosen = tuning.choose_held_out(values, folds)
        _print_folds(chosen, measure.name, len(settings))
        search = partial(tuning.held_out_run, parts, chosen, options.hits)
    if options.output:
        write_run(Path(options.output), search())
        record_output(options, options.output, ('index', 'topics', 'qrels', 'folds'))


def _judged_folds(
    paths: Sequence[str], qids: Sequence[str], judged: Sequence[str]
) -> list[list[str]]:
    """The judged topics of each fold, which cover the topics."""
    from pyserini_repbert.evaluate.folds import check_cover, read_folds

    folds = read_folds(paths)
    check_cover(folds, qids)
    known = set(judged)
    of_folds = []
    for number, fold in enumerate(folds, 1):
        of_folds.append([qid for qid in fold if qid in known])
        if not of_folds[-1]:
            raise InputError(f'no topic of fold {number} is judged')
    return of_folds


def _print_folds(chosen: Sequence[TunedFold], measure: str, n_settings: int) -> None:
    rows = []
    n_topics = 0
    total = 0.0
    for number, fold in enumerate(chosen, 1):
        values = [f'{fold.chosen:.4f}', f'{fold.held_out:.4f}', str(len(fold.topics))]
        rows.append([str(number), str(fold.setting), *values])
        n_topics += len(fold.topics)
        total += fold.held_out * len(fold.topics)
    print(markdown(['fold', 'chosen on the others', 'there', 'held out', 'topics'], rows))
    print(
        f'\nHeld out, {measure} {total / n_topics:.4f} over {n_topics} topics; '
        f'{n_settings} settings.'
    )
