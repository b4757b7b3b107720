"""Plots as PNG, PDF or SVG files, drawn by matplotlib, which is an extra of the package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pyserini_repbert.errors import InputError, needs
from pyserini_repbert.files import StrPath, atomic_file

if TYPE_CHECKING:
    from pyserini_repbert.evaluate.calibration import ReliabilityBin

_Content = TypeVar('_Content')


class NamedPoint(NamedTuple):
    """A point whose name is drawn beside it."""

    name: str
    x: float
    y: float


def plot_lines(
    path: StrPath, panels: Mapping[str, Mapping[str, Mapping[int, float]]], x_label: str
) -> None:
    """A panel for each label of a y axis: name of a line -> x -> y.

    The point with the greatest y of a line is named.

    The x axis is logarithmic, and still has 0, at its left end.
    """

    def draw(axis: Any, label: str, series: Mapping[str, Mapping[int, float]]) -> None:
        ticks: set[int] = set()
        for name, points in series.items():
            ticks.update(points)
            (line,) = axis.plot(
                list(points), list(points.values()), marker='o', markersize=4, label=name
            )
            if points:
                best = max(points, key=lambda x: points[x])
                point = NamedPoint(f'{best}: {points[best]:.3f}', best, points[best])
                _write_name(axis, point, line.get_color())
        axis.set_xscale('symlog', linthresh=1)
        axis.set_xticks(sorted(ticks), [str(tick) for tick in sorted(ticks)])
        axis.minorticks_off()
        axis.set(xlabel=x_label, ylabel=label)
        axis.grid(alpha=0.3)
        axis.legend()

    _draw(path, panels, draw)


def plot_points(
    path: StrPath,
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    fronts: Mapping[str, Sequence[NamedPoint]],
    x_label: str,
) -> None:
    """Points whose x axis is logarithmic, and their Pareto fronts, whose points are named.

    Parameters
    ----------
    path : the file to write
    panels : label of a y axis -> name of a series -> its (x, y)
    fronts : label of a y axis -> the points of its front, drawn as a line
    x_label : what x is
    """

    def draw(axis: Any, label: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> None:
        xs = [point.x for point in fronts[label]]
        ys = [point.y for point in fronts[label]]
        axis.step(xs, ys, where='post', color='0.6', linewidth=1)
        axis.scatter(xs, ys, s=90, facecolors='none', edgecolors='0.3', label='Pareto front')
        for name, points in series.items():
            axis.scatter([x for x, _ in points], [y for _, y in points], s=16, label=name)
        for point in fronts[label]:
            _write_name(axis, point, '0.25', align='right')
        # Room for the names.
        axis.margins(x=0.12, y=0.12)
        axis.set(xscale='log', xlabel=x_label, ylabel=label)
        axis.grid(alpha=0.3)
        # In the corner where a front is not.
        axis.legend(fontsize='small', loc='lower right')

    _draw(path, panels, draw)


def plot_matrices(path: StrPath, matrices: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """A heat map, with the values in its cells, for each title: row -> column -> value."""

    def draw(axis: Any, title: str, rows: Mapping[str, Mapping[str, float]]) -> None:
        values = [list(row.values()) for row in rows.values()]
        axis.imshow(values, cmap='viridis')
        middle = (min(map(min, values)) + max(map(max, values))) / 2
        for y, row in enumerate(values):
            for x, value in enumerate(row):
                colour = 'white' if value < middle else 'black'
                axis.text(x, y, f'{value:.3f}', ha='center', va='center', color=colour)
        names = [f'+{column}' for column in next(iter(rows.values()))]
        axis.set_xticks(range(len(names)), names, rotation=30, ha='right')
        axis.set_yticks(range(len(rows)), list(rows))
        axis.set_title(title)

    _draw(path, matrices, draw)


def plot_calibration(
    path: StrPath, diagrams: Mapping[str, Sequence[ReliabilityBin]], risks: Sequence[float]
) -> None:
    """Reliability diagrams in one panel, and risk against coverage beside it.

    Parameters
    ----------
    path : the file to write
    diagrams : the bins of each kind of probability, by its name
    risks : of `risk_by_coverage`
    """
    figure = new_figure(11, 4.5)
    diagram, risk = figure.subplots(1, 2)
    diagram.plot([0, 1], [0, 1], color='0.6', linewidth=1, label='perfect')
    for name, bins in diagrams.items():
        predicted = [group.predicted for group in bins]
        diagram.plot(predicted, [group.observed for group in bins], marker='o', label=name)
    diagram.set(xlabel='predicted', ylabel='observed', title='reliability')
    coverage = [(number + 1) / len(risks) for number in range(len(risks))]
    risk.step(coverage, list(risks), where='post')
    risk.set(
        xlabel='share of questions answered', ylabel='share of them without a relevant document'
    )
    risk.set(ylim=(0, 1), title='risk against coverage')
    for axis in (diagram, risk):
        axis.grid(alpha=0.3)
    diagram.legend()
    save_figure(path, figure)


def _write_name(axis: Any, point: NamedPoint, color: Any, align: str = 'center') -> None:
    axis.annotate(
        point.name,
        (point.x, point.y),
        xytext=(0, 7),
        textcoords='offset points',
        ha=align,
        fontsize=6.5,
        color=color,
    )


def _draw(
    path: StrPath, panels: Mapping[str, _Content], draw: Callable[[Any, str, _Content], None]
) -> None:
    """Save a figure of panels side by side, each drawn from its label and content."""
    figure = new_figure(5.5 * len(panels), 4.5)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (label, content) in zip(axes, panels.items(), strict=True):
        draw(axis, label, content)
    save_figure(path, figure)


# What of a file's metadata is left out.
_LEFT_OUT = {'png': 'Software', 'pdf': 'CreationDate', 'svg': 'Date'}


def figure_format(path: StrPath) -> str:
    """'png', 'pdf' or 'svg', by a file's extension; 'png' where it has none.

    Raises InputError for others.
    """
    suffix = Path(path).suffix.lower().removeprefix('.') or 'png'
    if suffix not in _LEFT_OUT:
        raise InputError(
            f"figure {path}: '.{suffix}' is not a format that is drawn here, expected .png, .pdf "
            f'or .svg'
        )
    return suffix


def require_matplotlib(purpose: str = 'a plot') -> None:
    """Raises MissingDependencyError, before any work is done, where matplotlib is not installed."""
    with needs('matplotlib', purpose, 'plots'):
        import matplotlib  # noqa: F401


def new_figure(width: float, height: float) -> Any:
    """An empty figure of a size in inches, which needs no display."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout='constrained')
    FigureCanvasAgg(figure)
    return figure


def save_figure(path: StrPath, figure: Any) -> None:
    """Write a file in the format of its name, atomically; the same figure gives the same bytes."""
    from matplotlib import rc_context

    drawn = figure_format(path)
    with rc_context({'svg.hashsalt': 'pyserini_repbert'}), atomic_file(path, 'wb') as stream:
        figure.savefig(stream, format=drawn, dpi=120, metadata={_LEFT_OUT[drawn]: None})
