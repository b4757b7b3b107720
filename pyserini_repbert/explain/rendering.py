"""What `explanation` returns as an HTML page or a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pyserini_repbert.evaluate.plots import new_figure, save_figure
from pyserini_repbert.evaluate.tables import page
from pyserini_repbert.files import StrPath, atomic_file
from pyserini_repbert.systems.cedr.explaining import SimilarityMap

_WIDTH = 40  # passage tokens in a picture


class Panel(NamedTuple):
    """A map with a title, and the least and greatest value of its scale."""

    title: str
    map: SimilarityMap
    low: float
    high: float

    def rows(self) -> Iterator[tuple[str, list[float], list[float]]]:
        """For each row its name, its values, and these as shares of the scale, 0 to 1."""
        shares = (self.map.values - self.low) / ((self.high - self.low) or 1.0)
        return zip(self.map.query, self.map.values.tolist(), shares.tolist(), strict=True)

    def excerpt(self) -> Panel:
        """The part of a long passage that matches best."""
        n = len(self.map.passage)
        if n <= _WIDTH:
            return self
        start = int(np.argmax(np.convolve(self.map.values.sum(axis=0), np.ones(_WIDTH), 'valid')))
        title = f'{self.title}, tokens {start} to {start + _WIDTH - 1} of {n}'
        shown = slice(start, start + _WIDTH)
        excerpt = replace(
            self.map, passage=self.map.passage[shown], values=self.map.values[:, shown]
        )
        return self._replace(title=title, map=excerpt)


def titles(explained: Mapping[str, Any]) -> list[str]:
    """The line before each passage of EPIC and CEDR: its docid, or nothing if there is one
    passage only.
    """
    passages = explained.get('passages', [])
    if len(passages) == 1:
        return ['']
    return [f'{passage["docid"]}: ' for passage in passages]


def cell_text(value: Any) -> str:
    """What a table of an explanation shows for a value: a number with four digits after the
    point.
    """
    if isinstance(value, float):
        return f'{value:.4f}'
    return str(value)


def panels(explained: Mapping[str, Any]) -> list[Panel]:
    """CEDR's maps; maps of one layer share a scale, so that they can be compared."""
    maps: list[tuple[str, SimilarityMap]] = []
    values_of_layer: dict[int, list[float]] = {}
    for title, passage in zip(titles(explained), explained['passages'], strict=True):
        for recorded in passage['maps']:
            layer = recorded['layer']
            values = np.array(recorded['values'])
            name = f'{title}layer {layer}'
            if layer == 0:
                name = f'{title}embeddings'
            shown = SimilarityMap(layer, passage['query_tokens'], passage['passage_tokens'], values)
            maps.append((name, shown))
            extremes = [float(values.min()), float(values.max())]
            values_of_layer.setdefault(layer, []).extend(extremes)
    scaled = []
    for name, shown in maps:
        values_in_layer = values_of_layer[shown.layer]
        scaled.append(Panel(name, shown, min(values_in_layer), max(values_in_layer)))
    return scaled


def write_html(path: StrPath, explained: Mapping[str, Any]) -> None:
    """Write a self-contained page: the darker, the greater; each cell has its value as a
    tooltip.
    """
    maps: list[Panel] = []
    if explained['system'] == 'cedr':
        maps = panels(explained)
    with atomic_file(path) as stream:
        text = page(
            'explanation',
            explained=explained,
            panels=maps,
            titles=titles(explained),
            cell_text=cell_text,
        )
        stream.write(text)


def write_png(path: StrPath, explained: Mapping[str, Any]) -> None:
    """Draw EPIC's contributions, monoBERT's probabilities, other scores and tables as bars;
    duoBERT's pairs and CEDR's maps as heat maps.

    Of a long passage, CEDR's map shows the part that matches best (CEDR Figure 1). The lighter, the
    greater.
    """
    if explained['system'] == 'cedr':
        _draw_maps(path, [panel.excerpt() for panel in panels(explained)])
    elif explained['system'] == 'duobert':
        docids = explained['docids']
        values = np.array(explained['probabilities'], dtype=float)
        title = 'P(row is more relevant)'
        _draw_maps(path, [Panel(title, SimilarityMap(0, docids, docids, values), 0.0, 1.0)])
    elif explained['system'] == 'epic':
        _draw_bars(path, _contributions(explained))
    elif explained['system'] == 'monobert':
        probabilities = zip(explained['docids'], explained['probabilities'], strict=True)
        _draw_bars(path, [Bars('P(relevant)', list(probabilities))])
    else:
        _draw_bars(path, _scores_and_tables(explained))


class Bars(NamedTuple):
    """A group of bars: a title, and the name and value of each."""

    title: str
    values: list[tuple[str, float]]


def _contributions(explained: Mapping[str, Any]) -> list[Bars]:
    """What each term contributes to EPIC's score, for each passage."""
    groups = []
    for title, passage in zip(titles(explained), explained['passages'], strict=True):
        values = [(part['term'], part['contribution']) for part in passage['contributions']]
        groups.append(Bars(f'{title}score {passage["score"]:.4f}', values))
    return groups


def _scores_and_tables(explained: Mapping[str, Any]) -> list[Bars]:
    """The score of each passage, then the second column of each table, by the first."""
    scores = zip(explained['docids'], explained['scores'], strict=True)
    groups = [Bars('score', list(scores))]
    for table in explained.get('tables', ()):
        bars = []
        for row in table['rows']:
            name, value = list(row.values())[:2]
            bars.append((name, value))
        groups.append(Bars(f'{table["docid"]}: {table["title"]}', bars))
    return groups


def _draw_maps(path: StrPath, maps: Sequence[Panel]) -> None:
    widest = max(len(panel.map.passage) for panel in maps)
    rows = sum(len(panel.map.query) + 5 for panel in maps)
    figure = new_figure(max(5.0, 2.5 + 0.24 * widest), 0.28 * rows + 0.5)
    axes = figure.subplots(len(maps), 1, squeeze=False)[:, 0]
    for axis, (title, shown, low, high) in zip(axes, maps, strict=True):
        image = axis.imshow(shown.values, cmap='viridis', aspect='auto', vmin=low, vmax=high)
        axis.set_xticks(range(len(shown.passage)), map(_plain, shown.passage), rotation=90)
        axis.set_yticks(range(len(shown.query)), map(_plain, shown.query))
        axis.set_title(_plain(title), loc='left', fontsize='medium')
        figure.colorbar(image, ax=axis, pad=0.01)
    save_figure(path, figure)


def _draw_bars(path: StrPath, groups: Sequence[Bars]) -> None:
    rows = sum(len(group.values) + 4 for group in groups)
    figure = new_figure(6.0, 0.28 * rows + 0.5)
    axes = figure.subplots(len(groups), 1, squeeze=False)[:, 0]
    for axis, (title, bars) in zip(axes, groups, strict=True):
        axis.barh(range(len(bars)), [value for _, value in bars])
        axis.set_yticks(range(len(bars)), [_plain(name) for name, _ in bars])
        axis.invert_yaxis()
        axis.set_title(_plain(title), loc='left', fontsize='medium')
    save_figure(path, figure)


def _plain(text: str) -> str:
    """Text in which matplotlib does not read '$' as the beginning of a formula."""
    return text.replace('$', r'\$')
