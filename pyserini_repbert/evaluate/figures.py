"""Figures as PNG, PDF or SVG files, drawn by matplotlib, which is an extra of the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyserini_repbert.errors import InputError, needs
from pyserini_repbert.files import StrPath, atomic_file

_METADATA: dict[str, dict[str, None]] = {
    'png': {'Software': None},
    'pdf': {'CreationDate': None},
    'svg': {'Date': None},
}


def figure_format(path: StrPath) -> str:
    """'png', 'pdf' or 'svg', by a file's extension; 'png' where it has none. Raises InputError for others."""
    suffix = Path(path).suffix.lower().removeprefix('.') or 'png'
    if suffix not in _METADATA:
        raise InputError(f"figure {path}: '.{suffix}' is not a format that is drawn here, expected .png, .pdf or .svg")
    return suffix


def require_matplotlib(purpose: str = 'a plot') -> None:
    """Raises MissingDependencyError, before any work is done, where matplotlib is not installed."""
    with needs('matplotlib', purpose, 'plots'):
        import matplotlib  # noqa: F401


def new_figure(width: float, height: float) -> Any:
    """An empty figure of a size in inches, which needs no display."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout='constrained')
    FigureCanvasAgg(figure)
    return figure


def save_figure(path: StrPath, figure: Any) -> None:
    """Write a file in the format of its name, atomically; the same figure gives the same bytes."""
    from matplotlib import rc_context

    drawn = figure_format(path)
    with rc_context({'svg.hashsalt': 'pyserini_repbert'}), atomic_file(path, 'wb') as stream:
        figure.savefig(stream, format=drawn, dpi=120, metadata=_METADATA[drawn])
