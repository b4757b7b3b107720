"""The flags of `evaluate` that say which runs are compared, and how."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyserini_repbert.commands.command import Parser, refuse, whole_number, zero_or_more
from pyserini_repbert.evaluate.comparisons import (
    ComparisonSettings,
    RunPair,
    all_pairs,
    pairs_with,
)
from pyserini_repbert.evaluate.significance import SAMPLES, SignificanceTest

# The flags that choose the comparisons.
_COMPARING = ('compare', 'baselines', 'compare_all')


def add_comparison_flags(flags: Parser) -> None:
    """Add the flags that choose pairs of runs, and the test."""
    chosen = flags.add_mutually_exclusive_group()
    chosen.add_argument(
        '--compare',
        action='store_true',
        help='compare the other runs with the first; several p-values are corrected (Holm)',
    )
    chosen.add_argument(
        '--baselines', nargs='+', metavar='NAME', help='compare the runs with each of these runs'
    )
    chosen.add_argument('--compare-all', action='store_true', help='compare all pairs of runs')
    add = flags.add_argument
    add(
        '--test',
        choices=[*SignificanceTest],
        help="with a comparison: the paired t-test, or Fisher's randomisation test; default: t",
    )
    add(
        '--confidence',
        type=float,
        metavar='SHARE',
        help='add the bootstrap interval of each difference, such as 0.95; --html has it by '
        'default',
    )
    add(
        '--samples',
        type=whole_number,
        help=f'samples of the randomisation test and the bootstrap; default: {SAMPLES}',
    )
    add('--seed', type=zero_or_more, help='seed of the samples; default: 0')


def add_latex_flags(flags: Parser, baseline: str) -> None:
    """Add --latex, and the test of the differences that it marks.

    Parameters
    ----------
    flags : of an analysis
    baseline : what values are compared with
    """
    flags.add_argument(
        '--latex',
        action='store_true',
        help=f'print LaTeX tables instead; marks say what differs significantly from {baseline}',
    )
    flags.add_argument(
        '--test',
        default=SignificanceTest.T,
        choices=[*SignificanceTest],
        help="with --latex: the paired t-test, or Fisher's randomisation test",
    )


def check_comparison_flags(options: argparse.Namespace) -> None:
    """Raise InputError for comparisons of fewer than two runs, and for flags of no comparison."""
    is_compared = compares(options)
    refuse(
        is_compared and len(options.runs) < 2,
        '--compare, --baselines and --compare-all take two runs or more: --compare takes the '
        'baseline first',
    )
    refuse(
        options.plot and not is_compared,
        '--plot draws differences of topics: say which with --compare or --baselines',
    )
    refuse(
        options.plot and options.compare_all,
        '--plot draws differences from one baseline: give --compare or --baselines',
    )
    refuse(
        options.html and (options.baselines or options.compare_all),
        '--html compares with the first run: name the baseline first, and give --compare',
    )
    _check_samples(options, is_compared or bool(options.html))


def _check_samples(options: argparse.Namespace, is_compared: bool) -> None:
    """Raise InputError for flags of a comparison that is not made, or takes no samples."""
    for flag in ('test', 'confidence', 'samples', 'seed'):
        refuse(
            getattr(options, flag) is not None and not is_compared,
            f'--{flag} goes with --compare, --baselines, --compare-all or --html: none was given',
        )
    is_randomized = options.test == SignificanceTest.RANDOMIZATION
    is_sampled = is_randomized or options.confidence is not None or options.html
    for flag in ('samples', 'seed'):
        refuse(
            getattr(options, flag) is not None and not is_sampled,
            f'--{flag} goes with --test randomization, --confidence or --html: none was given',
        )
    refuse(
        options.confidence is not None and not 0 < options.confidence < 1,
        f'--confidence {options.confidence}: expected a share between 0 and 1, such as 0.95',
    )


def compares(options: argparse.Namespace) -> bool:
    """Whether runs are compared in the tables."""
    return any(getattr(options, name) for name in _COMPARING)


def pairs_of(options: argparse.Namespace, names: Sequence[str]) -> list[RunPair]:
    """The runs that are compared; none if no flag says so.

    Raises InputError for a baseline that is not a run.
    """
    if options.compare_all:
        return all_pairs(names)
    if options.baselines:
        return pairs_with(list(dict.fromkeys(options.baselines)), names)
    return pairs_with(names[:1], names) if options.compare else []


def settings_of(options: argparse.Namespace) -> ComparisonSettings:
    """How runs are compared."""
    return ComparisonSettings(
        test=SignificanceTest(options.test or SignificanceTest.T),
        confidence=options.confidence,
        samples=options.samples or SAMPLES,
        seed=options.seed or 0,
    )
