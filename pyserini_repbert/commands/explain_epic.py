"""The command `explain`: EPIC's weights, expansions and contributions for a query and a passage."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from pyserini_repbert.commands.command import precision, usage, utf8_text, zero_or_more
from pyserini_repbert.commands.encode import add_model_arguments
from pyserini_repbert.errors import InputError

if TYPE_CHECKING:
    from pyserini_repbert.explain.epic import Explanation

DESCRIPTION = (
    "Why EPIC gives a passage its score: term importances, expansions, contributions. 'explain similarity' draws "
    "CEDR's similarity matrices instead (it has its own --help)."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument('--model', help='an EPIC checkpoint: catalog name or folder; default: the one the index names')
    parser.add_argument('--query', required=True, type=utf8_text, metavar='TEXT', help='the query')
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument('--passage', type=utf8_text, metavar='TEXT', help='the passage')
    what.add_argument('--docid', help='a passage of --index')
    parser.add_argument('--index', help='an EPIC index: explain the vector that it stores')
    parser.add_argument('--corpus', help="where the passage's text is, if the index does not store texts")
    parser.add_argument('--top', type=zero_or_more, default=10, help='how many expansion terms')
    parser.add_argument('--prune', type=zero_or_more, default=0, help='with --passage: weights kept, 0 for all')
    parser.add_argument('--json', action='store_true', help='print JSON')
    parser.add_argument('--html', metavar='FILE', help='write a page')
    parser.add_argument('--colour', choices=('auto', 'always', 'never'), default='auto', help='of the terminal text')
    add_model_arguments(parser)


def run(options: argparse.Namespace) -> None:
    """Explain the score; print it, and write a page on request."""
    if (options.docid is None) != (options.index is None):
        raise usage('--docid is for --index: give both, or a --passage')
    if options.passage is not None and not options.model:
        raise usage('--passage needs the --model')
    if options.passage is None and options.prune:
        raise usage('--prune is for --passage: an index has pruned its vectors')
    if options.passage is not None and options.corpus:
        raise usage('--corpus is for --docid, whose text it gives')
    from pyserini_repbert.download import forbid_downloads
    from pyserini_repbert.explain.epic_views import as_html, as_text
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
