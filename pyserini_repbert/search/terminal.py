"""Hits shown to a person: rank, score, docid and the passage, wrapped to the terminal's width."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

from pyserini_repbert.ranking import Candidate

_INDENT = '      '
_LINES = 4


def shown_hits(query: str, hits: Sequence[Candidate], texts: Sequence[str | None]) -> str:
    """The query and its hits as lines of text; a passage is cut to a few lines."""
    width = max(40, min(shutil.get_terminal_size().columns, 110))
    lines = [f'? {query}']
    if not hits:
        lines.append('   no hits')
    for rank, (hit, text) in enumerate(zip(hits, texts, strict=True), 1):
        lines.append(f'{rank:4d}. {hit.docid}  ({hit.score:.4f})')
        if text is not None:
            wrapped = textwrap.wrap(' '.join(text.split()), width - len(_INDENT), max_lines=_LINES, placeholder=' …')
            lines += [_INDENT + line for line in wrapped]
    return '\n'.join(lines)
