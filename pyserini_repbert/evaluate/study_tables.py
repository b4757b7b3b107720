"""The tables of analyses in LaTeX, with marks of significant differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyserini_repbert.evaluate.comparisons import ComparisonSettings
from pyserini_repbert.evaluate.latex import (
    Cell,
    best_means,
    escaped,
    table,
    triangle,
    triangles_sentence,
)
from pyserini_repbert.evaluate.marks import ComparedCell, Mark, mark_cells
from pyserini_repbert.evaluate.measures import Evaluation
from pyserini_repbert.evaluate.tables import percent

if TYPE_CHECKING:
    from pyserini_repbert.evaluate.studies.epic import PruningResult
    from pyserini_repbert.evaluate.studies.tradeoff import Point

_Marks = Mapping[tuple[tuple[str, str], str], Mark]


def fusion_tables(
    evaluations: Mapping[str, Mapping[str, Evaluation]], settings: ComparisonSettings, how: str
) -> Iterator[str]:
    """A table for each measure: every ordered pair of runs, compared with the row's single run.

    Parameters
    ----------
    evaluations : of `evaluate_fusions`
    settings : how values are compared
    how : runs are fused
    """
    cells: dict[tuple[str, str], ComparedCell] = {}
    for row, fused in evaluations.items():
        for column, evaluation in fused.items():
            cells[row, column] = ComparedCell(fused[row], evaluation)
    marks = mark_cells(cells, settings)
    names = list(evaluations)
    sentence = triangles_sentence('the run of the row alone', len(marks), settings)
    for measure in _measures(cells.values()):
        rows = []
        for row in names:
            keys = [(row, column) for column in names]
            rows.append([Cell(row), *_changed_cells(cells, marks, keys, measure)])
        caption = (
            f'{escaped(measure)} of runs {escaped(how)}; in brackets the change from the run of '
            f'the row alone; the best of a row is bold. {sentence}'
        )
        yield table([measure, *(f'+{name}' for name in names)], rows, caption)


def depth_tables(
    evaluations: Mapping[str, Mapping[int, Evaluation]], settings: ComparisonSettings
) -> Iterator[str]:
    """A table for each measure: runs at each depth, compared with the first run at this depth.

    A single run is compared with its first depth.

    Parameters
    ----------
    evaluations : run -> depth -> what so many reranked hits give
    settings : how values are compared
    """
    names = list(evaluations)
    depths = list(evaluations[names[0]])
    is_single = len(names) == 1
    cells: dict[tuple[str, str], ComparedCell] = {}
    for name, by_depth in evaluations.items():
        for depth, evaluation in by_depth.items():
            baseline = evaluations[names[0]][depths[0] if is_single else depth]
            cells[name, str(depth)] = ComparedCell(baseline, evaluation)
    marks = mark_cells(cells, settings)
    baseline_words = rf'\emph{{{escaped(names[0])}}} at the same depth'
    if is_single:
        baseline_words = f'at depth {depths[0]}'
    sentence = triangles_sentence(baseline_words, len(marks), settings)
    for measure in _measures(cells.values()):
        if is_single:
            column = _changed_cells(cells, marks, [(names[0], str(n)) for n in depths], measure)
            rows = [[Cell(str(depth)), cell] for depth, cell in zip(depths, column, strict=True)]
        else:
            rows = []
            for depth in depths:
                keys = [(name, str(depth)) for name in names]
                rows.append([Cell(str(depth)), *_changed_cells(cells, marks, keys, measure)])
        caption = (
            f'{escaped(measure)} where so many hits are reranked; in brackets the change; the best '
            f'of a {"column" if is_single else "row"} is bold. {sentence}'
        )
        yield table(['depth', *names], rows, caption)


def pruning_table(results: Sequence[PruningResult], settings: ComparisonSettings) -> str:
    """Sizes, times and measures of settings, compared with the first one (EPIC Table 1)."""
    measures = list(results[0].evaluation.means)
    add_cells = _measure_cells([result.evaluation for result in results], 0, settings)
    rows = []
    for number, result in enumerate(results):
        rows.append(
            [
                Cell(str(result.setting.prune or 'all')),
                Cell(result.setting.weights),
                Cell(f'{result.bytes_per_passage:,.0f}'),
                Cell(f'{result.milliseconds:.2f}'),
                *add_cells(number),
                Cell(f'{result.agreement:.1%}'),
            ]
        )
    sentence = triangles_sentence('the first line', (len(results) - 1) * len(measures), settings)
    caption = (
        f'Candidates reranked by their r largest weights; the last column is the share of the ten '
        f'best hits that the first line has, too; the best value of a measure is bold. '
        f'{sentence}'
    )
    header = ['r', 'weights', 'bytes a passage', 'ms a query', *measures, 'same in top 10']
    return table(header, rows, caption)


def front_table(
    front: Sequence[Point], points: Sequence[Point], settings: ComparisonSettings
) -> str:
    """The settings of a Pareto front, compared with the setting that takes the most inferences.

    Parameters
    ----------
    front : cheapest first
    points : all settings
    settings : how values are compared
    """
    dearest = max(points, key=lambda point: point.inferences)
    shown = [*front]
    if dearest not in shown:
        shown.append(dearest)
    measures = list(dearest.values)
    evaluations = [point.evaluation for point in shown]
    add_cells = _measure_cells(evaluations, shown.index(dearest), settings)
    rows = []
    for number, point in enumerate(shown):
        seconds = '' if point.seconds is None else f'{point.seconds:.3f}'
        rows.append(
            [
                Cell(str(point.setting)),
                Cell(f'{point.inferences:.1f}'),
                Cell(seconds),
                *add_cells(number),
            ]
        )
    sentence = triangles_sentence('the last line', (len(shown) - 1) * len(measures), settings)
    caption = (
        f'The settings that are better in {escaped(measures[0])} than every setting with fewer '
        'inferences, and in the last line the one with the most inferences; the best value of a '
        f'measure is bold. {sentence}'
    )
    return table(['setting', 'inferences', 'seconds', *measures], rows, caption)


def _measure_cells(
    evaluations: Sequence[Evaluation], baseline: int, settings: ComparisonSettings
) -> Callable[[int], list[Cell]]:
    """What gives the cells of the measures of a line; lines are compared with one of them."""
    compared = {
        number: ComparedCell(evaluations[baseline], evaluation)
        for number, evaluation in enumerate(evaluations)
    }
    marks = mark_cells(compared, settings)
    best = best_means(evaluations)

    def cells_of(number: int) -> list[Cell]:
        cells = []
        for measure, value in evaluations[number].means.items():
            mark = triangle(marks.get((number, measure), Mark.NONE))
            cells.append(Cell(f'{value:.4f}', value == best[measure], mark))
        return cells

    return cells_of


def _changed_cells(
    cells: Mapping[tuple[str, str], ComparedCell],
    marks: _Marks,
    keys: Sequence[tuple[str, str]],
    measure: str,
) -> list[Cell]:
    """Cells of a row or a column, each with its change from its baseline; the best is bold."""
    best = max(cells[key].evaluation.means[measure] for key in keys)
    changed = []
    for key in keys:
        cell = cells[key]
        value = cell.evaluation.means[measure]
        text = f'{value:.3f}'
        if cell.evaluation is not cell.baseline:
            text += f' ({percent(value, cell.baseline.means[measure])})'
        mark = triangle(marks.get((key, measure), Mark.NONE))
        changed.append(Cell(text, value == best, mark))
    return changed


def _measures(cells: Iterable[ComparedCell]) -> list[str]:
    return list(next(iter(cells)).evaluation.means)
