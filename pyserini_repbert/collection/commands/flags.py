"""Flags of several actions of `index` for collections."""

from __future__ import annotations

import argparse

from pyserini_repbert.commands import command
from pyserini_repbert.commands.flags import add_flags
from pyserini_repbert.lucene.languages import LANGUAGES


def add_index_flag(parser: argparse.ArgumentParser) -> None:
    """The flag that names a collection."""
    parser.add_argument('--index', required=True, help='a collection')


def add_settings(parser: argparse.ArgumentParser, takes_ray: bool = True) -> None:
    """The flags that say how a collection is encoded and cut; with `takes_ray`, also where."""
    add = parser.add_argument
    stored = 'default: as the collection has it, first'
    add(
        '--encoder',
        help=f"catalog name or checkpoint folder; {stored} 'minilm', which knows English, or for "
        "documents in other languages 'e5-small', if it is installed",
    )
    add('--passage-tokens', type=command.positive_int, help=f'wordpieces a passage; {stored} 200')
    add(
        '--overlap',
        type=command.zero_or_more,
        help=f'wordpieces that the next passage repeats; {stored} 40',
    )
    add(
        '--language',
        choices=LANGUAGES,
        metavar='CODE',
        help=f"of the documents, for Lucene's analyzer: {', '.join(LANGUAGES)}; {stored} the "
        'language of the first documents if it is clear, otherwise en',
    )
    add(
        '--sparse',
        metavar='bm25|none|MODEL',
        help="'none' leaves out Lucene's index; a SparseEncoder folder or an EPIC checkpoint ranks "
        f"instead of BM25; {stored} 'bm25'",
    )
    add(
        '--multi-vector',
        metavar='none|FOLDER',
        help='a MultiVectorEncoder (ColBERT), or what `train` made of the system multi-vector: its '
        'token vectors are stored beside dense ones, and '
        f"order the best 1,000 hits; {stored} 'none'",
    )
    precisions = ('float32', 'bfloat16', 'float16', 'auto')
    add('--precision', choices=precisions, help=f'what the encoder computes in; {stored} float32')
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
