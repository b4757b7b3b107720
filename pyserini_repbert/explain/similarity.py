"""CEDR's similarity matrices for inspection: which passage tokens are similar to a query token, layer by layer.

As values, a PNG file, or an HTML page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from pyserini_repbert import catalog
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.plots import new_figure, save_figure
from pyserini_repbert.evaluate.tables import page
from pyserini_repbert.files import StrPath, atomic_file
from pyserini_repbert.models.bert import Bert
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.cedr.layout import CedrLayout
from pyserini_repbert.models.cedr.ranker import gather_evidence
from pyserini_repbert.models.cedr.settings import SYSTEM, CedrSettings
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint, open_checkpoint
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.models.repbert import RepBert
from pyserini_repbert.models.tokenizer import WordPieceTokenizer


class SimilarityMap(NamedTuple):
    """The similarities of one layer."""

    layer: int  # 0 for the embedding output, l for layer l
    query: list[str]  # q wordpieces, as the model read them
    passage: list[str]  # d wordpieces
    values: NDArray[np.float32]  # (q, d), cosines (CEDR eq. 1)

    def window(self, start: int, width: int) -> SimilarityMap:
        """The map of `width` passage tokens from `start` on."""
        shown = slice(start, start + width)
        return self._replace(passage=self.passage[shown], values=self.values[:, shown])

    def best_window(self, width: int) -> int:
        """The start of the `width` consecutive passage tokens with the greatest sum of similarities; 0 if all fit."""
        if len(self.passage) <= width:
            return 0
        return int(np.argmax(np.convolve(self.values.sum(axis=0, dtype=np.float64), np.ones(width), 'valid')))

    def best_matches(self, k: int) -> list[list[tuple[str, int, float]]]:
        """For each query token, the `k` most similar passage tokens, most similar first; ties by position.

        Each is a token, its position from 0, and the cosine.
        """
        orders = np.argsort(-self.values, axis=1, kind='stable')[:, :k]
        return [
            [(self.passage[place], int(place), float(row[place])) for place in order]
            for row, order in zip(self.values, orders, strict=True)
        ]


class SimilarityModel:
    """The BERT of a CEDR checkpoint, or of any other: similarities need no head, and are always in float32."""

    def __init__(
        self, model: AnyCheckpoint, device: str = 'cpu', precision: Precision | str = Precision.FLOAT32
    ) -> None:
        self.device = usable_device(device)
        self.precision = Precision(precision).on(self.device)
        opened = open_checkpoint(model, 'encoders' if catalog.find('encoders', str(model)) else 'rerankers')
        ranking = opened.config.get('ranking', {})
        self.settings = CedrSettings.from_ranking(ranking) if ranking.get('system') == SYSTEM else CedrSettings()
        self.config = BertConfig.from_dict(opened.config)
        tensors = {name: value for name, value in opened.tensors().items() if name.startswith('bert.')}
        # A RepBert has no head, so only weights of the body are expected.
        bert = load_model(lambda: RepBert(self.config), opened, tensors=tensors).bert
        self.bert = bert.to(self.device, self.precision.dtype(self.device))
        self.tokenizer: WordPieceTokenizer = opened.tokenizer()
        self.layout = CedrLayout.of(self.config, self.settings, self.tokenizer)

    def maps(self, query: str, passage: str, layers: Sequence[int] | None = None) -> list[SimilarityMap]:
        """What `similarity_maps` gives."""
        return similarity_maps(self.bert, self.layout, self.tokenizer, query, passage, layers)


def similarity_maps(
    bert: Bert,
    layout: CedrLayout,
    tokenizer: WordPieceTokenizer,
    query: str,
    passage: str,
    layers: Sequence[int] | None = None,
) -> list[SimilarityMap]:
    """The similarity maps of a query and a passage, cut as CEDR cuts them; layer 0 is the embedding output."""
    last = bert.config.num_hidden_layers
    layers = range(last + 1) if layers is None else layers
    if strange := [layer for layer in layers if not 0 <= layer <= last]:
        raise InputError(f'layer {strange[0]} was asked for, expected 0 (embeddings) to {last}')
    pair = layout.cut(*tokenizer.ids([query, passage]))
    for what, ids in zip(('query', 'passage'), pair, strict=True):
        if not ids:
            raise InputError(f'the {what} has no words: there is nothing to compare')
    with torch.inference_mode():
        evidence = gather_evidence(bert, layout.collate([pair], next(bert.parameters()).device))
    values = evidence.similarity[0, :, : len(pair.query)].cpu().numpy()
    tokens = [tokenizer.tokens(ids) for ids in pair]
    return [SimilarityMap(layer, tokens[0], tokens[1], values[layer]) for layer in layers]


class Panel(NamedTuple):
    """A map with a title."""

    title: str
    map: SimilarityMap


def scales(panels: Sequence[Panel]) -> dict[int, tuple[float, float]]:
    """{layer: (least, greatest similarity)}: maps of the same layer share a scale, so that they can be compared."""
    ends: dict[int, list[float]] = {}
    for _, shown in panels:
        ends.setdefault(shown.layer, []).extend([float(shown.values.min()), float(shown.values.max())])
    return {layer: (min(extremes), max(extremes)) for layer, extremes in ends.items()}


def write_png(path: StrPath, panels: Sequence[Panel]) -> None:
    """Draw the maps below one another, as in CEDR Figure 1: the lighter, the more similar."""
    widest = max(len(panel.map.passage) for panel in panels)
    rows = sum(len(panel.map.query) + 5 for panel in panels)
    figure = new_figure(max(5.0, 2.5 + 0.24 * widest), 0.28 * rows + 0.5)
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    ranges = scales(panels)
    for axis, (title, shown) in zip(axes, panels, strict=True):
        low, high = ranges[shown.layer]
        image = axis.imshow(shown.values, cmap='viridis', aspect='auto', vmin=low, vmax=high)
        axis.set_xticks(range(len(shown.passage)), map(_plain, shown.passage), rotation=90)
        axis.set_yticks(range(len(shown.query)), map(_plain, shown.query))
        axis.set_title(_plain(title), loc='left', fontsize='medium')
        figure.colorbar(image, ax=axis, pad=0.01)
    save_figure(path, figure)


def _plain(text: str) -> str:
    """A text in which matplotlib does not read '$' as the beginning of a formula."""
    return text.replace('$', r'\$')


def write_html(path: StrPath, query: str, panels: Sequence[Panel]) -> None:
    """Write the maps as HTML tables: the darker, the more similar; each cell has its value as a tooltip."""
    ranges = scales(panels)
    tables = []
    for title, shown in panels:
        low, high = ranges[shown.layer]
        shares = (shown.values - low) / ((high - low) or 1.0)
        rows = list(zip(shown.query, shown.values.tolist(), shares.tolist(), strict=True))
        tables.append({'title': title, 'low': low, 'high': high, 'passage': shown.passage, 'rows': rows})
    with atomic_file(path) as stream:
        stream.write(page('similarity', query=query, panels=tables))
