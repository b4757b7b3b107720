"""`python -m pyserini_repbert.explain`: why a reranker scores passages as it does."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.commands.command import (
    parser,
    positive_int,
    printable,
    refuse,
    utf8_text,
    zero_or_more,
)
from pyserini_repbert.commands.flags import add_flags, parsed
from pyserini_repbert.commands.terminal import Bars, say_device
from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.ranking import Ranking, check_question

_MATCHES = 3  # closest passage tokens shown of each query token
_SHADES = (
    255,
    254,
    252,
    194,
    157,
    120,
    83,
    46,
)  # backgrounds of xterm's 256 colours, from white to green


def main(arguments: list[str]) -> None:
    """Print why a reranker scores passages as it does; write pages and pictures on request."""
    flags = parser(
        'explain',
        'Why a reranker scores passages as it does, by what EPIC, CEDR, duoBERT or monoBERT saw.',
    )
    flags.add_argument(
        '--model',
        help='a reranker: catalog name or folder; default: the EPIC model that --index names',
    )
    add_flags(flags, 'query')
    what = flags.add_mutually_exclusive_group(required=True)
    what.add_argument('--docid', nargs='+', metavar='ID', help='passages of --index or --corpus')
    what.add_argument(
        '--passage', nargs='+', type=utf8_text, metavar='TEXT', help='passages as texts'
    )
    flags.add_argument(
        '--index', help='where the passages are; of an EPIC index, the stored vectors are explained'
    )
    flags.add_argument('--corpus', help="where the passages' texts are, if not in --index")
    flags.add_argument(
        '--top', type=zero_or_more, default=10, help='EPIC: how many expansion terms'
    )
    flags.add_argument(
        '--layer', nargs='+', type=zero_or_more, default=[], metavar='L', help='CEDR: 0 to the last'
    )
    flags.add_argument(
        '--samples', type=positive_int, default=3, help="duoBERT: m of the method 'sample'"
    )
    flags.add_argument(
        '--seed', type=zero_or_more, default=0, help="duoBERT: of the method 'sample'"
    )
    flags.add_argument('--json', action='store_true', help='print JSON, as the service answers')
    flags.add_argument(
        '--output',
        nargs='+',
        default=[],
        metavar='FILE',
        help='.html pages or .png pictures to write',
    )
    add_flags(flags, 'overwrite', 'device', 'precision', 'offline')
    options = parsed(flags, arguments)
    check_question(options.query)
    stored = options.index or options.corpus
    refuse(options.docid and not stored, '--docid needs the --index or the --corpus of the passage')
    refuse(
        options.passage and stored, '--index and --corpus are for --docid: a --passage is a text'
    )
    if others := [path for path in options.output if not path.endswith(('.html', '.png'))]:
        raise InputError(f"output '{others[0]}' is neither a .html nor a .png file: name it so")
    from pyserini_repbert.evaluate.plots import require_matplotlib
    from pyserini_repbert.explain.explaining import explanation
    from pyserini_repbert.explain.rendering import write_html, write_png
    from pyserini_repbert.index.epic import EpicBundle
    from pyserini_repbert.index.manifest import MANIFEST, manifest_kind
    from pyserini_repbert.index.records import EpicSettings
    from pyserini_repbert.names.rerankers import open_reranker
    from pyserini_repbert.names.texts import open_texts
    from pyserini_repbert.systems.duobert.reranker import DuoBertReranker

    if any(path.endswith('.png') for path in options.output):
        require_matplotlib('a PNG file')
    say_device(options)
    folder = Path(options.index or '')
    is_epic = (
        options.index
        and (folder / MANIFEST).is_file()
        and manifest_kind(folder) == EpicSettings.kind
    )
    bundle = EpicBundle(folder) if is_epic else None
    model = options.model or (bundle.settings.encoder if bundle else '')
    refuse(not model, '--model names the reranker: monobert-demo, say')
    reranker = open_reranker(model, options.device, precision=options.precision, index=bundle)
    docids = options.docid or [str(place) for place, _ in enumerate(options.passage, 1)]
    texts = options.passage or [None] * len(docids)
    if options.docid and (options.corpus or bundle is None or bundle.has_texts):
        texts = open_texts(options.corpus, None if options.corpus else options.index, docids).texts(
            docids
        )
        if None in texts:
            place = f'corpus {options.corpus}' if options.corpus else f'index {options.index}'
            raise MissingResourceError(
                f"{place} has no passage '{docids[texts.index(None)]}': check the docid"
            )
    hits = Ranking(docids, [0.0] * len(docids), texts)
    if isinstance(reranker, DuoBertReranker) and len(hits) < 2:
        raise InputError('duoBERT compares passages: give two passages or more')
    settings = {
        'top': options.top,
        'layers': options.layer,
        'samples': options.samples,
        'seed': options.seed,
    }
    with Bars(options) as bars:
        explained = explanation(reranker, options.query, hits, **settings, trace=bars)
    for path in options.output:
        (write_html if path.endswith('.html') else write_png)(path, explained)
    print(json.dumps(explained, ensure_ascii=False, indent=1) if options.json else _text(explained))


def _text(explained: Mapping[str, Any]) -> str:
    """An explanation for a terminal."""
    from pyserini_repbert.explain.rendering import panels, titles

    if explained['system'] == 'epic':
        named = zip(titles(explained), explained['passages'], strict=True)
        return '\n\n'.join(title + _weights(passage) for title, passage in named)
    if explained['system'] == 'cedr':
        tables = []
        for panel in panels(explained):  # a table for each map
            matched = [
                [token, *(f'{match} {value:.3f} @{place}' for match, place, value in matches)]
                for token, matches in zip(
                    panel.map.query, panel.map.best_matches(_MATCHES), strict=True
                )
            ]
            header = [panel.title, *(f'match {rank}' for rank in range(1, len(matched[0])))]
            cells = [[printable(cell).replace('|', r'\|') for cell in row] for row in matched]
            tables.append(markdown(header, cells))
        return '\n\n'.join(tables)
    docids = list(map(printable, explained['docids']))
    probabilities = explained['probabilities']
    if explained['system'] == 'duobert':
        cells = [['' if p is None else f'{100 * p:.1f}' for p in row] for row in probabilities]
        pairs = markdown(
            ['% better than', *docids],
            [[docid, *row] for docid, row in zip(docids, cells, strict=True)],
        )
        methods = explained['methods']
        places = [
            [
                docids[row],
                *(
                    f'{one["order"].index(docid) + 1}. ({one["scores"][row]:.4f})'
                    for one in methods.values()
                ),
            ]
            for row, docid in enumerate(explained['docids'])
        ]
        return f'{pairs}\n\n{markdown(["rank (score)", *methods], places)}'
    rows = sorted(
        zip(docids, probabilities, explained['scores'], strict=True), key=lambda row: -row[2]
    )
    cells = [[hit, f'{100 * p:.2f}%', f'{score:.4f}'] for hit, p, score in rows]
    return markdown(['passage', 'relevant', 'score'], cells)


def _weights(passage: Mapping[str, Any]) -> str:
    quality = '' if passage['quality'] is None else f', passage quality {passage["quality"]:.4f}'
    lines = [f'score {passage["score"]:.4f}{quality}', '', 'query:', _terms(passage['query_terms'])]
    if passage['passage_terms']:
        lines += ['', 'passage:', _terms(passage['passage_terms'])]
    absent = '' if passage['quality'] is None else ' that the passage does not contain'
    header = f'{"term":20} {"query":>9} {"passage":>9} {"product":>9}'
    lines += ['', f'strongest terms{absent}:', _terms(passage['expansions']), '', header]
    for part in passage['contributions']:
        values = (part['query_weight'], part['passage_weight'], part['contribution'])
        lines.append(
            f'{printable(part["term"]):20} {" ".join(f"{value:9.4f}" for value in values)}'
        )
    return '\n'.join(lines)


def _terms(terms: Sequence[Mapping[str, Any]]) -> str:
    """Words with weights; on a terminal, with a background by weight instead."""
    words = [printable(term['term']) for term in terms]
    weights = [term['weight'] for term in terms]
    if not sys.stdout.isatty() or not terms:
        return (
            '  '.join(f'{word} {weight:.3f}' for word, weight in zip(words, weights, strict=True))
            or '(none)'
        )
    shades = [_SHADES[round(7 * max(weight, 0) / max(1e-9, *weights))] for weight in weights]
    return ' '.join(
        f'\x1b[30;48;5;{shade}m{word}\x1b[0m' for word, shade in zip(words, shades, strict=True)
    )
