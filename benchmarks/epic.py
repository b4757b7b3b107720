"""EPIC bundles against scipy.sparse: reranking latency, bytes a passage; and passages encoded a
second.

The bundle holds random vectors: r terms of BERT's vocabulary a passage, frequent ones (low ids)
more often, with weights from a gamma distribution; the package's own writer writes it. A query has
8 terms (EPIC section 3: MS MARCO's have 7.5 on average), drawn from the vectors of its candidates,
so that they match. Methods take turns query by query, on one core, timed by the processor's clock,
so that other load affects all alike. The last lines are the ratios.

    OMP_NUM_THREADS=1 python benchmarks/epic.py [--passages 100000] [--folder FOLDER]
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import figures
import numpy as np
import scipy.sparse
import torch
from figures import Figure
from safetensors.torch import save_file

from pyserini_repbert import catalog
from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.sharding import BundleEncoding, build_bundle
from pyserini_repbert.index.records import TermWeightsSettings
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.index.term_weights_writer import TermWeightsShardWriter
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.term_vectors import TermVector, TermVectors, largest
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank.base import rescored
from pyserini_repbert.systems.epic.encoder import EpicEncoder
from pyserini_repbert.systems.epic.network import Epic

VOCABULARY = 30522
QUERY_TERMS = 8
CANDIDATES = 1000
GOAL = 6  # times as fast as scipy.sparse


def random_vectors(random: np.random.Generator, n: int, r: int) -> TermVectors:
    """n vectors of r different terms each; a term's chance falls from frequent (low) ids to rare
    ones.
    """
    chances = 1 / np.sqrt(np.arange(VOCABULARY) + 500.0)
    keys = random.random((n, VOCABULARY), dtype=np.float32)
    keys **= (1 / chances * chances.mean()).astype(
        np.float32
    )  # weighted sampling without replacement
    terms = np.sort(
        np.argpartition(keys, VOCABULARY - r, axis=1)[:, VOCABULARY - r :], axis=1
    ).astype(np.int64)
    weights = random.gamma(1.0, 0.3, (n, r)).astype(np.float32) + np.float32(0.05)
    return TermVectors(np.arange(0, n * r + 1, r), terms.reshape(-1), weights.reshape(-1))


def random_encoder(folder: Path) -> EpicEncoder:
    """A tiny model with BERT's vocabulary and random weights, which only names the encoder:
    query vectors are drawn.
    """
    config = {
        'vocab_size': VOCABULARY,
        'hidden_size': 8,
        'num_hidden_layers': 1,
        'num_attention_heads': 1,
    }
    config |= {'intermediate_size': 8, 'model_type': 'bert'}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'config.json').write_text(
        json.dumps(config | {'ranking': {'system': 'epic'}}), encoding='utf-8'
    )
    pieces = catalog.package_folder(catalog.get('encoders', 'minilm')) / 'vocab.txt'
    shutil.copyfile(pieces, folder / 'vocab.txt')
    torch.manual_seed(0)
    save_file(Epic(BertConfig.from_dict(config)).state_dict(), folder / 'model.safetensors')
    return EpicEncoder(folder)


def build(
    folder: Path, encoder: EpicEncoder, n: int, r: int, weights: str, shard_size: int
) -> float:
    """Write a bundle of n passages of r terms; the seconds that it took."""
    settings = TermWeightsSettings(
        encoder.name,
        encoder.weights_sha256,
        str(encoder.variant),
        VOCABULARY,
        encoder.vocabulary_sha256,
        encoder.limit,
        r,
        weights,
        'float32',
        shard_size,
        False,
        'blocks',
    )
    random = np.random.default_rng(0)
    different = random_vectors(random, 4096, r)

    def encode(passages: Sequence[Passage]) -> TermVectors:
        rows = random.permutation(4096)[
            : len(passages)
        ]  # drawing 200,000 different ones would take minutes
        return TermVectors.of(different[row] for row in rows)

    start = time.perf_counter()
    build_bundle(
        (Passage(f'D{row * 7919 % 10_000_019}', '') for row in range(n)),
        folder,
        BundleEncoding(settings, TermWeightsShardWriter, encode, 4096),
    )
    return time.perf_counter() - start


def queries(bundle: TermWeightsBundle, n: int) -> list[tuple[np.ndarray, TermVector]]:
    """(candidate rows, query vector) for each query."""
    random = np.random.default_rng(1)
    made = []
    for _ in range(n):
        rows = random.choice(len(bundle), CANDIDATES, replace=False)
        pool = np.concatenate([bundle.vector(int(row)).terms for row in rows[:4]])
        terms = np.unique(random.choice(np.unique(pool), QUERY_TERMS, replace=False))
        made.append((rows, TermVector(terms, random.random(len(terms), dtype=np.float32))))
    return made


def agreement(
    first: TermWeightsBundle, second: TermWeightsBundle, asked: list[tuple[np.ndarray, TermVector]]
) -> tuple[float, float]:
    """The mean share of the ten best candidates that two bundles share, and the mean relative
    error of the scores.
    """
    shared = []
    errors = []
    for rows, query in asked:
        one = first.score(rows, query)
        other = second.score(rows, query)
        best = set(np.argsort(-one, kind='stable')[:10].tolist())
        shared.append(len(best.intersection(np.argsort(-other, kind='stable')[:10].tolist())) / 10)
        errors.append(float(np.abs(one - other).sum() / np.abs(one).sum()))
    return float(np.mean(shared)), float(np.mean(errors))


def interleaved(methods: dict[str, Callable[[int], object]], rounds: int) -> dict[str, float]:
    """Median milliseconds of processor time of each method, which take turns; the first fifth of
    rounds is left out.
    """
    times: dict[str, list[float]] = {name: [] for name in methods}
    for number in range(rounds):
        for name, method in methods.items():
            start = time.thread_time()
            method(number)
            times[name].append(time.thread_time() - start)
    return {name: 1000 * float(np.median(own[rounds // 5 :])) for name, own in times.items()}


def encoding_rate(dtype: torch.dtype) -> dict[str, float]:
    """Passages of 75 wordpieces a second on one core: a model of MiniLM's size, and one of
    BERT-Base's.
    """
    found = {}
    for name, sizes in {
        'MiniLM-L6 (h=384)': {
            'hidden_size': 384,
            'num_hidden_layers': 6,
            'intermediate_size': 1536,
        },
        'BERT-Base (h=768)': {},
    }.items():
        torch.manual_seed(0)
        model = Epic(BertConfig(**sizes)).eval().to(dtype)
        ids = torch.randint(1000, VOCABULARY, (16, 77))
        types = torch.ones_like(ids)
        with torch.inference_mode():
            parts = {'body': 0.0, 'projection': 0.0, 'pruning': 0.0}
            for round_ in range(3):
                start = time.thread_time()
                hidden = model(ids, types)
                body = time.thread_time()
                tokens = hidden[:, 1:-1].reshape(-1, hidden.shape[-1])
                vectors = model.document_vectors(tokens, [75] * 16, hidden[:, 0]).numpy()
                projected = time.thread_time()
                for vector in vectors:
                    largest(vector, 1000)
                end = time.thread_time()
                if round_:
                    for part, value in zip(
                        parts, (body - start, projected - body, end - projected), strict=True
                    ):
                        parts[part] += value / 2
        shares = ', '.join(f'{part} {1000 * value / 16:.1f} ms' for part, value in parts.items())
        found[f'{name} ({shares} a passage)'] = 16 / sum(parts.values())
    return found


def rescored_by_scipy(
    matrix: scipy.sparse.csr_matrix, row_of: dict[str, int], ranking: Ranking, query: np.ndarray
) -> Ranking:
    """A ranking by its inner products with a query, from docids to a sorted list."""
    rows = [row_of[docid] for docid in ranking.docids]
    return rescored(ranking, matrix[rows] @ query)


def ratios(took: dict[str, float], names: Sequence[str]) -> list[Figure]:
    """How many times as fast as scipy.sparse each bundle is, with docids and order, and without.

    Parameters
    ----------
    took : milliseconds of each method
    names : of the bundles
    """
    told = []
    for name in names:
        ratio = took['docids to a list, scipy.sparse'] / took[f'docids to a list, {name}']
        what = f'EPIC, from docids to a sorted list, {name}: scipy.sparse'
        told.append(Figure(what, ratio, 'x', GOAL))
    for name in names:
        ratio = took['scipy.sparse row slicing'] / took[f'bundle, {name}']
        told.append(Figure(f'EPIC, {name}: scipy.sparse', ratio, 'x', GOAL))
    return told


def main() -> None:
    """Run all and print."""
    parser = figures.parser(__doc__)
    parser.add_argument('--passages', type=int, default=100_000)
    parser.add_argument('--terms', type=int, default=1000)
    parser.add_argument('--shard-size', type=int, default=1 << 18, help='passages in a shard')
    parser.add_argument('--queries', type=int, default=100)
    parser.add_argument(
        '--folder', type=Path, default=None, help='where the bundles are kept and found again'
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        encoder = random_encoder(folder / 'model')
        bundles = {}
        sizes = {}
        for name, weights, size in (
            ('float16', 'float16', options.shard_size),
            ('uint8', 'uint8', options.shard_size),
            ('float16 in four shards', 'float16', -(-options.passages // 4)),
        ):
            place = folder / f'{options.passages}-{options.terms}-{weights}-{size}'
            if not (place / 'manifest.json').is_file():
                seconds = build(place, encoder, options.passages, options.terms, weights, size)
                print(f'{name}: {options.passages / seconds:,.0f} vectors a second written')
            sizes[name] = (
                sum(path.stat().st_size for path in place.rglob('*') if path.is_file())
                / options.passages
            )
            bundles[name] = TermWeightsBundle(place, verify=False)
        whole = bundles['float16']
        blocks = [vectors for _, vectors in whole.vectors()]
        indptr = np.cumsum([0, *np.concatenate([np.diff(own.offsets) for own in blocks])])
        indices = np.concatenate([own.terms.astype(np.int32) for own in blocks])
        matrix = scipy.sparse.csr_matrix(
            (np.concatenate([own.weights for own in blocks]), indices, indptr),
            (len(whole), VOCABULARY),
        )
        del blocks, indices
        asked = queries(whole, options.queries)
        dense = []
        for _, query in asked:
            dense.append(np.zeros(VOCABULARY, np.float32))
            dense[-1][query.terms] = query.weights
        for (rows, query), vector in list(zip(asked, dense, strict=True))[:5]:
            np.testing.assert_allclose(whole.score(rows, query), matrix[rows] @ vector, atol=1e-4)
        lists = [Ranking(whole.docids(rows)) for rows, _ in asked]
        docids = [own.docids for own in lists]
        all_docids = whole.docids(np.arange(len(whole)))
        row_of = dict(zip(all_docids, range(len(whole)), strict=True))
        for bundle in bundles.values():
            bundle.rows(docids[0])
        took = interleaved(
            {
                'scipy.sparse row slicing': lambda i: matrix[asked[i][0]] @ dense[i],
                'bundle, float16': lambda i: bundles['float16'].score(*asked[i]),
                'bundle, uint8': lambda i: bundles['uint8'].score(*asked[i]),
                'bundle, float16 in four shards': lambda i: bundles['float16 in four shards'].score(
                    *asked[i]
                ),
                'docids to a list, scipy.sparse': lambda i: rescored_by_scipy(
                    matrix, row_of, lists[i], dense[i]
                ),
                'rows of docids': lambda i: bundles['float16'].rows(docids[i]),
                **{
                    f'docids to a list, {name}': lambda i, own=own: rescored(
                        lists[i], own.score(own.rows(docids[i]), asked[i][1])
                    )
                    for name, own in bundles.items()
                },
            },
            options.queries,
        )
        for name, value in took.items():
            print(f'{name}: {value:.3f} ms a query of {CANDIDATES} candidates')
        for name, value in sizes.items():
            print(f'{name}: {value:,.0f} bytes a passage, docids and manifest included')
        shared, error = agreement(bundles['float16'], bundles['uint8'], asked)
        print(
            f'uint8 against float16: {shared:.1%} of the ten best are the same, scores differ by '
            f'{error:.2%}'
        )
        rates = {dtype: encoding_rate(dtype) for dtype in (torch.float32, torch.bfloat16)}
        for dtype, own in rates.items():
            for name, value in own.items():
                print(f'{dtype}: {name}: {value:.1f} passages a second on one core')
        small, fast = (
            next(iter(own.values())) for own in rates.values()
        )  # the first is of MiniLM's size
        told = ratios(took, list(bundles))
        told += [
            Figure(
                'EPIC, bytes a passage, float16 (its section 3: 3,994)',
                sizes['float16'],
                'bytes',
                3994,
                at_most=True,
            ),
            Figure('EPIC, uint8, a passage', sizes['uint8'], 'bytes', 3100, at_most=True),
            Figure(
                "EPIC, encoding passages with a model of MiniLM's size, bf16: float32",
                fast / small,
                'x',
                2,
            ),
        ]
        figures.tell(options, told)


if __name__ == '__main__':
    main()
