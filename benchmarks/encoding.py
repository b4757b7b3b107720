"""Encoding passages: ours against sentence-transformers, with the same weights and threads, at MS
MARCO's lengths.

pip install sentence-transformers
python benchmarks/encoding.py [--passages 600] [--threads 2]
"""

from __future__ import annotations

import os
import random

import figures
import numpy as np
import torch
from figures import Figure
from rounds import best_times

from pyserini_repbert import catalog
from pyserini_repbert.commands.command import threads
from pyserini_repbert.encode import document_encoder
from pyserini_repbert.models.precision import has_native_bfloat16
from pyserini_repbert.names.corpora import open_corpus

# log-normal: mean 55 words, as MS MARCO's passages (Multi-Stage section 4.1)
MEAN_LOG_WORDS = 3.93
SPREAD = 0.4


def texts_of_msmarco_lengths(n: int) -> list[str]:
    """Stretches of the demo collection's words with MS MARCO's spread of lengths."""
    words = [word for passage in open_corpus('demo') for word in passage.text.split()]
    dice = random.Random(0)
    texts = []
    for _ in range(n):
        length = max(10, min(170, int(dice.lognormvariate(MEAN_LOG_WORDS, SPREAD))))
        start = dice.randrange(len(words) - length)
        texts.append(' '.join(words[start : start + length]))
    return texts


def main() -> None:
    """Time both at equal precision, and ours with --precision auto, and print ratios."""
    parser = figures.parser(__doc__, ['sentence_transformers'])
    parser.add_argument('--passages', type=int, default=600)
    parser.add_argument('--threads', type=threads, default=os.cpu_count())
    parser.add_argument('--rounds', type=int, default=2)
    options = parser.parse_args()
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(options.threads)
    texts = texts_of_msmarco_lengths(options.passages)
    entry = catalog.get('encoders', 'minilm')
    peer = SentenceTransformer(str(catalog.package_folder(entry)), device='cpu')
    ours = document_encoder('minilm')
    auto = document_encoder('minilm', precision='auto')
    times = best_times(
        {
            'sentence-transformers, float32': lambda: peer.encode(texts, show_progress_bar=False),
            'ours, float32': lambda: ours.encode(texts),
            'ours, --precision auto': lambda: auto.encode(texts),
        },
        options.rounds,
    )
    words = np.mean([len(text.split()) for text in texts])
    print(
        f'{len(texts)} passages of {words:.0f} words on average, {options.threads} threads, '
        f'MiniLM (6 layers, 384)'
    )
    for name, seconds in times.items():
        print(f'  {name:38s} {len(texts) / seconds:7.1f} passages/s')
    native = has_native_bfloat16(torch.device('cpu'))
    exact = ours.encode(texts[:100])
    change = (
        abs(exact @ exact.T - auto.encode(texts[:100]) @ exact.T).max() / abs(exact @ exact.T).max()
    )
    print(
        f'  native bfloat16 on this CPU: {native}; largest change of a score by --precision auto: '
        f'{change:.1e}'
    )
    peer_time, own_time, auto_time = times.values()
    figures.tell(
        options,
        [
            Figure(
                'encoding, float32: sentence-transformers',
                peer_time / own_time,
                'x',
                1.3,
            ),
            Figure(
                'encoding, --precision auto: sentence-transformers, float32', peer_time / auto_time
            ),
        ],
    )


if __name__ == '__main__':
    main()
