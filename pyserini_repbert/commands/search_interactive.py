"""`search --interactive`: questions at a prompt with a history; hits in a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands.terminal import said_reasons
from pyserini_repbert.errors import PyseriniRepbertError, needs

if TYPE_CHECKING:
    from pyserini_repbert.explain.hits import HitReasons
    from pyserini_repbert.ranking import Ranking

Answer = Callable[[str], 'tuple[Ranking, Sequence[HitReasons]]']
_PURPOSE = 'search --interactive'


def ask(answer: Answer, session: Any = None, console: Any = None) -> None:
    """Answer the questions that are typed, until Ctrl-D, Ctrl-C or an empty line; errors are printed.

    Parameters
    ----------
    answer : gives the hits of a question, and the reasons of each
    session, console : of prompt_toolkit and rich; default: new ones for this terminal

    Raises
    ------
    MissingDependencyError
        without prompt_toolkit or rich
    """
    session, console = session or _session(), console or _console()
    while True:
        try:
            query = session.prompt('? ').strip()
        except (EOFError, KeyboardInterrupt):
            return
        if not query:
            return
        try:
            hits, reasons = answer(query)
        except PyseriniRepbertError as error:
            console.print(f'error: {error}', markup=False)
            continue
        console.print(_table(hits, reasons))


def _table(hits: Ranking, reasons: Sequence[HitReasons]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(caption=None if len(hits) else 'no hits')
    for name, side in (('', 'right'), ('docid', 'left'), ('score', 'right'), ('passage, and why', 'left')):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    for rank, (hit, own) in enumerate(zip(hits, reasons, strict=True), 1):
        passage = Text(' '.join((hit.text or '').split()))
        for line in said_reasons(own):
            passage.append(f'\n{line}', style='dim')
        table.add_row(str(rank), Text(hit.docid), f'{hit.score:.4f}', passage)
    return table


def _session() -> Any:
    with needs('prompt_toolkit', _PURPOSE, 'terminal'):
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory
    from pyserini_repbert.files import cache_folder

    cache_folder().mkdir(parents=True, exist_ok=True)
    return PromptSession(history=FileHistory(str(cache_folder() / 'search_history')))


def _console() -> Any:
    with needs('rich', _PURPOSE, 'terminal'):
        from rich.console import Console
    return Console()
