"""CEDR's models by document length against running their BERT alone, and DRMM's histogram against a
loop over rows.

    python benchmarks/cedr.py [--device cuda] [--lengths 100 200 400 800] [--hidden 768 --layers 12]

Weights and documents are random; all models share one BERT, and run over the same batches. BERT
alone runs the same sequences and computes no scores. Times are for tensors that are on the device
already, without tokenisation and batching; the shortest of several rounds, in which all take turns.
The loop counts all 20 rows of a query, as the released code does; our models leave out rows without
a token, and the time with all rows is printed, too.
"""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import figures
import torch
from figures import Figure
from rounds import best_times

from pyserini_repbert.commands.command import threads
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.systems.cedr.heads import (
    N_BINS,
    similarity_histogram,
)
from pyserini_repbert.systems.cedr.layout import (
    CedrLayout,
    Pair,
)
from pyserini_repbert.systems.cedr.loading import new_ranker
from pyserini_repbert.systems.cedr.network import CedrRanker
from pyserini_repbert.systems.cedr.settings import (
    Architecture,
    CedrSettings,
)

QUERY_LENGTH = 4  # as Robust04's titles
QUERY_ROWS = 20  # the released code counts empty places of a query too
HISTOGRAM_ROUNDS = 30  # more than of models, since they are short
GOAL_OVERHEAD = 0.25
GOAL_SPEEDUP = 20


def histogram_loop(
    similarity: torch.Tensor, query_mask: torch.Tensor, document_mask: torch.Tensor
) -> torch.Tensor:
    """DRMM's histogram, counted row by row on the CPU, as the released code does."""
    bins = ((similarity + 1.000001) / 2 * (N_BINS - 1)).int().cpu()
    weights = (query_mask[:, :, None] & document_mask[:, None, :]).float().cpu()
    pairs = []
    for own, weight in zip(bins, weights, strict=True):
        rows = [
            [torch.bincount(row, w, N_BINS) for row, w in zip(channel, weight, strict=True)]
            for channel in own
        ]
        pairs.append(torch.stack([torch.stack(row) for row in rows]))
    return torch.stack(pairs).to(similarity.device)


def on_device(device: str, run):  # type: ignore[no-untyped-def]
    """`run`, waiting for the device to finish."""

    def waiting() -> None:
        with torch.inference_mode():
            run()
        if device.startswith('cuda'):
            torch.cuda.synchronize(device)

    return waiting


def models(config: BertConfig, device: str) -> dict[str, CedrRanker]:
    """One model of each architecture, around one BERT."""
    made = {name: new_ranker(config, CedrSettings(name)).to(device).eval() for name in Architecture}
    for model in made.values():
        model.bert = made[Architecture.VANILLA].bert
    return made


def histogram_speedup(options: argparse.Namespace, length: int) -> float:
    """How many times faster our histogram is than the loop at a document length; prints times,
    with all rows too.
    """
    device = options.device
    n = options.documents
    padded = torch.rand((n, options.layers + 1, QUERY_ROWS, length), device=device) * 2 - 1
    real = padded[:, :, :QUERY_LENGTH].contiguous()
    query_mask = torch.arange(QUERY_ROWS, device=device).expand(n, QUERY_ROWS) < QUERY_LENGTH
    document_mask = torch.ones(n, length, dtype=torch.bool, device=device)
    own_mask = query_mask[:, :QUERY_LENGTH]
    theirs = histogram_loop(padded, query_mask, document_mask)
    if not torch.equal(similarity_histogram(padded, query_mask, document_mask), theirs):
        raise SystemExit('the histograms differ')
    counting = {
        'ours': on_device(device, lambda: similarity_histogram(real, own_mask, document_mask)),
        'ours, all rows': on_device(
            device, lambda: similarity_histogram(padded, query_mask, document_mask)
        ),
        'loop': on_device(device, lambda: histogram_loop(padded, query_mask, document_mask)),
    }
    times = best_times(counting, HISTOGRAM_ROUNDS)
    print(
        f'histograms, length {length}: '
        + ', '.join(f'{name} {1000 * s:.2f} ms' for name, s in times.items())
    )
    own, _, loop = times.values()
    return loop / own


def main() -> None:
    """Print documents a second, the histogram's times, and the ratios last."""
    parser = figures.parser(__doc__)
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--lengths', type=int, nargs='+', default=[100, 200, 400, 800])
    parser.add_argument('--documents', type=int, default=4, help='in a batch')
    parser.add_argument('--hidden', type=int, default=768, help="BERT's hidden size; 64 a head")
    parser.add_argument('--layers', type=int, default=12)
    parser.add_argument('--rounds', type=int, default=2)
    parser.add_argument('--threads', type=threads, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    device = options.device
    config = BertConfig(
        hidden_size=options.hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=options.hidden // 64,
        intermediate_size=4 * options.hidden,
    )
    made = models(config, device)
    bert = made[Architecture.VANILLA].bert
    layout = CedrLayout(config, CedrSettings(), SimpleNamespace(cls=101, sep=102, pad=0))
    size = (
        f'{options.layers} layers of {options.hidden}, {options.documents} documents a batch, '
        f'on {device}'
    )
    print(f'documents/s, {size}')
    print(f'{"length":>8} {"BERT alone":>12}' + ''.join(f'{name:>18}' for name in made))
    worst = dict.fromkeys(made, 0.0)
    for length in options.lengths:
        tokens = torch.randint(
            1000, config.vocab_size, (options.documents, QUERY_LENGTH + length)
        ).tolist()
        pairs = [layout.cut(ids[:QUERY_LENGTH], ids[QUERY_LENGTH:]) for ids in tokens]
        batch = layout.collate([Pair(*pair) for pair in pairs], device)

        def alone(batch=batch) -> None:  # type: ignore[no-untyped-def]
            for _ in bert.each_layer(
                batch.input_ids, batch.token_type_ids, batch.attention_mask, batch.position_ids
            ):
                pass

        contenders = {'alone': on_device(device, alone)}
        contenders |= {
            name: on_device(device, lambda m=model, b=batch: m(b)) for name, model in made.items()
        }
        times = best_times(contenders, options.rounds)
        cells = [f'{options.documents / times["alone"]:12.2f}']
        for name in made:
            overhead = times[name] / times['alone'] - 1
            worst[name] = max(worst[name], overhead)
            cells.append(f'{options.documents / times[name]:10.2f} ({overhead:+4.0%})')
        print(f'{length:>8} {" ".join(cells)}')
    speedups = [histogram_speedup(options, length) for length in options.lengths]
    told = [
        Figure(
            f'CEDR {name}, time beyond BERT alone, worst length',
            100 * over,
            '%',
            100 * GOAL_OVERHEAD,
            at_most=True,
        )
        for name, over in worst.items()
    ]
    told += [
        Figure(f'histogram, length {length}: a loop', ratio, 'x', GOAL_SPEEDUP)
        for length, ratio in zip(options.lengths, speedups, strict=True)
    ]
    figures.tell(options, told)


if __name__ == '__main__':
    main()
