"""Whole commands on one device, start and first batches included, beside peers: from a collection
to MRR@10.

pip install sentence-transformers datasets
python benchmarks/gpu.py [--passages 1000000] [--topics 6980] [--reranked 100] [--steps 500]
python benchmarks/gpu.py --device cpu --passages 2000 --topics 5 --reranked 2 --steps 3 --hidden 128
--layers 2

The second line is a trial on the CPU. Passages are stretches of the demo collection, of MS MARCO's
lengths. Topics are the first words of some of them. Weights are random, in BERT-Base's shape
(--hidden, --layers). Commands run in bfloat16, on the CPU in float32. Each has its share of the
device's rate of large products: the operations of weights and attention, or of inner products, over
the whole time. Peers (`gpu_peers.py`) are timed in the same way: sentence-transformers, its
trainer, CrossEncoder, and plain PyTorch. The goals are for one H100.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import figures
import torch
from encoding import texts_of_msmarco_lengths
from figures import Figure
from safetensors.torch import save_file

from pyserini_repbert import catalog
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.tokenizer import WordPieceTokenizer
from pyserini_repbert.systems.monobert.network import MonoBert
from pyserini_repbert.systems.repbert.network import RepBert

HERE = Path(__file__).parent
BATCH = 26
HITS = 1000
TOPIC_WORDS = 7
_SAMPLE = 2000  # texts from which the mean length, in wordpieces, is taken
_BASE_TEXTS = 20_000


def write_texts(folder: Path, passages: int, topics: int, steps: int) -> None:
    """The collection, topics, one judgment each, and triples to train on."""
    dice = random.Random(0)
    base = texts_of_msmarco_lengths(min(passages, _BASE_TEXTS))
    words = [text.split() for text in base]
    with open(folder / 'collection.tsv', 'w', encoding='utf-8') as stream:
        for number in range(passages):
            text = (
                words[number]
                if number < len(words)
                else dice.choice(words)[:30] + dice.choice(words)[30:]
            )
            stream.write(f'{number}\t{" ".join(text)}\n')
    chosen = [number % len(words) for number in range(topics)]
    queries = [f'{qid}\t{" ".join(words[row][:TOPIC_WORDS])}\n' for qid, row in enumerate(chosen)]
    (folder / 'topics.tsv').write_text(''.join(queries), encoding='utf-8')
    (folder / 'qrels.txt').write_text(
        ''.join(f'{qid} 0 {row} 1\n' for qid, row in enumerate(chosen)), encoding='utf-8'
    )
    pairs = [number % topics for number in range(min(steps * BATCH, _BASE_TEXTS))]
    triples = [f'{qid}\t{chosen[qid]}\t{dice.randrange(passages)}\n' for qid in pairs]
    (folder / 'triples.tsv').write_text(''.join(triples), encoding='utf-8')


def write_checkpoint(target: Path, system: str, hidden: int, layers: int) -> None:
    """Random weights of a system, with MiniLM's tokenizer."""
    config = BertConfig.from_dict(
        {
            'hidden_size': hidden,
            'num_hidden_layers': layers,
            'num_attention_heads': max(1, hidden // 64),
            'intermediate_size': 4 * hidden,
        }
    )
    target.mkdir()
    source = catalog.package_folder(catalog.get('encoders', 'minilm'))
    for name in ('vocab.txt', 'tokenizer.json', 'tokenizer_config.json', 'special_tokens_map.json'):
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    torch.manual_seed(0)
    model = RepBert(config) if system == 'repbert' else MonoBert(config, labels=1)
    names = {
        'architectures': ['BertModel' if system == 'repbert' else 'BertForSequenceClassification']
    }
    if system != 'repbert':
        names |= {'id2label': {'0': 'LABEL_0'}, 'label2id': {'LABEL_0': 0}}
    values = {'model_type': 'bert', 'ranking': {'system': system}, **vars(config), **names}
    (target / 'config.json').write_text(json.dumps(values), encoding='utf-8')
    save_file(dict(model.state_dict()), target / 'model.safetensors', metadata={'format': 'pt'})


def seconds(arguments: Sequence[object]) -> float:
    """How long a command takes, its start included."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f'{" ".join(map(str, arguments))}\n{done.stdout}{done.stderr}')
    told = (done.stdout + done.stderr).strip().splitlines()
    print(
        f'  {time.perf_counter() - start:7.1f} s  {arguments[1]} {told[-1] if told else ""}',
        flush=True,
    )
    return time.perf_counter() - start


def product_rate(device: torch.device, dtype: torch.dtype) -> float:
    """Operations a second of a large matrix product."""
    size = 8192 if device.type == 'cuda' else 1024
    square = torch.randn(size, size, device=device, dtype=dtype)
    best = float('inf')
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(10):
            square @ square
        if device.type == 'cuda':
            torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / 10)
    return 2 * size**3 / best


def operations(tokens: Sequence[int], hidden: int, layers: int) -> float:
    """Mean operations of a forward pass: two for each weight of a layer and token, and the ones of
    attention.
    """
    return sum(24 * layers * hidden**2 * n + 4 * layers * hidden * n * n for n in tokens) / len(
        tokens
    )


def main() -> None:
    """Time them, print figures."""
    parser = figures.parser(
        __doc__,
        ['sentence_transformers', 'datasets'],
        passages=1_000_000,
        topics=6980,
        reranked=100,
        steps=500,
        hidden=768,
        layers=12,
    )
    parser.add_argument('--device', default='cuda')
    options = parser.parse_args()
    device = torch.device(options.device)
    if device.type == 'cuda' and not torch.cuda.is_available():
        sys.exit(
            'gpu.py needs a CUDA device: this machine has none that PyTorch sees (--device cpu '
            'for a trial)'
        )
    precision = 'float32' if device.type == 'cpu' else 'bfloat16'
    n = options.passages
    topics = options.topics
    steps = options.steps
    reranked = min(options.reranked, topics)
    hits = min(HITS, n)
    rate = product_rate(device, getattr(torch, precision))
    where = torch.cuda.get_device_name(device) if device.type == 'cuda' else 'CPU'
    print(f'{where}, {precision}: large products at {rate / 1e12:.3g} TFLOP/s')
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_texts(folder, n, topics, steps)
        for system in ('repbert', 'monobert'):
            write_checkpoint(folder / system, system, options.hidden, options.layers)
        tokenizer = WordPieceTokenizer.from_folder(folder / 'repbert')
        with open(folder / 'collection.tsv', encoding='utf-8') as stream:
            sample = [line.split('\t')[1] for line, _ in zip(stream, range(_SAMPLE), strict=False)]
        tokens = [len(ids) + 2 for ids in tokenizer.ids(sample)]
        forward = operations(tokens, options.hidden, options.layers)
        pair = operations(
            [length + TOPIC_WORDS + 3 for length in tokens], options.hidden, options.layers
        )
        machine = ['--device', options.device, '--precision', precision]

        def ours(command: str, *arguments: object) -> float:
            return seconds(['-m', f'pyserini_repbert.{command}', '--quiet', *arguments])

        def peer(which: str, take: int) -> float:
            more = [
                '--folder',
                folder,
                '--device',
                options.device,
                '--dtype',
                precision,
                '--batch',
                BATCH,
            ]
            return seconds([HERE / 'gpu_peers.py', which, '--take', take, *more])

        index = folder / 'index'
        run = folder / 'run.txt'
        best = folder / 'best.txt'
        collection = ['--corpus', folder / 'collection.tsv']
        asked = ['--topics', folder / 'topics.tsv']
        encode = ours(
            'encode', *collection, '--encoder', folder / 'repbert', '--output', index, *machine
        )
        search = ours(
            'search',
            '--index',
            index,
            '--encoder',
            folder / 'repbert',
            *asked,
            '--output',
            run,
            *machine,
        )
        with open(run, encoding='utf-8') as stream:
            first = [line for line in stream if int(line.split()[0]) < reranked]
        (folder / 'candidates.txt').write_text(''.join(first), encoding='utf-8')
        stage = ['--reranker', f'{folder / "monobert"}@{hits}', *collection, *asked]
        rerank = ours(
            'rerank', '--run', folder / 'candidates.txt', *stage, '--output', best, *machine
        )
        evaluate = ours('evaluate', '--qrels', folder / 'qrels.txt', run, '--measures', 'MRR@10')
        recipe = {
            'name': 'gpu',
            'system': 'repbert',
            'base': str(folder / 'repbert'),
            'data': [
                {
                    'triples': str(folder / 'triples.tsv'),
                    'topics': str(folder / 'topics.tsv'),
                    'qrels': str(folder / 'qrels.txt'),
                    'corpus': str(folder / 'collection.tsv'),
                }
            ],
            'training': {
                'steps': steps,
                'batch_size': BATCH,
                'accumulate': 2,
                'precision': precision,
            },
        }
        (folder / 'recipe.yaml').write_text(
            json.dumps(recipe), encoding='utf-8'
        )  # JSON is YAML, too
        on_cpu = ['--device', 'cpu'] if device.type == 'cpu' else []
        train = ours('train', folder / 'recipe.yaml', '--output', folder / 'trained', *on_cpu)
        plain_encode, sentence_encode = (
            peer(which, n) for which in ('plain_encode', 'sentence_encode')
        )
        plain_search = peer('plain_search', topics)
        cross_encoder = peer('sentence_rerank', reranked)
        sentence_train = peer('sentence_train', steps)

    def share(work: float, taken: float) -> float:
        return 100 * work / taken / rate

    def goal(value: float) -> float | None:
        return value if device.type == 'cuda' else None

    pairs = reranked * hits
    print(
        f'from collection to MRR@10: encode {encode:.0f} s, search {search:.0f} s, evaluate '
        f'{evaluate:.0f} s'
    )
    trained = (
        3 * steps * BATCH * 2 * forward
    )  # backward is twice forward; of queries, short, nothing is counted
    figures.tell(
        options,
        [
            Figure(f'encode, {n:,} passages', n / encode, '/s', goal(25_000)),
            Figure('  of the product rate', share(n * forward, encode), '%', goal(35)),
            Figure('  sentence-transformers', sentence_encode / encode),
            Figure('  plain PyTorch', plain_encode / encode),
            Figure(f'search, {topics:,} topics over {n:,} vectors', search, 's'),
            Figure('  of the product rate', share(2 * n * options.hidden * topics, search), '%'),
            Figure('  plain PyTorch', plain_search / search),
            Figure(
                f'rerank, {reranked} topics x {hits:,}', pairs / rerank, 'pairs/s', goal(25_000)
            ),
            Figure('  of the product rate', share(pairs * pair, rerank), '%'),
            Figure('  CrossEncoder', cross_encoder / rerank, 'x', goal(8)),
            Figure(f'train, {steps} steps of {BATCH} x 2', steps / train, 'steps/s', goal(20)),
            Figure('  of the product rate', share(trained, train), '%'),
            Figure(
                "  sentence-transformers' trainer",
                sentence_train / train,
                'x',
                goal(2),
            ),
            Figure('from collection to MRR@10', encode + search + evaluate, 's'),
        ],
    )


if __name__ == '__main__':
    main()
