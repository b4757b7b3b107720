"""Plots of measures as PNG, PDF or SVG files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyserini_repbert.figures import new_figure, save_figure
from pyserini_repbert.files import StrPath

Series = Mapping[str, Mapping[int, float]]


def plot_lines(path: StrPath, panels: Mapping[str, Series], x_label: str) -> None:
    """A panel of lines for each label of a y axis; the point with the greatest y of each line is named by its x and y.

    The x axis is logarithmic, and still has 0, at its left end.

    Parameters
    ----------
    panels : label of the y axis -> name of a line -> x -> y
    """
    figure, axes = _figure(len(panels))
    for axis, (label, series) in zip(axes, panels.items(), strict=True):
        for name, points in series.items():
            (line,) = axis.plot(list(points), list(points.values()), marker='o', markersize=4, label=name)
            if points:
                best = max(points, key=lambda x: points[x])
                _name(axis, f'{best}: {points[best]:.3f}', best, points[best], line.get_color())
        axis.set_xscale('symlog', linthresh=1)
        ticks = sorted({x for points in series.values() for x in points})
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.minorticks_off()
        _label(axis, x_label, label)
        axis.legend()
    save_figure(path, figure)


def plot_points(
    path: StrPath,
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    fronts: Mapping[str, Sequence[tuple[str, float, float]]],
    x_label: str,
) -> None:
    """A panel of points for each label of a y axis, with a logarithmic x axis.

    Parameters
    ----------
    panels : label of the y axis -> name of a series -> its (x, y)
    fronts : label of the y axis -> (name, x, y) of the Pareto front, drawn as a line whose points are named
    """
    figure, axes = _figure(len(panels))
    for axis, (label, series) in zip(axes, panels.items(), strict=True):
        front = fronts[label]
        xs, ys = [x for _, x, _ in front], [y for _, _, y in front]
        axis.step(xs, ys, where='post', color='0.6', linewidth=1)
        axis.scatter(xs, ys, s=90, facecolors='none', edgecolors='0.3', label='Pareto front')
        for name, points in series.items():
            axis.scatter([x for x, _ in points], [y for _, y in points], s=16, label=name)
        for name, x, y in front:
            _name(axis, name, x, y, '0.25', align='right')
        axis.margins(x=0.12, y=0.12)  # room for the names
        axis.set_xscale('log')
        _label(axis, x_label, label)
        axis.legend(fontsize='small', loc='lower right')  # where a front is not
    save_figure(path, figure)


def plot_matrices(path: StrPath, matrices: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """A heat map, with the values in its cells, for each title.

    Parameters
    ----------
    matrices : title -> row -> column -> value
    """
    figure, axes = _figure(len(matrices))
    for axis, (title, rows) in zip(axes, matrices.items(), strict=True):
        values = [list(row.values()) for row in rows.values()]
        axis.imshow(values, cmap='viridis')
        lowest, highest = min(map(min, values)), max(map(max, values))
        for y, row in enumerate(values):
            for x, value in enumerate(row):
                dark = value < (lowest + highest) / 2
                axis.text(x, y, f'{value:.3f}', ha='center', va='center', color='white' if dark else 'black')
        columns = next(iter(rows.values()))
        axis.set_xticks(range(len(columns)), [f'+{column}' for column in columns], rotation=30, ha='right')
        axis.set_yticks(range(len(rows)), list(rows))
        axis.set_title(title)
    save_figure(path, figure)


def plot_bars(path: StrPath, bars: Mapping[str, Mapping[str, float]], x_label: str, y_label: str) -> None:
    """A panel of bars for each title, with a logarithmic y axis.

    Parameters
    ----------
    bars : title -> label of a bar -> height
    """
    figure, axes = _figure(len(bars))
    for axis, (title, heights) in zip(axes, bars.items(), strict=True):
        axis.bar(list(heights), list(heights.values()))
        axis.set_yscale('log')
        axis.set_xticks(range(len(heights)), list(heights), rotation=90, fontsize=7)
        axis.set(xlabel=x_label, ylabel=y_label, title=title)
    save_figure(path, figure)


def _label(axis: Any, x_label: str, y_label: str) -> None:
    axis.set(xlabel=x_label, ylabel=y_label)
    axis.grid(alpha=0.3)


def _name(axis: Any, text: str, x: float, y: float, color: Any, align: str = 'center') -> None:
    offset = {'xytext': (0, 7), 'textcoords': 'offset points', 'ha': align}
    axis.annotate(text, (x, y), fontsize=6.5, color=color, **offset)


def _figure(n_panels: int) -> tuple[Any, Sequence[Any]]:
    figure = new_figure(5.5 * n_panels, 4.5)
    return figure, figure.subplots(1, n_panels, squeeze=False)[0]
