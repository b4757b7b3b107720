"""`python -m pyserini_repbert.explain`: EPIC's weights (also `explain epic`); `explain similarity`: CEDR's matrices."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.commands.command import parser, positive_int, usage, utf8_text, zero_or_more
from pyserini_repbert.commands.flags import add_flags, precision
from pyserini_repbert.commands.output_files import parsed
from pyserini_repbert.errors import InputError, UnknownNameError
from pyserini_repbert.evaluate.tables import markdown

if TYPE_CHECKING:
    from pyserini_repbert.explain.epic import Explanation
    from pyserini_repbert.explain.similarity import Panel

_MATCHES = 3  # closest passage tokens shown of each query token


def main(arguments: list[str]) -> None:
    """Run `similarity` if the first argument says so, or explain EPIC's score."""
    word = arguments[0] if arguments and not arguments[0].startswith('-') else ''
    if word == 'similarity':
        _similarity(arguments[1:])
    elif word in ('', 'epic'):
        _epic(arguments[1:] if word else arguments)
    else:
        near = did_you_mean(word, ('epic', 'similarity'))
        raise UnknownNameError(f"'{word}' is not one of explain's subcommands{near}: epic, similarity")


def _epic(arguments: Sequence[str]) -> None:
    """Explain EPIC's score of a passage; print it, and write a page on request."""
    flags = parser(
        'explain',
        "Why EPIC gives a passage its score: term importances, expansions, contributions. 'explain similarity' draws "
        "CEDR's similarity matrices instead (it has its own --help).",
    )
    flags.add_argument('--model', help='an EPIC checkpoint: catalog name or folder; default: the one the index names')
    add_flags(flags, 'query')
    what = flags.add_mutually_exclusive_group(required=True)
    what.add_argument('--passage', type=utf8_text, metavar='TEXT', help='the passage')
    what.add_argument('--docid', help='a passage of --index')
    flags.add_argument('--index', help='an EPIC index: explain the vector that it stores')
    flags.add_argument('--corpus', help="where the passage's text is, if the index does not store texts")
    flags.add_argument('--top', type=zero_or_more, default=10, help='how many expansion terms')
    flags.add_argument('--prune', type=zero_or_more, default=0, help='with --passage: weights kept, 0 for all')
    flags.add_argument('--json', action='store_true', help='print JSON')
    flags.add_argument('--html', metavar='FILE', help='write a page')
    flags.add_argument('--colour', choices=('auto', 'always', 'never'), default='auto', help='of the terminal text')
    add_flags(flags, 'device', 'precision', 'offline')
    options = parsed(flags, arguments)
    if (options.docid is None) != (options.index is None):
        raise usage('--docid is for --index: give both, or a --passage')
    if options.passage is not None and not options.model:
        raise usage('--passage needs the --model')
    if options.passage is None and options.prune:
        raise usage('--prune is for --passage: an index has pruned its vectors')
    if options.passage is not None and options.corpus:
        raise usage('--corpus is for --docid, whose text it gives')
    from pyserini_repbert.download import forbid_downloads
    from pyserini_repbert.explain.epic import as_html, as_text
    from pyserini_repbert.files import atomic_file

    forbid_downloads(options.offline)
    explanation = _explained(options)
    if options.html:
        with atomic_file(options.html) as stream:
            stream.write(as_html(options.query, explanation))
    if options.json:
        print(json.dumps({'query': options.query, **explanation.as_json()}, ensure_ascii=False, indent=1))
    else:
        colours = options.colour == 'always' or (options.colour == 'auto' and sys.stdout.isatty())
        print(as_text(explanation, colours))


def _explained(options: argparse.Namespace) -> Explanation:
    from pyserini_repbert.encode.epic import EpicEncoder
    from pyserini_repbert.explain.epic import explain_indexed, explain_text
    from pyserini_repbert.index.epic import EpicBundle

    if options.passage is not None:
        encoder = EpicEncoder(options.model, options.device, precision(options))
        return explain_text(encoder, options.query, options.passage, options.top, options.prune)
    index = EpicBundle(options.index)
    encoder = EpicEncoder(options.model or index.settings.encoder, options.device, precision(options))
    text = None
    if options.corpus:
        from pyserini_repbert.data.passages import CorpusTexts
        from pyserini_repbert.names.corpora import open_corpus

        text = CorpusTexts(open_corpus(options.corpus), [options.docid]).texts([options.docid])[0]
        if text is None:
            raise InputError(f"corpus {options.corpus} has no passage '{options.docid}': check the docid")
    return explain_indexed(encoder, index, options.query, options.docid, text, options.top)


def _similarity(arguments: Sequence[str]) -> None:
    """Print each query token's closest passage tokens, and draw the maps (CEDR's Figure 1)."""
    flags = parser(
        'explain similarity',
        'Cosines between query and passage tokens in a layer of BERT, as a heat map (CEDR Figure 1).',
    )
    flags.add_argument('--model', required=True, help='a CEDR checkpoint, or any BERT: catalog name or folder')
    add_flags(flags, 'query')
    flags.add_argument('--passage', required=True, type=utf8_text, action='append', metavar='TEXT', help='repeatable')
    flags.add_argument('--layer', nargs='+', type=zero_or_more, metavar='L', help='0: embeddings; default: the last')
    flags.add_argument('--output', nargs='+', default=[], metavar='FILE', help='.png or .html files to write')
    flags.add_argument('--start', type=zero_or_more, help='first passage token in a PNG; default: the best match')
    flags.add_argument('--width', type=positive_int, default=40, help='passage tokens in a PNG')
    add_flags(flags, 'device', 'precision')
    options = parsed(flags, arguments)
    for path in options.output:
        if not path.endswith(('.png', '.html')):
            raise InputError(f"output '{path}' is neither a .png nor a .html file: name it so")
    from pyserini_repbert.evaluate.plots import require_matplotlib
    from pyserini_repbert.explain.similarity import Panel, SimilarityModel, write_html, write_png

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
        rows = [
            [token, *(f'{match} {value:.3f} @{place}' for match, place, value in matches)]
            for token, matches in zip(panel.map.query, panel.map.best_matches(_MATCHES), strict=True)
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
