"""Plots as PNG, PDF or SVG files, drawn by matplotlib, which is an extra of the package.

They are one column of a paper wide. Lines differ in colour, marker and dashes, so that readers
with colour blindness, and prints in grey, tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pyserini_repbert.errors import InputError, needs
from pyserini_repbert.files import StrPath, atomic_file

if TYPE_CHECKING:
    from pyserini_repbert.evaluate.comparisons import TopicDifferences

_Content = TypeVar('_Content')

# A column of ACM's two-column class acmart, in inches: 241 points.
COLUMN_WIDTH = 3.33
_PANEL_HEIGHT = 2.3
_DIFFERENCES_HEIGHT = 1.4
# Okabe and Ito, Color Universal Design (2008), without the yellow, which white paper hides.
_COLOURS = ('#0072B2', '#D55E00', '#009E73', '#E69F00', '#CC79A7', '#56B4E9', '#000000')
_MARKERS = ('o', 's', '^', 'D', 'v', 'P', 'X')
_DASHES = ('-', '--', '-.', ':', '-', '--', '-.')
# A map of colours whose order is seen by all, and in grey: Nuñez, Anderton and Renslow (2018).
_MAP = 'cividis'
# Of dots an inch: a PNG is one column wide, too.
_PAPER_DPI = 300
_SCREEN_DPI = 120
_PAPER_STYLE: dict[str, Any] = {
    'font.size': 8,
    'axes.titlesize': 8,
    'axes.labelsize': 8,
    'legend.fontsize': 7,
    'xtick.labelsize': 7,
    'ytick.labelsize': 7,
    'lines.linewidth': 1,
    'lines.markersize': 3.5,
}
# Publishers refuse fonts of Type 3, which are the default.
_FONTS = {'pdf.fonttype': 42, 'svg.hashsalt': 'pyserini_repbert'}
_NAME_SIZE = 6


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
            (line,) = axis.plot(list(points), list(points.values()), label=name)
            if points:
                best = max(points, key=lambda x: points[x])
                point = NamedPoint(f'{best}: {points[best]:.3f}', best, points[best])
                _write_name(axis, point, line.get_color())
        axis.set_xscale('symlog', linthresh=1)
        axis.set_xticks(sorted(ticks), [str(tick) for tick in sorted(ticks)])
        axis.minorticks_off()
        # Room for the names.
        axis.margins(x=0.1, y=0.12)
        axis.set(xlabel=x_label, ylabel=label)
        axis.grid(alpha=0.3)
        axis.legend()

    draw_panels(path, panels, draw)


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
        axis.scatter(xs, ys, s=40, facecolors='none', edgecolors='0.3', label='Pareto front')
        for (name, points), marker in zip(series.items(), cycle(_MARKERS), strict=False):
            axis.scatter(
                [x for x, _ in points], [y for _, y in points], s=8, marker=marker, label=name
            )
        for point in fronts[label]:
            _write_name(axis, point, '0.25', align='right')
        # Room for the names.
        axis.margins(x=0.12, y=0.12)
        axis.set(xscale='log', xlabel=x_label, ylabel=label)
        axis.grid(alpha=0.3)
        # In the corner where a front is not.
        axis.legend(loc='lower right')

    draw_panels(path, panels, draw)


def plot_matrices(path: StrPath, matrices: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """A heat map, with the values in its cells, for each title: row -> column -> value."""

    def draw(axis: Any, title: str, rows: Mapping[str, Mapping[str, float]]) -> None:
        values = [list(row.values()) for row in rows.values()]
        axis.imshow(values, cmap=_MAP)
        middle = (min(map(min, values)) + max(map(max, values))) / 2
        for y, row in enumerate(values):
            for x, value in enumerate(row):
                colour = 'white' if value < middle else 'black'
                axis.text(x, y, f'{value:.3f}', ha='center', va='center', color=colour)
        names = [f'+{column}' for column in next(iter(rows.values()))]
        axis.set_xticks(range(len(names)), names, rotation=30, ha='right')
        axis.set_yticks(range(len(rows)), list(rows))
        axis.set_title(title)

    draw_panels(path, matrices, draw)


def plot_differences(path: StrPath, differences: TopicDifferences) -> None:
    """A panel for each pair of runs: a bar for each topic, from the greatest gain to the greatest
    loss.
    """
    panels: dict[str, list[float]] = {}
    for measure, by_baseline in differences.items():
        for baseline, by_run in by_baseline.items():
            for run, values in by_run.items():
                label = f'{measure}: {run} − {baseline}'
                panels[label] = sorted(values.values(), reverse=True)

    def draw(axis: Any, label: str, values: Sequence[float]) -> None:
        colours = [_COLOURS[0] if value > 0 else _COLOURS[1] for value in values]
        axis.bar(range(1, len(values) + 1), values, width=1, color=colours)
        axis.axhline(0, color='0.3', linewidth=0.5)
        axis.set(xlabel='topics', ylabel='difference', title=label)
        axis.grid(axis='y', alpha=0.3)

    draw_panels(path, panels, draw, _DIFFERENCES_HEIGHT)


def _write_name(axis: Any, point: NamedPoint, color: Any, align: str = 'center') -> None:
    axis.annotate(
        point.name,
        (point.x, point.y),
        xytext=(0, 7),
        textcoords='offset points',
        ha=align,
        fontsize=_NAME_SIZE,
        color=color,
    )


def draw_panels(
    path: StrPath,
    panels: Mapping[str, _Content],
    draw: Callable[[Any, str, _Content], None],
    height: float = _PANEL_HEIGHT,
) -> None:
    """Save a figure of panels below each other, each drawn from its label and content.

    Parameters
    ----------
    path : the file to write
    panels : the contents, by their labels
    draw : draws one
    height : of a panel, in inches
    """
    require_matplotlib()
    from cycler import cycler
    from matplotlib import rc_context

    lines = cycler(color=_COLOURS) + cycler(marker=_MARKERS) + cycler(linestyle=_DASHES)
    with rc_context({**_PAPER_STYLE, 'axes.prop_cycle': lines}):
        figure = new_figure(COLUMN_WIDTH, height * len(panels), dpi=_PAPER_DPI)
        axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
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
            f"figure {path}: '.{suffix}' is not a supported format, expected .png, .pdf or .svg"
        )
    return suffix


def require_matplotlib(purpose: str = 'a plot') -> None:
    """Raises MissingDependencyError, before any work is done, where matplotlib is not installed."""
    with needs('matplotlib', purpose, 'plots'):
        import matplotlib  # noqa: F401


def new_figure(width: float, height: float, dpi: int = _SCREEN_DPI) -> Any:
    """An empty figure of a size in inches, which needs no display; `dpi` is of a PNG."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=dpi, layout='constrained')
    FigureCanvasAgg(figure)
    return figure


def save_figure(path: StrPath, figure: Any) -> None:
    """Write a file in the format of its name, atomically; the same figure gives the same bytes."""
    from matplotlib import rc_context

    drawn = figure_format(path)
    with rc_context(_FONTS), atomic_file(path, 'wb') as stream:
        figure.savefig(stream, format=drawn, dpi='figure', metadata={_LEFT_OUT[drawn]: None})
