"""Figures as PNG files, drawn by matplotlib, which is an extra of the package."""

from __future__ import annotations

from typing import Any

from pyserini_repbert.errors import needs
from pyserini_repbert.files import StrPath, atomic_file


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
    """Write a PNG file, atomically; the same figure gives the same bytes."""
    with atomic_file(path, 'wb') as stream:
        figure.savefig(stream, format='png', dpi=120, metadata={'Software': None})
