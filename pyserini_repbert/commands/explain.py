"""`python -m pyserini_repbert.explain`: why a reranker scores passages as it does."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands.command import parser, positive_int, refuse, utf8_text, zero_or_more
from pyserini_repbert.commands.console import json_text, printable, shaded
from pyserini_repbert.commands.flags import OutputFile, add_flags, parse_flags
from pyserini_repbert.commands.terminal import ProgressBars, say_device
from pyserini_repbert.data.origins import readable_docid, stored_docid
from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.extension import add_flags_of, parts_of
from pyserini_repbert.ranking import Ranking, check_question

if TYPE_CHECKING:
    from pyserini_repbert.index.term_weights import TermWeightsBundle
    from pyserini_repbert.indexes.kind import ExplainingModel

_MATCHES = 3  # closest passage tokens shown of each query token


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command's flags."""
    flags = parser(
        'explain',
        'Show why a reranker scores passages as it does: what it saw in each.',
    )
    add = flags.add_argument
    add(
        '--model',
        help='a reranker: catalog name or folder; default: the model of terms or tokens that '
        '--index has',
    )
    add_flags(flags, 'query')
    what = flags.add_mutually_exclusive_group(required=True)
    what.add_argument(
        '--docid',
        nargs='+',
        metavar='ID',
        help='passages of --index or --corpus, or documents of a collection',
    )
    what.add_argument(
        '--passage', nargs='+', type=utf8_text, metavar='TEXT', help='passages as texts'
    )
    what.add_argument(
        '--hits',
        type=positive_int,
        metavar='N',
        help='of a collection: the best N documents of a search',
    )
    add('--index', help='the index with the passages; an EPIC index explains its stored vectors')
    add('--corpus', help='the corpus with the texts of the passages, if they are not in --index')
    add(
        '--top',
        type=zero_or_more,
        default=10,
        help='EPIC and SparseEncoder: how many expansion terms',
    )
    add(
        '--layer',
        nargs='+',
        type=zero_or_more,
        default=[],
        metavar='L',
        help='CEDR: layers to show, from 0 to the last',
    )
    add('--samples', type=positive_int, default=3, help="duoBERT: m of the method 'sample'")
    add('--seed', type=zero_or_more, default=0, help="duoBERT: seed of the method 'sample'")
    add('--json', action='store_true', help="print JSON, in the form of the service's answers")
    add(
        '--output',
        nargs='+',
        default=[],
        type=OutputFile,
        metavar='FILE',
        help='.html pages or .png pictures to write',
    )
    add_flags(flags, 'overwrite', 'device', 'precision', 'offline')
    add_flags_of('explain', flags)
    return flags


def _check_flags(options: argparse.Namespace) -> None:
    """Raise InputError for conflicting flags, and for outputs that are not pages or pictures."""
    check_question(options.query)
    stored = options.index or options.corpus
    refuse(options.docid and not stored, '--docid needs the --index or the --corpus of the passage')
    refuse(
        options.passage and stored, '--index and --corpus are for --docid: a --passage is a text'
    )
    from pyserini_repbert.indexes.kind import kind_of

    is_searched = bool(options.index) and kind_of(options.index).finds_passages
    refuse(
        options.hits is not None and (not is_searched or bool(options.corpus)),
        '--hits are of a collection: name it as --index, without --corpus, or name passages by '
        '--docid',
    )
    for part in parts_of('explain'):
        part.check(options)
    for path in options.output:
        if not path.endswith(('.html', '.png')):
            raise InputError(f"output '{path}' is neither a .html nor a .png file: name it so")


def main(arguments: list[str]) -> None:
    """Print why a reranker scores passages as it does; write pages and pictures on request."""
    options = parse_flags(make_parser(), arguments)
    _check_flags(options)
    from pyserini_repbert.evaluate.plots import require_matplotlib
    from pyserini_repbert.explain.explaining import explanation
    from pyserini_repbert.explain.rendering import write_html, write_png
    from pyserini_repbert.names.rankers import refuse_code
    from pyserini_repbert.names.rerankers import open_reranker

    if any(path.endswith('.png') for path in options.output):
        require_matplotlib('a PNG file')
    say_device(options)
    bundle, stored = _model_of_index(options.index)
    settings: dict[str, Any] = {'precision': options.precision, 'index': bundle}
    model = options.model
    if not model:
        if stored is None:
            raise InputError('--model names the reranker: give one, such as monobert-demo')
        refuse_code(stored.encoder, options.index, 'model')
        model = stored.encoder
        settings |= stored.settings
    reranker = open_reranker(model, options.device, **settings)
    hits = _passages(options, bundle)
    if reranker.compares and len(hits) < 2:
        raise InputError(f"'{reranker.label}' compares passages: give two passages or more")
    with ProgressBars(options) as bars:
        explained = explanation(
            reranker,
            options.query,
            hits,
            top=options.top,
            layers=options.layer,
            samples=options.samples,
            seed=options.seed,
            trace=bars,
        )
    for path in options.output:
        write = write_html if path.endswith('.html') else write_png
        write(path, explained)
    if options.json:
        print(json_text(explained, indent=1))
    else:
        print(_text(explained))


def _model_of_index(
    index: str | None,
) -> tuple[TermWeightsBundle | None, ExplainingModel | None]:
    """The term weights that an index has as a bundle, and the model that explains its scores;
    None without them.
    """
    from pyserini_repbert.indexes.kind import SearchOptions, kind_of

    if not index:
        return None, None
    with contextlib.closing(kind_of(index).open(index, SearchOptions())) as opened:
        return opened.term_weights, opened.explaining_model


def _passages(options: argparse.Namespace, bundle: TermWeightsBundle | None) -> Ranking:
    """The passages to explain; without texts if only an EPIC index has them, as vectors."""
    from pyserini_repbert.indexes.kind import kind_of

    if options.passage:
        docids = [str(number) for number in range(1, len(options.passage) + 1)]
        return Ranking(docids, [0.0] * len(docids), options.passage)
    if options.hits is not None:
        return _best_hits(options)
    docids = options.docid
    if options.index and not options.corpus and kind_of(options.index).finds_passages:
        return _passages_of_documents(options)
    texts: list[str | None] = [None] * len(docids)
    if options.corpus or bundle is None or bundle.has_texts:
        texts = _read_texts(options, docids)
    return Ranking(docids, [0.0] * len(docids), texts)


def _best_hits(options: argparse.Namespace) -> Ranking:
    """The best documents of a search in a collection, each with the passage that fits best.

    Documents without text are left out, because there is nothing to explain. Raises
    MissingResourceError if none is left.
    """
    from pyserini_repbert.indexes.machine import Machine
    from pyserini_repbert.pipeline.opening import open_searcher
    from pyserini_repbert.pipeline.spec import PipelineSpec

    chosen = getattr(options, 'filter', None)
    spec = PipelineSpec(index=options.index, filter=chosen)
    with contextlib.closing(open_searcher(spec, Machine(devices=(options.device,)))) as searcher:
        found = searcher.search(options.query, options.hits)
        hits: Ranking = searcher.with_stored_texts(options.query, Ranking.of(found))
    with_texts = [hit for hit in hits if hit.excerpts]
    if not with_texts:
        within = f' within {chosen}' if chosen else ''
        raise MissingResourceError(
            f'the search finds no document with a text in collection {options.index}{within}: '
            'check the query and the filter'
        )
    return Ranking.of(with_texts)


def _passages_of_documents(options: argparse.Namespace) -> Ranking:
    """Documents of a collection, each with the passage that fits the query best.

    Raises MissingResourceError for a document that does not exist, or has no text.
    """
    from pyserini_repbert.indexes.machine import Machine
    from pyserini_repbert.pipeline.opening import open_searcher
    from pyserini_repbert.pipeline.spec import PipelineSpec

    spec = PipelineSpec(index=options.index, rankings=('dense',))
    with contextlib.closing(open_searcher(spec, Machine(devices=(options.device,)))) as searcher:
        docids = [stored_docid(docid, searcher.holds) for docid in options.docid]
        hits: Ranking = searcher.with_stored_texts(
            options.query, Ranking(docids, [0.0] * len(docids))
        )
    for hit in hits:
        if not hit.excerpts:
            raise MissingResourceError(
                f"collection {options.index} has no document '{hit.docid}' with a text: check the "
                'docid'
            )
    return hits


def _read_texts(options: argparse.Namespace, docids: Sequence[str]) -> list[str | None]:
    """The texts of these passages.

    Raises MissingResourceError for a passage that does not exist.
    """
    from pyserini_repbert.indexes.texts import open_texts

    if options.corpus:
        texts = open_texts(options.corpus, None, docids).texts(docids)
        source = f'corpus {options.corpus}'
    else:
        texts = open_texts(None, options.index, docids).texts(docids)
        source = f'index {options.index}'
    if None in texts:
        missing = docids[texts.index(None)]
        raise MissingResourceError(f"{source} has no passage '{missing}': check the docid")
    return texts


def _text(explained: Mapping[str, Any]) -> str:
    """An explanation for a terminal."""
    from pyserini_repbert.explain.explaining import excerpt_line

    lines = []
    for passage in explained.get('excerpts', ()):
        line = excerpt_line(passage['number'], passage['start'], passage['end'])
        lines.append(f'{printable(readable_docid(passage["docid"]))}: {line}')
    text_of = {
        'epic': _epic_text,
        'cedr': _cedr_text,
        'duobert': _duobert_text,
        'monobert': _monobert_text,
    }
    shown = text_of.get(explained['system'], _scores_text)(explained)
    return '\n\n'.join(filter(None, ['\n'.join(lines), shown]))


def _scores_text(explained: Mapping[str, Any]) -> str:
    """A table of the passages with their scores, the best first, and the tables of an explanation
    that has some.
    """
    docids = [printable(readable_docid(docid)) for docid in explained['docids']]
    scored = zip(docids, explained['scores'], strict=True)
    rows = [[docid, f'{score:.4f}'] for docid, score in sorted(scored, key=lambda entry: -entry[1])]
    tables = [markdown(['passage', 'score'], rows)]
    for table in explained.get('tables', ()):
        if table['rows']:
            title = f'{printable(readable_docid(table["docid"]))}: {printable(table["title"])}'
            tables.append(f'{title}\n\n{_table_text(table["rows"])}')
    return '\n\n'.join(tables)


def _table_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows whose keys are the columns, as a table."""
    from pyserini_repbert.explain.rendering import cell_text

    cells = []
    for row in rows:
        cells.append([printable(cell_text(value)) for value in row.values()])
    return markdown(list(rows[0]), cells)


def _cedr_text(explained: Mapping[str, Any]) -> str:
    """A table for each map of similarities: the closest passage tokens of each query token."""
    from pyserini_repbert.explain.rendering import panels

    tables = []
    for panel in panels(explained):
        rows = []
        all_matches = panel.map.best_matches(_MATCHES)
        for token, matches in zip(panel.map.query, all_matches, strict=True):
            cells = [token]
            cells += [f'{match} {value:.3f} @{position}' for match, position, value in matches]
            rows.append([printable(cell).replace('|', r'\|') for cell in cells])
        header = [panel.title, *(f'match {rank}' for rank in range(1, len(rows[0])))]
        tables.append(markdown(header, rows))
    return '\n\n'.join(tables)


def _duobert_text(explained: Mapping[str, Any]) -> str:
    """A table of all pairs, and one of the ranks and scores that each method gives."""
    docids = [printable(readable_docid(docid)) for docid in explained['docids']]
    rows = []
    for docid, probabilities in zip(docids, explained['probabilities'], strict=True):
        rows.append([docid, *('' if p is None else f'{100 * p:.1f}' for p in probabilities)])
    pairs = markdown(['% better than', *docids], rows)
    methods = explained['methods']
    rows = []
    for row, docid in enumerate(explained['docids']):
        cells = [docids[row]]
        for method in methods.values():
            rank = method['order'].index(docid) + 1
            cells.append(f'{rank}. ({method["scores"][row]:.4f})')
        rows.append(cells)
    return f'{pairs}\n\n{markdown(["rank (score)", *methods], rows)}'


def _monobert_text(explained: Mapping[str, Any]) -> str:
    """A table of the passages, the best first."""
    docids = [printable(readable_docid(docid)) for docid in explained['docids']]
    scored = zip(docids, explained['probabilities'], explained['scores'], strict=True)
    rows = [
        [docid, f'{100 * probability:.2f}%', f'{score:.4f}']
        for docid, probability, score in sorted(scored, key=lambda entry: -entry[2])
    ]
    return markdown(['passage', 'relevant', 'score'], rows)


def _epic_text(explained: Mapping[str, Any]) -> str:
    """The weights of query and passage, for each passage."""
    from pyserini_repbert.explain.rendering import titles

    named = zip(titles(explained), explained['passages'], strict=True)
    return '\n\n'.join(title + _weights(passage) for title, passage in named)


def _weights(passage: Mapping[str, Any]) -> str:
    """The score of a passage, and the terms that make it."""
    quality = ''
    absent = ''
    if passage['quality'] is not None:
        quality = f', passage quality {passage["quality"]:.4f}'
    if passage['quality'] is not None or passage['passage_terms']:
        absent = ' that the passage does not contain'
    lines = [f'score {passage["score"]:.4f}{quality}', '', 'query:', _terms(passage['query_terms'])]
    if passage['passage_terms']:
        lines += ['', 'passage:', _terms(passage['passage_terms'])]
    lines += ['', f'strongest terms{absent}:', _terms(passage['expansions']), '']
    lines.append(f'{"term":20} {"query":>9} {"passage":>9} {"product":>9}')
    for part in passage['contributions']:
        values = (part['query_weight'], part['passage_weight'], part['contribution'])
        shown = ' '.join(f'{value:9.4f}' for value in values)
        lines.append(f'{printable(part["term"]):20} {shown}')
    return '\n'.join(lines)


def _terms(terms: Sequence[Mapping[str, Any]]) -> str:
    """Words with weights; on a terminal, with a background by weight instead."""
    if not terms:
        return '(none)'
    words = [printable(term['term']) for term in terms]
    weights = [term['weight'] for term in terms]
    shown = []
    if not sys.stdout.isatty():
        for word, weight in zip(words, weights, strict=True):
            shown.append(f'{word} {weight:.3f}')
        return '  '.join(shown)
    most = max(1e-9, *weights)
    for word, weight in zip(words, weights, strict=True):
        shown.append(shaded(word, max(weight, 0) / most))
    return ' '.join(shown)
