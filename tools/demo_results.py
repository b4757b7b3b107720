"""Evaluates the demo checkpoints on test topics: makes missing runs and the tables of regressions/demo-checkpoints.md.

    python tools/demo_results.py --data FOLDER --work FOLDER [--only demo,liveqa] [--systems bm25,repbert-demo]

Runs and indexes are kept in the work folder. In the page, what is between `<!-- results NAME -->` and `<!-- end -->`
is replaced; the text around stays. Tables have the systems that are asked for; what cannot be run is named.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from demo_maker import Maker
from demo_runs import BM25, COLLECTIONS, DUO_DEPTH, Collection, Kind, System, all_systems, chosen, named

from pyserini_repbert import catalog
from pyserini_repbert.commands.command import Parser, run
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.evaluate.measures import Evaluation, evaluate, parse_measures
from pyserini_repbert.evaluate.significance import Comparison, compare
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.files import atomic_file

PAGE = Path(__file__).resolve().parent.parent / 'regressions' / 'demo-checkpoints.md'
END = '<!-- end -->'
HEAD = """# The demo checkpoints on test topics

Made by `python tools/demo_results.py --data FOLDER --work FOLDER`.
"""


def main(arguments: list[str]) -> int | None:
    """Make the runs and the page; status 1 where something could not be run."""
    options = _parser().parse_args(arguments)
    depths = named(options.depth, '--depth', {one.name: one for one in COLLECTIONS})
    if bad := [value for value in depths.values() if not value.isdecimal() or int(value) < DUO_DEPTH]:
        raise InputError(f"--depth '{bad[0]}': a whole number of at least {DUO_DEPTH} was expected")
    checkpoints = named(options.checkpoints, '--checkpoints')
    usual = {system.checkpoint for system in all_systems().values()}
    systems = all_systems([name for name in checkpoints if name not in usual])
    groups = chosen(options.systems, list(dict.fromkeys(one.group for one in systems.values())), 'system')
    names = chosen(options.only, [one.name for one in COLLECTIONS], 'collection')
    sections, missing = {}, False
    for collection in (one.within(options.data) for one in COLLECTIONS if one.name in names):
        own = replace(collection, depth=int(depths.get(collection.name, collection.depth)))
        folder = Path(options.work) / own.name
        maker = Maker(own, folder, systems, checkpoints, groups, precision=options.precision)
        sections[own.name], lacks = section(own, maker)
        missing |= lacks
        write_page(Path(options.page), sections)
    return int(missing)


def section(collection: Collection, maker: Maker) -> tuple[str, bool]:
    """A collection's section in Markdown, and whether a run that was asked for is missing."""
    if absent := absent_files(collection):
        lacking = ', '.join(Path(path).name for path in absent)
        print(f'{collection.name}: NOT RUN, not there: {", ".join(absent)}', file=sys.stderr)
        return f'**NOT RUN**: the data folder lacks {lacking}.\n', True
    from pyserini_repbert.names.topics import load_qrels

    qrels, measures = load_qrels(collection.qrels), parse_measures(collection.measures)
    found: dict[str, Evaluation] = {}
    weights: dict[str, str] = {}
    failed: dict[str, str] = {}
    asked = {name: system for name, system in maker.systems.items() if system.group in maker.groups}
    for name, system in asked.items():
        try:
            made = maker.run(name)
        except PyseriniRepbertError as error:
            failed[name] = ' '.join(str(error).split())
            print(f'{collection.name}: {system.label} NOT RUN, {failed[name]}', file=sys.stderr)
            continue
        found[name] = evaluate(read_run(made.path), qrels, measures)
        weights |= made.weights
    return section_text(collection, asked, found, failed, weights, len(qrels), maker.precision), bool(failed)


def absent_files(collection: Collection) -> list[str]:
    """Which of the collection's files are neither there nor names of the catalog."""
    wanted = {'collections': collection.corpus, 'topics': collection.topics, 'qrels': collection.qrels}
    return [spec for kind, spec in wanted.items() if not (catalog.find(kind, spec) or Path(spec).exists())]


def section_text(
    collection: Collection,
    systems: Mapping[str, System],
    found: Mapping[str, Evaluation],
    failed: Mapping[str, str],
    weights: Mapping[str, str],
    n_judged: int,
    precision: str = 'fp32',
) -> str:
    """Tables of means and of differences, and what is missing."""
    reranked = [system for system in systems.values() if system.kind in (Kind.RERANK, Kind.PAIRS, Kind.REPLAY)]
    stages = (
        f' Rerankers take the best {collection.depth} of BM25, duoBERT the best {DUO_DEPTH} of monoBERT; the rest '
        'stays below.'
    )
    rounded = ' Rerankers ran in bfloat16.' if reranked and precision != 'fp32' else ''
    text = f'{n_judged} judged topics.{stages if reranked else ""} {collection.note}{rounded}\n'
    if found:
        text += '\n' + means_table(systems, found, collection.measures) + '\n'
    if rows := comparisons(systems, found):
        text += (
            '\nDifferences, with p of the paired t-test (two-sided, over topics, not corrected for several '
            f'comparisons):\n\n{differences_table(systems, rows, collection.measures)}\n'
        )
    if weights:
        shown = ', '.join(f'{name} {sha256[:12]}' for name, sha256 in weights.items())
        text += f'\nWeights (sha256, with those of the base): {shown}.\n'
    for why in dict.fromkeys(failed.values()):
        missing = '; '.join(systems[name].label for name in failed if failed[name] == why)
        text += f'\n**Not run**: {missing}. {why[0].upper()}{why[1:]}.\n'
    return text


def means_table(systems: Mapping[str, System], found: Mapping[str, Evaluation], measures: Sequence[str]) -> str:
    """A table of means with a row for each run."""
    rows = [
        [systems[name].label, *(f'{own.means[measure]:.4f}' for measure in measures)] for name, own in found.items()
    ]
    return markdown(['run', *measures], rows)


def comparisons(
    systems: Mapping[str, System], found: Mapping[str, Evaluation]
) -> dict[tuple[str, str], list[Comparison]]:
    """(run, baseline) -> their comparison in each measure, for every pair whose runs are both there."""
    return {
        (name, other): compare(found[other], found[name])
        for name in found
        for other in systems[name].against
        if other in found
    }


def differences_table(
    systems: Mapping[str, System], rows: Mapping[tuple[str, str], Sequence[Comparison]], measures: Sequence[str]
) -> str:
    """A table of differences with a row for each pair of runs: '+0.0391 (p 0.0077)'."""
    lines = [
        [
            systems[name].label,
            systems[other].label,
            *(f'{own.difference:+.4f} (p {own.p:.2g})' for own in compared),
        ]
        for (name, other), compared in rows.items()
    ]
    return markdown(['run', 'against', *measures], lines)


def write_page(path: Path, sections: Mapping[str, str]) -> None:
    """Replace the sections between their markers; a page that is not there is begun with a heading for each.

    Raises InputError where a page has no markers for a section; the page is then as it was.
    """
    text = path.read_text(encoding='utf-8') if path.exists() else None
    if text is None:
        blocks = (f'\n## {one.title}\n\n{_marker(one.name)}\n{END}\n' for one in COLLECTIONS)
        text = HEAD + ''.join(blocks)
    for name, content in sections.items():
        before, marker, rest = text.partition(f'{_marker(name)}\n')
        _, end, after = rest.partition(END)
        if not (marker and end):
            raise InputError(f"{path} has no '{_marker(name)}' that is followed by '{END}': put them where it belongs")
        text = f'{before}{marker}\n{content}\n{end}{after}'
    with atomic_file(path) as stream:
        stream.write(text)


def _marker(name: str) -> str:
    return f'<!-- results {name} -->'


def _parser() -> Parser:
    depths = ', '.join(f'{one.name}={one.depth}' for one in COLLECTIONS)
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--data', required=True, help='the folder that holds medquad/, cacm/ and vaswani/')
    parser.add_argument('--work', required=True, help='where runs and indexes are kept')
    parser.add_argument('--only', metavar='NAMES', help='collections, separated by commas; default: all')
    parser.add_argument('--systems', metavar='NAMES', help=f'rows of the tables, e.g. {BM25},repbert-demo,interleave')
    parser.add_argument('--depth', action='append', default=[], metavar='NAME=K', help=f'for reranking: {depths}')
    parser.add_argument(
        '--checkpoints',
        nargs='+',
        default=[],
        metavar='NAME=FOLDER',
        help="folders instead of the catalog's checkpoints, or further rerankers",
    )
    parser.add_argument('--precision', choices=('fp32', 'bf16'), default='fp32', help='of rerankers')
    parser.add_argument('--page', default=str(PAGE), help='the page whose tables are made')
    return parser


if __name__ == '__main__':
    sys.exit(run(main))
