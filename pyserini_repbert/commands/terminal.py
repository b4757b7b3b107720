"""Hits shown to a person: rank, score, docid and the passage, wrapped to the terminal's width."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyserini_repbert.commands.command import printable
from pyserini_repbert.ranking import Ranking

if TYPE_CHECKING:
    from pyserini_repbert.explain.hits import HitReasons

_INDENT = '      '
_LINES = 4


def shown_hits(query: str, hits: Ranking, reasons: Sequence[HitReasons] = ()) -> str:
    """The query and its hits as lines of text, each hit's reasons below it; a passage is cut to a few lines."""
    width = max(40, min(shutil.get_terminal_size().columns, 110))
    lines = [f'? {printable(query)}']
    if not hits:
        lines.append('   no hits')
    for rank, hit in enumerate(hits, 1):
        lines.append(f'{rank:4d}. {printable(hit.docid)}  ({hit.score:.4f})')
        if hit.text is not None:
            text = printable(hit.text)
            wrapped = textwrap.wrap(text, width - len(_INDENT), max_lines=_LINES, placeholder=' …')
            lines += [_INDENT + line for line in wrapped]
        if reasons:
            lines += [_INDENT + line for line in said_reasons(reasons[rank - 1])]
    return '\n'.join(lines)


def said_reasons(reasons: HitReasons) -> list[str]:
    """A hit's reasons as lines: 'ranks: repbert-demo 1, bm25 -', then 'why: …' if a reranker gave one."""
    ranks = ', '.join(f'{name} {rank}' for name, rank in reasons.ranks)
    return [f'ranks: {ranks}', *([f'why: {reasons.reranker}'] if reasons.reranker else [])]
