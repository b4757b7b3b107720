"""An explanation of EPIC as terminal text or an HTML page: the darker a term, the greater its weight."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.evaluate.pages import page
from pyserini_repbert.explain.epic import Explanation, Weighted

_SHADES = (255, 254, 252, 194, 157, 120, 83, 46)  # backgrounds of xterm's 256 colours, from white to green


def as_text(explanation: Explanation, colours: bool) -> str:
    """The explanation for a terminal: terms are shaded with `colours`, else followed by their weights."""
    quality = '' if explanation.quality is None else f', passage quality {explanation.quality:.4f}'
    lines = [f'score {explanation.score:.4f}{quality}']
    for title, terms in _sections(explanation):
        lines += ['', f'{title}:', _shaded_line(terms) if colours else _plain_line(terms)]
    lines += ['', f'{"term":20} {"query":>9} {"passage":>9} {"product":>9}']
    lines += [
        f'{part.term:20} {part.query_weight:9.4f} {part.passage_weight:9.4f} {part.contribution:9.4f}'
        for part in explanation.contributions
    ]
    return '\n'.join(lines)


def as_html(query: str, explanation: Explanation) -> str:
    """The explanation and its query as a self-contained HTML page."""
    sections = [(title, list(zip(terms, _shares(terms), strict=True))) for title, terms in _sections(explanation)]
    return page('epic', query=query, explanation=explanation, sections=sections)


def _sections(explanation: Explanation) -> list[tuple[str, Sequence[Weighted]]]:
    """(title, terms) of the lines of terms."""
    what = 'strongest terms' + ('' if explanation.quality is None else ' that the passage does not contain')
    passage = [('passage', explanation.passage)] if explanation.passage else []
    return [('query', explanation.query), *passage, (what, explanation.expansions)]


def _shares(terms: Sequence[Weighted]) -> list[float]:
    """Each weight as a share of the greatest, 0 to 1."""
    strongest = max((term.weight for term in terms), default=0.0) or 1.0
    return [max(term.weight, 0) / strongest for term in terms]


def _plain_line(terms: Sequence[Weighted]) -> str:
    return '  '.join(f'{term.term} {term.weight:.3f}' for term in terms) or '(none)'


def _shaded_line(terms: Sequence[Weighted]) -> str:
    shades = [_SHADES[min(int(share * len(_SHADES)), len(_SHADES) - 1)] for share in _shares(terms)]
    words = (''.join(one if one.isprintable() else '\ufffd' for one in term.term) for term in terms)
    cells = [f'\x1b[30;48;5;{shade}m{word}\x1b[0m' for word, shade in zip(words, shades, strict=True)]
    return ' '.join(cells) or '(none)'
