"""Tables of measures for papers."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from pyserini_repbert.evaluate.measures import Evaluation

_SPECIAL = re.compile(r'[&%$#_{}~^\\]')
_COMMANDS = {'~': r'\textasciitilde{}', '^': r'\textasciicircum{}', '\\': r'\textbackslash{}'}


def latex_table(
    evaluations: Mapping[str, Evaluation], significant: Collection[tuple[str, str]] = ()
) -> str:
    """A LaTeX table of runs by measures, for the package booktabs.

    The best value of a measure is bold.

    Parameters
    ----------
    evaluations : by the names of runs
    significant : names of a run and a measure, whose value gets a dagger
    """
    measures = list(next(iter(evaluations.values())).means)
    lines = [
        rf'\begin{{tabular}}{{l{"r" * len(measures)}}}',
        r'\toprule',
        _row(['run', *map(_escaped, measures)]),
        r'\midrule',
    ]
    for name, evaluation in evaluations.items():
        cells = [_escaped(name)]
        for measure in measures:
            best = max(other.means[measure] for other in evaluations.values())
            value = f'{evaluation.means[measure]:.4f}'
            if evaluation.means[measure] == best:
                value = rf'\textbf{{{value}}}'
            if (name, measure) in significant:
                value += r'$^\dagger$'
            cells.append(value)
        lines.append(_row(cells))
    return '\n'.join([*lines, r'\bottomrule', r'\end{tabular}'])


def _row(cells: list[str]) -> str:
    return ' & '.join(cells) + r' \\'


def _escaped(text: str) -> str:
    """A text whose special characters LaTeX prints."""
    return _SPECIAL.sub(lambda match: _COMMANDS.get(match[0], f'\\{match[0]}'), text)
