"""Flags of several actions of `index` for collections."""

from __future__ import annotations

import argparse

from pyserini_repbert.collection.model_options import BM25, NONE, SPARSE
from pyserini_repbert.commands import command
from pyserini_repbert.commands.flags import add_flags
from pyserini_repbert.extension import representations
from pyserini_repbert.lucene.languages import LANGUAGES


def add_index_flag(parser: argparse.ArgumentParser) -> None:
    """The flag that names a collection."""
    parser.add_argument('--index', required=True, help='a collection')


def add_settings(parser: argparse.ArgumentParser, takes_ray: bool = True) -> None:
    """The flags that say how a collection is encoded and cut; with `takes_ray`, also where."""
    add = parser.add_argument
    stored = "default: the collection's; for a new one"
    add(
        '--encoder',
        help=f"catalog name or checkpoint folder; {stored} 'minilm', which knows English, or for "
        "documents in other languages 'e5-small', if it is installed",
    )
    add(
        '--passage-tokens', type=command.positive_int, help=f'wordpieces in a passage; {stored} 200'
    )
    add(
        '--overlap',
        type=command.zero_or_more,
        help=f'wordpieces that a passage repeats from the one before; {stored} a fifth of '
        '--passage-tokens',
    )
    add(
        '--language',
        choices=LANGUAGES,
        metavar='CODE',
        help=f"language of the documents, for Lucene's analyzer: {', '.join(LANGUAGES)}; {stored} "
        'the language of the first documents if it is clear, otherwise en',
    )
    _add_models(parser, stored)
    precisions = ('float32', 'bfloat16', 'float16', 'auto')
    add('--precision', choices=precisions, help=f'number format of the encoder; {stored} float32')
    add(
        '--truncate-dim',
        type=command.positive_int,
        metavar='N',
        help=f'keep the first N values of each vector; {stored} all',
    )
    add(
        '--store',
        dest='dtype',
        choices=('float32', 'float16', 'int8'),
        help=f'the type of stored vectors; {stored} float32',
    )
    add_flags(parser, 'device', 'threads', 'offline')
    if takes_ray:
        add_flags(parser, 'ray')


def _add_models(parser: argparse.ArgumentParser, stored: str) -> None:
    """`--sparse`, which takes 'bm25' and 'none', and the flags of further models.

    `stored` is the help of a default.
    """
    metavar = f'{BM25}|{NONE}'
    says = "'none' leaves out Lucene's index"
    others = []
    for kind in representations():
        if kind.option == SPARSE:
            metavar = f'{metavar}|{kind.metavar}'
            says = f'{says}; {kind.help}'
        else:
            others.append(kind)
    parser.add_argument('--sparse', metavar=metavar, help=f"{says}; {stored} 'bm25'")
    for kind in others:
        parser.add_argument(
            f'--{kind.option.replace("_", "-")}',
            metavar=f'none|{kind.metavar}',
            help=f"{kind.help}; {stored} 'none'",
        )
