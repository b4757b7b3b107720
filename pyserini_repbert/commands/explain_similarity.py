"""The command `explain similarity`: CEDR's Figure 1 for any query and passage."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pyserini_repbert.commands.command import add_precision_arguments, positive_int, precision, utf8_text, zero_or_more
from pyserini_repbert.errors import InputError

if TYPE_CHECKING:
    from pyserini_repbert.explain.heat_maps import Panel

DESCRIPTION = 'Cosines between query and passage tokens in a layer of BERT, as a heat map (CEDR Figure 1).'
_MATCHES = 3
_WIDTH = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument('--model', required=True, help='a CEDR checkpoint, or any BERT: catalog name or folder')
    parser.add_argument('--query', required=True, type=utf8_text, metavar='TEXT', help='the query')
    parser.add_argument('--passage', required=True, type=utf8_text, action='append', metavar='TEXT', help='repeatable')
    parser.add_argument('--layer', nargs='+', type=zero_or_more, metavar='L', help='0: embeddings; default: the last')
    parser.add_argument('--output', nargs='+', default=[], metavar='FILE', help='.png or .html files to write')
    parser.add_argument('--start', type=zero_or_more, help='first passage token in a PNG; default: the best match')
    parser.add_argument('--width', type=positive_int, default=_WIDTH, help='passage tokens in a PNG')
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
        for found in model.maps(options.query, passage, layers):
            what = f'layer {found.layer}' if found.layer else 'embeddings'
            panels.append(Panel(f'passage {number}, {what}' if len(options.passage) > 1 else what, found))
    for panel in panels:
        _print(panel)
    for path in options.output:
        if path.endswith('.html'):
            write_html(path, options.query, panels)
        else:
            write_png(path, [_excerpt(panel, options) for panel in panels])
        print(path)


def _excerpt(panel: Panel, options: argparse.Namespace) -> Panel:
    whole = panel.map
    start = whole.best_window(options.width) if options.start is None else options.start
    shown = whole.window(start, options.width)
    if not shown.passage:
        raise InputError(f'--start {start} is behind the end of the passage, which has {len(whole.passage)} tokens')
    if len(shown.passage) == len(whole.passage):
        return panel
    title = f'{panel.title}, tokens {start} to {start + len(shown.passage) - 1} of {len(whole.passage)}'
    return panel._replace(title=title, map=shown)


def _print(panel: Panel) -> None:
    from pyserini_repbert.evaluate.tables import markdown

    rows = [
        [_cell(token), *(f'{_cell(other)} {value:.3f} @{place}' for other, place, value in matches)]
        for token, matches in zip(panel.map.query, panel.map.best_matches(_MATCHES), strict=True)
    ]
    n_matches = max(map(len, rows)) - 1
    print(markdown([panel.title, *(f'match {rank}' for rank in range(1, n_matches + 1))], rows), end='\n\n')


def _cell(token: str) -> str:
    return token.replace('|', r'\|')
