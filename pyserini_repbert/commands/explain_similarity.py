"""The command `explain similarity`: CEDR's Figure 1 for any query and passage."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pyserini_repbert.commands.command import add_precision_arguments, positive_int, precision, utf8_text, zero_or_more
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.tables import markdown

if TYPE_CHECKING:
    from pyserini_repbert.explain.heat_maps import Panel

DESCRIPTION = 'Cosines between query and passage tokens in a layer of BERT, as a heat map (CEDR Figure 1).'
_MATCHES = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument('--model', required=True, help='a CEDR checkpoint, or any BERT: catalog name or folder')
    parser.add_argument('--query', required=True, type=utf8_text, metavar='TEXT', help='the query')
    parser.add_argument('--passage', required=True, type=utf8_text, action='append', metavar='TEXT', help='repeatable')
    parser.add_argument('--layer', nargs='+', type=zero_or_more, metavar='L', help='0: embeddings; default: the last')
    parser.add_argument('--output', nargs='+', default=[], metavar='FILE', help='.png or .html files to write')
    parser.add_argument('--start', type=zero_or_more, help='first passage token in a PNG; default: the best match')
    parser.add_argument('--width', type=positive_int, default=40, help='passage tokens in a PNG')
    parser.add_argument('--device', default='cpu', help='cpu, cuda, cuda:N or mps')
    add_precision_arguments(parser)


def run(options: argparse.Namespace) -> None:
    """Print each query token's closest passage tokens, and draw the maps."""
    for path in options.output:
        if not path.endswith(('.png', '.html')):
            raise InputError(f"output '{path}' is neither a .png nor a .html file: name it so")
    from pyserini_repbert.evaluate.figures import require_matplotlib
    from pyserini_repbert.explain.heat_maps import Panel, write_html, write_png
    from pyserini_repbert.explain.similarity import SimilarityModel

    if any(path.endswith('.png') for path in options.output):
        require_matplotlib('a PNG file')
    model = SimilarityModel(options.model, options.device, precision(options))
    layers = options.layer or [model.config.num_hidden_layers]
    panels = []
    for number, passage in enumerate(options.passage, 1):
        where = f'passage {number}, ' if len(options.passage) > 1 else ''
        for one in model.maps(options.query, passage, layers):
            panels.append(Panel(where + (f'layer {one.layer}' if one.layer else 'embeddings'), one))
    for panel in panels:
        matches = panel.map.best_matches(_MATCHES)
        rows = [
            [token, *(f'{match} {value:.3f} @{place}' for match, place, value in own)]
            for token, own in zip(panel.map.query, matches, strict=True)
        ]
        header = [panel.title, *(f'match {rank}' for rank in range(1, len(rows[0])))]
        print(markdown(header, [[cell.replace('|', r'\|') for cell in row] for row in rows]), end='\n\n')
    for path in options.output:
        if path.endswith('.html'):
            write_html(path, options.query, panels)
        else:
            write_png(path, [_excerpt(panel, options.start, options.width) for panel in panels])
        print(path)


def _excerpt(panel: Panel, start: int | None, width: int) -> Panel:
    """The panel with `width` tokens of its passage, from `start` on or where they match best."""
    whole = panel.map
    first = whole.best_window(width) if start is None else start
    shown = whole.window(first, width)
    if not shown.passage:
        raise InputError(f'--start {first} is behind the end of the passage, which has {len(whole.passage)} tokens')
    if len(shown.passage) == len(whole.passage):
        return panel
    title = f'{panel.title}, tokens {first} to {first + len(shown.passage) - 1} of {len(whole.passage)}'
    return panel._replace(title=title, map=shown)
