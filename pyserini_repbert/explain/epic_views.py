"""An explanation of EPIC as terminal text, as JSON and as a page: the darker a term, the greater its weight."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence

from pyserini_repbert.explain.epic import Explanation, Weighted

_SHADES = (255, 254, 252, 194, 157, 120, 83, 46)  # backgrounds of xterm's 256 colours, from white to green
_STYLE = """
body { font: 15px/1.7 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222 }
h2 { font-size: 1em; margin: 1.5em 0 .4em }
span { padding: .1em .25em; border-radius: .2em; margin-right: .15em; display: inline-block }
td, th { text-align: right; padding: .1em .8em } td:first-child, th:first-child { text-align: left }
"""


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
    """For a terminal: shaded terms with `colours`, else each term with its weight."""
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
    """A page of its own, without links to anything."""
    parts = [f'<h1>{html.escape(query) or "(empty query)"}</h1>', f'<p>score {explanation.score:.4f}']
    if explanation.quality is not None:
        parts.append(f', passage quality {explanation.quality:.4f}')
    parts.append('</p>')
    for title, terms in _sections(explanation):
        strongest = _strongest(terms)
        spans = [
            f'<span style="background: rgba(40, 160, 70, {max(term.weight, 0) / strongest:.3f})" '
            f'title="{term.weight:.4f}">{html.escape(term.term)}</span>'
            for term in terms
        ]
        parts.append(f'<h2>{html.escape(title)}</h2><p>{"".join(spans)}</p>')
    rows = [
        f'<tr><td>{html.escape(part.term)}</td><td>{part.query_weight:.4f}</td><td>{part.passage_weight:.4f}</td>'
        f'<td>{part.contribution:.4f}</td></tr>'
        for part in explanation.contributions
    ]
    head = '<tr><th>term</th><th>query</th><th>passage</th><th>product</th></tr>'
    parts.append(f'<h2>contributions to the score</h2><table>{head}{"".join(rows)}</table>')
    title = html.escape(f'EPIC: {query}')
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f'</head><body>{"".join(parts)}</body></html>\n'
    )


def _sections(explanation: Explanation) -> list[tuple[str, Sequence[Weighted]]]:
    """What is shown as lines of terms."""
    expansions = 'strongest terms that the passage does not contain'
    found: list[tuple[str, Sequence[Weighted]]] = [('query', explanation.query)]
    if explanation.passage:
        return [*found, ('passage', explanation.passage), (expansions, explanation.expansions)]
    return [*found, ('strongest terms' if explanation.quality is None else expansions, explanation.expansions)]


def _strongest(terms: Sequence[Weighted]) -> float:
    return max((term.weight for term in terms), default=0.0) or 1.0


def _plain_line(terms: Sequence[Weighted]) -> str:
    return '  '.join(f'{term.term} {term.weight:.3f}' for term in terms) or '(none)'


def _shaded_line(terms: Sequence[Weighted]) -> str:
    strongest = _strongest(terms)
    shades = [_SHADES[min(int(max(term.weight, 0) / strongest * len(_SHADES)), len(_SHADES) - 1)] for term in terms]
    cells = [f'\x1b[30;48;5;{shade}m{_printable(term.term)}\x1b[0m' for term, shade in zip(terms, shades, strict=True)]
    return ' '.join(cells) or '(none)'


def _printable(text: str) -> str:
    return ''.join(character if character.isprintable() else '�' for character in text)
