"""What `evaluate` prints of measured and compared runs: tables, JSON and values of topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from pyserini_repbert.commands.command import count_text
from pyserini_repbert.commands.console import json_text
from pyserini_repbert.evaluate.comparisons import ComparisonSettings, RunComparison
from pyserini_repbert.evaluate.measures import Evaluation
from pyserini_repbert.evaluate.significance import SignificanceTest
from pyserini_repbert.evaluate.tables import markdown


def write_per_query(stream: IO[str], evaluations: Mapping[str, Evaluation]) -> None:
    """Write the value of each topic, separated by tabs."""
    stream.write('run\tqid\tmeasure\tvalue\n')
    for name, evaluation in evaluations.items():
        for measure, values in evaluation.values.items():
            for qid, value in values.items():
                stream.write(f'{name}\t{qid}\t{measure}\t{value:.6f}\n')


def print_json(
    evaluations: Mapping[str, Evaluation],
    comparisons: Sequence[RunComparison],
    paths: Mapping[str, str],
) -> None:
    """Print measures and comparisons as JSON; `paths` are the files of the runs."""
    runs = [
        {
            'run': name,
            'path': paths[name],
            'topics_without_hits': len(evaluation.without_hits),
            'measures': evaluation.means,
        }
        for name, evaluation in evaluations.items()
    ]
    first = next(iter(evaluations.values()))
    results: dict[str, Any] = {'judged_topics': first.n_topics, 'runs': runs}
    if comparisons:
        results['baseline'] = comparisons[0].baseline
        results['comparisons'] = [_comparison_values(one) for one in comparisons]
    print(json_text(results, indent=2))


def _comparison_values(one: RunComparison) -> dict[str, Any]:
    """A comparison, as JSON has it."""
    values = {'run': one.run, 'against': one.baseline, **one.comparison._asdict()}
    if one.p_holm is not None:
        values['p_holm'] = one.p_holm
    if one.interval is not None:
        values['interval'] = list(one.interval)
    return values


def print_tables(
    evaluations: Mapping[str, Evaluation],
    comparisons: Sequence[RunComparison],
    settings: ComparisonSettings,
) -> None:
    """Print the means of each run, and a table of comparisons for each baseline."""
    rows = []
    notes = []
    for name, evaluation in evaluations.items():
        rows.append([name, *(f'{value:.4f}' for value in evaluation.means.values())])
        if evaluation.without_hits:
            n_without = len(evaluation.without_hits)
            notes.append(f'{name} has no hits for {n_without} of them, counted as 0.')
    first = next(iter(evaluations.values()))
    print(markdown(['run', *first.means], rows))
    print(f'\nOver {count_text(first.n_topics, "judged topic")}.', *notes)
    for baseline in dict.fromkeys(one.baseline for one in comparisons):
        compared = [
            _comparison_row(one, settings) for one in comparisons if one.baseline == baseline
        ]
        print(f'\nAgainst {baseline} ({settings}):\n')
        print(markdown(list(compared[0]), [list(row.values()) for row in compared]))


def _comparison_row(one: RunComparison, settings: ComparisonSettings) -> dict[str, str]:
    """The cells of a comparison, by their headers."""
    comparison = one.comparison
    row = {
        'run': one.run,
        'measure': comparison.measure,
        'difference': f'{comparison.difference:+.4f}',
    }
    if one.interval is not None and settings.confidence is not None:
        header = f'{100 * settings.confidence:g}% interval'
        row[header] = f'{one.interval.low:+.4f} to {one.interval.high:+.4f}'
    if settings.test is SignificanceTest.T:
        row['t'] = f'{comparison.t:.3f}'
    row['p'] = f'{comparison.p:.4g}'
    if one.p_holm is not None:
        row['p (Holm)'] = f'{one.p_holm:.4g}'
    row |= {
        'better': str(comparison.wins),
        'equal': str(comparison.ties),
        'worse': str(comparison.losses),
    }
    return row
