"""An explanation of EPIC as terminal text, JSON or an HTML page: the darker a term, the greater its weight."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyserini_repbert.evaluate.pages import page
from pyserini_repbert.explain.epic import Explanation, Weighted

_SHADES = (255, 254, 252, 194, 157, 120, 83, 46)  # backgrounds of xterm's 256 colours, from white to green


def as_json(query: str, explanation: Explanation) -> str:
    """The explanation and its query as a JSON object."""
    content = {
        'query': query,
        'score': explanation.score,
        'quality': explanation.quality,
        'precision': explanation.precision,
        'query_terms': [term._asdict() for term in explanation.query],
        'passage_terms': [term._asdict() for term in explanation.passage],
        'expansions': [term._asdict() for term in explanation.expansions],
        'contributions': [part._asdict() for part in explanation.contributions],
    }
    return json.dumps(content, ensure_ascii=False, indent=1)


def as_text(explanation: Explanation, colours: bool) -> str:
    """The explanation for a terminal: terms are shaded with `colours`, else followed by their weights."""
    lines = [f'score {explanation.score:.4f}']
    if explanation.quality is not None:
        lines[0] += f', passage quality {explanation.quality:.4f}'
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
    expansions = 'strongest terms that the passage does not contain'
    found: list[tuple[str, Sequence[Weighted]]] = [('query', explanation.query)]
    if explanation.passage:
        return [*found, ('passage', explanation.passage), (expansions, explanation.expansions)]
    return [*found, ('strongest terms' if explanation.quality is None else expansions, explanation.expansions)]


def _shares(terms: Sequence[Weighted]) -> list[float]:
    """Each weight as a share of the greatest, 0 to 1."""
    strongest = max((term.weight for term in terms), default=0.0) or 1.0
    return [max(term.weight, 0) / strongest for term in terms]


def _plain_line(terms: Sequence[Weighted]) -> str:
    return '  '.join(f'{term.term} {term.weight:.3f}' for term in terms) or '(none)'


def _shaded_line(terms: Sequence[Weighted]) -> str:
    shades = [_SHADES[min(int(share * len(_SHADES)), len(_SHADES) - 1)] for share in _shares(terms)]
    cells = [f'\x1b[30;48;5;{shade}m{_printable(term.term)}\x1b[0m' for term, shade in zip(terms, shades, strict=True)]
    return ' '.join(cells) or '(none)'


def _printable(text: str) -> str:
    return ''.join(character if character.isprintable() else '�' for character in text)
