"""Reranking: ours against CrossEncoder.predict and against one pair at a time; duoBERT, ONNX
Runtime, half precision.

pip install sentence-transformers onnx onnxscript
python benchmarks/rerank.py [--queries 4] [--candidates 60] [--threads 2] [--rounds 2] [--budgets
1024 2048 4096]

The weights are MiniLM's (6 layers, 384) under a random classifier: speed does not depend on
what it learned, and orders are compared on real text.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import figures
import numpy as np
import torch
from encoding import texts_of_msmarco_lengths
from figures import Figure
from rounds import best_times
from safetensors.torch import load_file, save_file

from pyserini_repbert import catalog
from pyserini_repbert.commands.command import threads
from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.models.precision import has_native_bfloat16
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import DuoBertReranker, MonoBertReranker

LAYOUT = 'pygaggle_fast_tokenizer'  # as CrossEncoder builds its inputs, so that all read the same
TOP = 10


def checkpoint(folder: Path, system: str) -> Path:
    """A checkpoint of MiniLM's body and pooler with a seeded classifier of one label, as
    CrossEncoder takes it.
    """
    source = catalog.package_folder(catalog.get('encoders', 'minilm'))
    target = folder / system
    target.mkdir()
    for name in ('vocab.txt', 'tokenizer.json', 'tokenizer_config.json', 'special_tokens_map.json'):
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    config = json.loads((source / 'config.json').read_text(encoding='utf-8'))
    config |= {'architectures': ['BertForSequenceClassification'], 'id2label': {'0': 'LABEL_0'}}
    config |= {'label2id': {'LABEL_0': 0}, 'ranking': {'system': system}}
    (target / 'config.json').write_text(json.dumps(config), encoding='utf-8')
    tensors = {
        f'bert.{name}': value for name, value in load_file(source / 'model.safetensors').items()
    }
    tensors = {
        name: value.contiguous() for name, value in tensors.items() if 'position_ids' not in name
    }
    torch.manual_seed(0)
    tensors |= {
        'classifier.weight': torch.randn(1, config['hidden_size']),
        'classifier.bias': torch.zeros(1),
    }
    save_file(tensors, target / 'model.safetensors', metadata={'format': 'pt'})
    return target


def changed_orders(
    exact: list[np.ndarray], other: list[np.ndarray]
) -> tuple[float, int, int, float]:
    """Share of queries whose best 10 change, ties before and after, largest change of a score
    (log p).
    """
    best = [[np.argsort(-scores)[:TOP].tolist() for scores in lists] for lists in (exact, other)]
    changed = [one != two for one, two in zip(*best, strict=True)]
    ties = [
        sum(len(scores) - len(np.unique(scores)) for scores in lists) for lists in (exact, other)
    ]
    most = max(float(np.abs(a - b).max()) for a, b in zip(exact, other, strict=True))
    return float(np.mean(changed)), *ties, most


def main() -> None:
    """Print pairs a second, and ratios."""
    parser = figures.parser(__doc__, ['sentence_transformers', 'onnx', 'onnxscript', 'onnxruntime'])
    parser.add_argument('--queries', type=int, default=4)
    parser.add_argument('--candidates', type=int, default=60)
    parser.add_argument('--threads', type=threads, default=os.cpu_count())
    parser.add_argument('--rounds', type=int, default=2)
    parser.add_argument(
        '--budgets', type=int, nargs='*', default=[], help='tokens in a batch, 1024 2048 4096 say'
    )
    options = parser.parse_args()
    from sentence_transformers import CrossEncoder

    torch.set_num_threads(options.threads)
    n = options.queries * options.candidates
    texts = texts_of_msmarco_lengths(n)
    queries = [query.text for query in read_topics(catalog.file('topics', 'demo') or '')][
        : options.queries
    ]
    step = options.candidates
    lists = [
        [
            Candidate(f'd{place}', 0.0, text)
            for place, text in enumerate(texts[i * step : (i + 1) * step])
        ]
        for i in range(len(queries))
    ]
    pairs = [
        (query, item.text) for query, items in zip(queries, lists, strict=True) for item in items
    ]
    with tempfile.TemporaryDirectory() as folder:
        mono_folder = checkpoint(Path(folder), 'monobert')
        duo_folder = checkpoint(Path(folder), 'duobert')
        peer = CrossEncoder(str(mono_folder), device='cpu', max_length=512)
        ours = MonoBertReranker(mono_folder, layout=LAYOUT)
        auto = MonoBertReranker(mono_folder, layout=LAYOUT, precision='auto')
        budgets = {
            size: MonoBertReranker(mono_folder, layout=LAYOUT, token_budget=size)
            for size in options.budgets
        }
        onnx = MonoBertReranker(mono_folder, layout=LAYOUT, backend='onnx')
        int8 = MonoBertReranker(mono_folder, layout=LAYOUT, backend='onnx-int8')
        duo = DuoBertReranker(duo_folder)
        few = [items[: int(step**0.5) + 1] for items in lists]
        joined = [
            [
                Candidate(f'{one.docid}-{other.docid}', 0.0, f'{one.text} {other.text}')
                for one in items
                for other in items
                if one is not other
            ]
            for items in few
        ]
        ordered = sum(map(len, joined))

        def one_at_a_time() -> None:
            with torch.inference_mode():
                for query, text in pairs:
                    peer.model(**peer.tokenizer(query, text, truncation=True, return_tensors='pt'))

        times = best_times(
            {
                'peer': lambda: peer.predict(pairs, show_progress_bar=False),
                'single': one_at_a_time,
                'ours': lambda: ours.score_lists(queries, lists),
                'auto': lambda: auto.score_lists(queries, lists),
                **{
                    f'budget {size}': lambda size=size: budgets[size].score_lists(queries, lists)
                    for size in budgets
                },
                'onnx': lambda: onnx.score_lists(queries, lists),
                'int8': lambda: int8.score_lists(queries, lists),
                'duo': lambda: duo.score_lists(queries, few),
                'mono, as long': lambda: ours.score_lists(queries, joined),
            },
            options.rounds,
        )
        words = np.mean([len(text.split()) for text in texts])
        print(
            f'{len(queries)} queries x {step} candidates of {words:.0f} words on average, '
            f'{options.threads} threads'
        )
        labels = {
            'peer': 'CrossEncoder.predict, float32',
            'single': 'one pair at a time, float32',
            'ours': 'ours, float32',
            'auto': 'ours, --precision auto',
            'onnx': 'ours on ONNX Runtime, float32',
            'int8': 'ours on ONNX Runtime, int8',
            'duo': f'duoBERT, {ordered} ordered pairs',
            'mono, as long': 'monoBERT, inputs as long as these',
        }
        for name, seconds in times.items():
            count = ordered if name in ('duo', 'mono, as long') else n
            label = labels.get(name, f'ours, batches of {name.split()[-1]} tokens')
            print(f'  {label:40s} {count / seconds:7.1f} pairs/s')
        exact = ours.score_lists(queries, lists)
        half = MonoBertReranker(mono_folder, layout=LAYOUT, precision='bfloat16')
        fp16 = MonoBertReranker(mono_folder, layout=LAYOUT, precision='float16')
        for name, other in (
            ('onnx float32', onnx),
            ('onnx int8', int8),
            ('bfloat16', half),
            ('float16', fp16),
        ):
            share, before, after, most = changed_orders(exact, other.score_lists(queries, lists))
            print(
                f'  {name:12s} top-{TOP} orders changed {share:.0%}, ties {before} before, '
                f'{after} after, '
                f'largest change of log p {most:.1e}'
            )
        difference = np.abs(
            np.log1p(-1 / (1 + np.exp(peer.predict(pairs, activation_fn=torch.nn.Identity()))))
        )
        agreement = np.abs(np.concatenate(exact) + difference).max()
        print(
            f'  largest difference from CrossEncoder {agreement:.1e}; native bfloat16 on this '
            f'CPU: ',
            end='',
        )
        print(has_native_bfloat16(torch.device('cpu')))
        figures.tell(
            options,
            [
                Figure('monoBERT, float32: CrossEncoder', times['peer'] / times['ours'], 'x', 1.5),
                Figure(
                    'monoBERT, --precision auto: CrossEncoder, float32',
                    times['peer'] / times['auto'],
                ),
                Figure(
                    'monoBERT, int8: CrossEncoder, float32', times['peer'] / times['int8'], 'x', 3
                ),
                Figure(
                    'monoBERT, --precision auto: one pair at a time',
                    times['single'] / times['auto'],
                ),
                Figure('duoBERT: monoBERT at equal tokens', times['mono, as long'] / times['duo']),
            ],
        )


if __name__ == '__main__':
    main()
