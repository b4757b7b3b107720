"""LaTeX tables for papers, of the packages booktabs and amssymb."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyserini_repbert.evaluate.comparisons import ComparisonSettings, RunComparison
from pyserini_repbert.evaluate.marks import Mark, RunMarks
from pyserini_repbert.evaluate.measures import Evaluation
from pyserini_repbert.evaluate.significance import LEVEL

_PACKAGES = r'% \usepackage{booktabs,amssymb}'
_BETTER = r'\blacktriangle'
_WORSE = r'\blacktriangledown'
_SYMBOLS = {
    Mark.NONE: '',
    Mark.BETTER: f'$^{{{_BETTER}}}$',
    Mark.WORSE: f'$^{{{_WORSE}}}$',
}
_SPECIAL = re.compile(r'[&%$#_{}~^\\]')
_COMMANDS = {'~': r'\textasciitilde{}', '^': r'\textasciicircum{}', '\\': r'\textbackslash{}'}


@dataclass(frozen=True)
class Cell:
    """A value of a table.

    Attributes
    ----------
    text : as read, not yet LaTeX
    is_best : whether it is bold
    mark : LaTeX that follows the value
    """

    text: str
    is_best: bool = False
    mark: str = ''

    def __str__(self) -> str:
        text = escaped(self.text)
        if self.is_best:
            text = rf'\textbf{{{text}}}'
        return text + self.mark


def latex_table(
    evaluations: Mapping[str, Evaluation],
    comparisons: Sequence[RunComparison] = (),
    settings: ComparisonSettings | None = None,
) -> str:
    """A LaTeX table of runs by measures. The caption says what is bold, marked and tested.

    Against one baseline, significantly better values have a triangle, worse ones a triangle that
    points down. Against several, brackets have the letters of the baselines than which a value is
    better, as in Table 1 of CEDR; a baseline that is worse than a run is named there, too.

    Parameters
    ----------
    evaluations : by the names of runs
    comparisons : of `compare_pairs`; none if no difference is tested
    settings : of the comparisons
    """
    marks = RunMarks(comparisons)
    first = next(iter(evaluations.values()))
    measures = list(first.means)
    best = best_means(evaluations.values())
    rows = []
    for name, evaluation in evaluations.items():
        letter = marks.letters.get(name)
        row = [Cell(f'{name} [{letter}]' if letter else name)]
        for measure in measures:
            value = evaluation.means[measure]
            mark = _run_mark(marks, name, measure)
            row.append(Cell(f'{value:.4f}', value == best[measure], mark))
        rows.append(row)
    caption = [
        f'Over {first.n_topics} judged topics; the best value of a measure is bold.',
        _tests_sentence(comparisons, marks, settings or ComparisonSettings()),
    ]
    return table(['run', *measures], rows, ' '.join(caption))


def table(header: Sequence[str], rows: Iterable[Sequence[Cell]], caption: str) -> str:
    """A LaTeX table; the first column is aligned to the left, the others to the right.

    Parameters
    ----------
    header : texts, not yet LaTeX
    rows : the cells below it
    caption : LaTeX
    """
    lines = [
        _PACKAGES,
        r'\begin{table}',
        r'\centering',
        rf'\caption{{{caption}}}',
        rf'\begin{{tabular}}{{l{"r" * (len(header) - 1)}}}',
        r'\toprule',
        _row(map(escaped, header)),
        r'\midrule',
        *(_row(map(str, row)) for row in rows),
        r'\bottomrule',
        r'\end{tabular}',
        r'\end{table}',
    ]
    return '\n'.join(lines)


def triangle(mark: Mark) -> str:
    """The LaTeX of a mark against one baseline."""
    return _SYMBOLS[mark]


def triangles_sentence(baseline: str, n_comparisons: int, settings: ComparisonSettings) -> str:
    """The sentence of a caption that says what triangles mean.

    Parameters
    ----------
    baseline : what values are compared with, as LaTeX
    n_comparisons : how many are made
    settings : how
    """
    return (
        f'${_BETTER}$ and ${_WORSE}$: significantly better and worse than {baseline} '
        f'({_test_words(n_comparisons, settings)}).'
    )


def best_means(evaluations: Iterable[Evaluation]) -> dict[str, float]:
    """The greatest mean of each measure."""
    best: dict[str, float] = {}
    for evaluation in evaluations:
        for measure, value in evaluation.means.items():
            best[measure] = max(value, best.get(measure, value))
    return best


def escaped(text: str) -> str:
    """Text with its special characters escaped for LaTeX."""
    return _SPECIAL.sub(lambda match: _COMMANDS.get(match[0], f'\\{match[0]}'), text)


def _row(cells: Iterable[str]) -> str:
    return ' & '.join(cells) + r' \\'


def _run_mark(marks: RunMarks, name: str, measure: str) -> str:
    """The mark after a run's value."""
    better = marks.better.get((name, measure), [])
    worse = marks.worse.get((name, measure), [])
    if not marks.letters:
        if better:
            return triangle(Mark.BETTER)
        return triangle(Mark.WORSE if worse else Mark.NONE)
    mark = ''
    if better:
        mark += rf'\,{{\scriptsize[{_letters_text(better, marks)}]}}'
    if worse:
        mark += rf'\,{{\scriptsize${_WORSE}$[{_letters_text(worse, marks)}]}}'
    return mark


def _letters_text(names: Iterable[str], marks: RunMarks) -> str:
    chosen = set(names)
    return ''.join(letter for name, letter in marks.letters.items() if name in chosen)


def _tests_sentence(
    comparisons: Sequence[RunComparison], marks: RunMarks, settings: ComparisonSettings
) -> str:
    """What a caption says of the tests."""
    if not comparisons:
        return 'No difference was tested.'
    if not marks.letters:
        baseline = rf'\emph{{{escaped(comparisons[0].baseline)}}}'
        return triangles_sentence(baseline, len(comparisons), settings)
    sentence = 'Brackets: significantly better than the runs of these letters'
    if any(marks.worse.values()):
        sentence += rf'; after ${_WORSE}$: significantly worse'
    return f'{sentence} ({_test_words(len(comparisons), settings)}).'


def _test_words(n_comparisons: int, settings: ComparisonSettings) -> str:
    level = f'{LEVEL:g}'.lstrip('0')
    words = f'{settings}, $p < {level}$'
    if n_comparisons < 2:
        return words
    return f"{words}, Holm's correction for {n_comparisons} comparisons"
