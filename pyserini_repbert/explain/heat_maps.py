"""Similarity maps as pictures: PNG with matplotlib, or one HTML file that needs nothing else."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyserini_repbert.errors import MissingDependencyError
from pyserini_repbert.files import StrPath, atomic_file

if TYPE_CHECKING:
    from pyserini_repbert.explain.similarity import SimilarityMap

_COLOURS = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))  # viridis, in five steps
_STYLE = """
body { font: 14px system-ui, sans-serif; margin: 2em }
.map { overflow-x: auto; margin-bottom: 2em }
table { border-collapse: collapse }
td { width: 1.1em; height: 1.4em; padding: 0 }
thead th { writing-mode: vertical-rl; transform: rotate(180deg); font-weight: normal; padding: 2px }
tbody th { text-align: right; font-weight: normal; padding: 0 6px; position: sticky; left: 0; background: white }
"""


class Panel(NamedTuple):
    """A map with a title."""

    title: str
    map: SimilarityMap


def scales(panels: Sequence[Panel]) -> dict[int, tuple[float, float]]:
    """The least and the greatest similarity by layer: maps of one layer share their colours, so that they compare."""
    found: dict[int, tuple[float, float]] = {}
    for panel in panels:
        layer, values = panel.map.layer, panel.map.values
        low, high = found.get(layer, (float('inf'), float('-inf')))
        found[layer] = (min(low, float(values.min())), max(high, float(values.max())))
    return found


def require_matplotlib() -> None:
    """Raises MissingDependencyError, before any work is done, where matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError.of('matplotlib', 'a PNG file', "'pyserini-repbert[plots]'") from error


def write_png(path: StrPath, panels: Sequence[Panel]) -> None:
    """The maps below one another, as in CEDR Figure 1: the lighter, the more similar."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    widest = max(len(panel.map.passage) for panel in panels)
    rows = sum(len(panel.map.query) + 5 for panel in panels)
    figure = Figure(figsize=(max(5.0, 2.5 + 0.24 * widest), 0.28 * rows + 0.5), layout='constrained')
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    ranges = scales(panels)
    for axis, (title, shown) in zip(axes, panels, strict=True):
        low, high = ranges[shown.layer]
        image = axis.imshow(shown.values, cmap='viridis', aspect='auto', vmin=low, vmax=high)
        # A '$' would begin a formula, and a wordpiece may well be one.
        axis.set_xticks(range(len(shown.passage)), [_plain(token) for token in shown.passage], rotation=90)
        axis.set_yticks(range(len(shown.query)), [_plain(token) for token in shown.query])
        axis.set_title(_plain(title), loc='left', fontsize='medium')
        figure.colorbar(image, ax=axis, pad=0.01)
    with atomic_file(path, 'wb') as stream:
        figure.savefig(stream, format='png', dpi=120, metadata={'Software': None})


def _plain(text: str) -> str:
    return text.replace('$', r'\$')


def write_html(path: StrPath, query: str, panels: Sequence[Panel]) -> None:
    """The maps as tables, each cell with its value as a tooltip; every text is escaped."""
    ranges = scales(panels)
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Similarity</title>',
        f'<style>{_STYLE}</style>\n<h1>{html.escape(query)}</h1>',
        *(_table(panel, *ranges[panel.map.layer]) for panel in panels),
        '</html>\n',
    ]
    with atomic_file(path) as stream:
        stream.write('\n'.join(parts))


def _table(panel: Panel, low: float, high: float) -> str:
    shown = panel.map
    head = ''.join(f'<th>{html.escape(token)}</th>' for token in shown.passage)
    rows = []
    for token, values in zip(shown.query, shown.values.tolist(), strict=True):
        cells = []
        for other, value in zip(shown.passage, values, strict=True):
            told = html.escape(f'{token} · {other}: {value:.3f}')
            cells.append(f'<td style="background:{_colour(value, low, high)}" title="{told}">')
        rows.append(f'<tr><th>{html.escape(token)}</th>{"".join(cells)}</tr>')
    return (
        f'<h2>{html.escape(panel.title)}</h2>\n<p>cosine from {low:.3f} (dark) to {high:.3f} (light)</p>\n'
        f'<div class="map"><table>\n<thead><tr><th></th>{head}</tr></thead>\n<tbody>\n'
        + '\n'.join(rows)
        + '\n</tbody></table></div>'
    )


def _colour(value: float, low: float, high: float) -> str:
    """A colour of viridis: `low` is dark, `high` is light."""
    place = (value - low) / (high - low) * (len(_COLOURS) - 1) if high > low else 0.0
    step = min(int(place), len(_COLOURS) - 2)
    mixed = (round(a + (b - a) * (place - step)) for a, b in zip(_COLOURS[step], _COLOURS[step + 1], strict=True))
    return '#' + ''.join(f'{channel:02x}' for channel in mixed)
