"""The command `evaluate epic-values`: the distribution of values in an EPIC index (EPIC Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.commands.command import parser
from pyserini_repbert.commands.output_files import add_value_files, parsed


def main(arguments: Sequence[str]) -> None:
    """Count the values; print a table, write CSV and a plot on request."""
    made = parser('evaluate epic-values', "How often each value occurs in an EPIC index's vectors (EPIC Figure 2).")
    made.add_argument('--index', required=True, help='an EPIC index; one with --prune 0 has all values')
    add_value_files(made)
    options = parsed(made, arguments)
    from pyserini_repbert.evaluate.plots import plot_bars
    from pyserini_repbert.evaluate.studies.epic import value_counts
    from pyserini_repbert.evaluate.tables import markdown, write_csv
    from pyserini_repbert.index.epic import EpicBundle

    index = EpicBundle(options.index)
    found = value_counts(index)
    rows = [[f'{end:.1f}', f'{count:,}', f'{count / found.total:.4%}'] for end, count in found.counts.items()]
    print(markdown(['values up to', 'count', 'share'], rows))
    print(f'\n{found.share_up_to(0.1):.1%} of {found.total:,} values are 0.1 or below', end='')
    print(f', among them {found.pruned:,} that the index does not keep.' if found.pruned else '.')
    if options.csv:
        write_csv(options.csv, ['up_to', 'count'], [(f'{end:.1f}', count) for end, count in found.counts.items()])
    if options.plot:
        bars = {f'{end:.1f}': float(count) for end, count in found.counts.items()}
        title = f'{len(index):,} passages' + (f', {index.settings.prune} terms each' if index.settings.prune else '')
        plot_bars(options.plot, {title: bars}, 'value, rounded up', 'frequency')
