"""Similarity maps as pictures: PNG with matplotlib, or a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyserini_repbert.evaluate.figures import new_figure, save_figure
from pyserini_repbert.evaluate.pages import page
from pyserini_repbert.files import StrPath, atomic_file

if TYPE_CHECKING:
    from pyserini_repbert.explain.similarity import SimilarityMap


class Panel(NamedTuple):
    """A map with a title."""

    title: str
    map: SimilarityMap


def scales(panels: Sequence[Panel]) -> dict[int, tuple[float, float]]:
    """{layer: (least, greatest similarity)}: maps of the same layer share a scale, so that they can be compared."""
    ends: dict[int, list[float]] = {}
    for _, shown in panels:
        ends.setdefault(shown.layer, []).extend([float(shown.values.min()), float(shown.values.max())])
    return {layer: (min(extremes), max(extremes)) for layer, extremes in ends.items()}


def write_png(path: StrPath, panels: Sequence[Panel]) -> None:
    """Draw the maps below one another, as in CEDR Figure 1: the lighter, the more similar."""
    widest = max(len(panel.map.passage) for panel in panels)
    rows = sum(len(panel.map.query) + 5 for panel in panels)
    figure = new_figure(max(5.0, 2.5 + 0.24 * widest), 0.28 * rows + 0.5)
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    ranges = scales(panels)
    for axis, (title, shown) in zip(axes, panels, strict=True):
        low, high = ranges[shown.layer]
        image = axis.imshow(shown.values, cmap='viridis', aspect='auto', vmin=low, vmax=high)
        axis.set_xticks(range(len(shown.passage)), map(_plain, shown.passage), rotation=90)
        axis.set_yticks(range(len(shown.query)), map(_plain, shown.query))
        axis.set_title(_plain(title), loc='left', fontsize='medium')
        figure.colorbar(image, ax=axis, pad=0.01)
    save_figure(path, figure)


def _plain(text: str) -> str:
    """A text in which matplotlib does not read '$' as the beginning of a formula."""
    return text.replace('$', r'\$')


def write_html(path: StrPath, query: str, panels: Sequence[Panel]) -> None:
    """Write the maps as HTML tables: the darker, the more similar; each cell has its value as a tooltip."""
    ranges = scales(panels)
    tables = []
    for title, shown in panels:
        low, high = ranges[shown.layer]
        shares = (shown.values - low) / ((high - low) or 1.0)
        rows = list(zip(shown.query, shown.values.tolist(), shares.tolist(), strict=True))
        tables.append({'title': title, 'low': low, 'high': high, 'passage': shown.passage, 'rows': rows})
    with atomic_file(path) as stream:
        stream.write(page('similarity', query=query, panels=tables))
