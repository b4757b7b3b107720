"""Late interaction against sentence-transformers: reranking from text, MaxSim alone, and rescoring
passages whose token vectors a collection stores; this also against PyLate, where it is installed.

pip install sentence-transformers
python benchmarks/late_interaction.py [--passages 200] [--threads 1] [--rounds 3]

The model has MiniLM's size, a projection to 128 values, and ColBERT's settings: queries of 32
tokens, punctuation left out. Its weights are random: speed does not depend on what they learned.
Passages have MS MARCO's lengths, 25 a query. With one thread, times are the processor's, so that
other programs affect all alike.
"""

from __future__ import annotations

import importlib.util
import shutil
import string
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import figures
import numpy as np
import torch
from encoding import texts_of_msmarco_lengths
from figures import Figure
from folders import ARCHITECTURES, CANDIDATES, clock, write_folders
from rounds import best_times

from pyserini_repbert import catalog
from pyserini_repbert.commands.command import threads
from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.extensions.token_vectors.encoder import TokenVectors
from pyserini_repbert.extensions.token_vectors.reranker import best_matches
from pyserini_repbert.extensions.token_vectors.stored import (
    TOKENS,
    PassageTokenVectors,
    QueryTokenVectors,
    TokenModel,
)
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.record import OWN_ENGINE

# Passages that MaxSim alone compares with a query.
SCORED = 1000
DIMENSION = 128


def write_colbert(folder: Path) -> Path:
    """A folder with ColBERT's settings over a BERT of MiniLM's size."""
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.base.modules.dense import Dense
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    architecture = ARCHITECTURES[0]
    body, _ = write_folders(architecture, folder)
    tokens = {'module_input_name': 'token_embeddings'}
    expansion: Any = {'strategy': 'fixed', 'length': 32, 'attend': False}
    modules = [
        Transformer(str(body), query_expansion=expansion, document_length=180),
        Dense(architecture.size, DIMENSION, False, torch.nn.Identity(), **tokens),
        MultiVectorMask(list(string.punctuation)),
        Normalize(**tokens),
    ]
    MultiVectorEncoder(modules=modules, device='cpu').save_pretrained(str(folder / 'colbert'))
    return folder / 'colbert'


def reranking_figures(folder: Path, texts: Sequence[str], rounds: int) -> list[Figure]:
    """Ratios of reranking from text, after a comparison of the scores."""
    from sentence_transformers import MultiVectorEncoder

    peer = MultiVectorEncoder(str(folder), device='cpu', local_files_only=True)
    ours = open_reranker(folder)
    auto = open_reranker(folder, precision='auto')
    assert ours.engine == OWN_ENGINE  # type: ignore[attr-defined]
    topics = read_topics(catalog.file('topics', 'demo') or '')
    queries = []
    lists = []
    for number, start in enumerate(range(0, len(texts), CANDIDATES)):
        part = list(texts[start : start + CANDIDATES])
        queries.append(topics[number % len(topics)].text)
        lists.append(Ranking(map(str, range(len(part))), [0.0] * len(part), part))

    def rank_with_peer() -> list[Any]:
        asked = peer.encode_query(queries)
        passages = peer.encode_document(list(texts))
        scores = []
        for number, query in enumerate(asked):
            start = number * CANDIDATES
            candidates = passages[start : start + CANDIDATES]
            scores.append(peer.similarity([query], candidates)[0].numpy())
        return scores

    scores = np.concatenate(ours.score_lists(queries, lists))
    np.testing.assert_allclose(scores, np.concatenate(rank_with_peer()), atol=2e-5)
    times = best_times(
        {
            'peer': rank_with_peer,
            'ours': lambda: ours.score_lists(queries, lists),
            'auto': lambda: auto.score_lists(queries, lists),
        },
        rounds,
        clock,
    )
    print(f'{len(texts) / times["ours"]:.1f} passages/s in float32')
    label = 'sentence-transformers, float32'
    return [
        Figure(f'late interaction, float32: {label}', times['peer'] / times['ours'], 'x', 1.3),
        Figure(f'late interaction, --precision auto: {label}', times['peer'] / times['auto']),
    ]


def maxsim_figures(rounds: int) -> list[Figure]:
    """The ratio of MaxSim alone, of one query and vectors that are there."""
    from sentence_transformers.util.similarity import maxsim

    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(20, 180, (SCORED,), generator=generator)
    total = int(lengths.sum())
    vectors = torch.nn.functional.normalize(torch.randn(total, DIMENSION, generator=generator))
    query = torch.nn.functional.normalize(torch.randn(32, DIMENSION, generator=generator))
    passages = TokenVectors(vectors, lengths.numpy(), np.arange(total), None)
    parts = list(torch.split(vectors, lengths.tolist()))
    expected = maxsim([query], parts)[0].numpy()
    np.testing.assert_allclose(best_matches(query, passages).sum(dim=1), expected, atol=1e-4)
    times = best_times(
        {
            'peer': lambda: maxsim([query], parts),
            'ours': lambda: best_matches(query, passages),
        },
        rounds * 5,
        clock,
    )
    print(f'MaxSim of {SCORED} passages: {1000 * times["ours"]:.1f} ms')
    name = f'MaxSim, one query, {SCORED:,} passages: sentence-transformers'
    return [Figure(name, times['peer'] / times['ours'])]


def rescoring_figures(rounds: int) -> list[Figure]:
    """Ratios of scoring passages that are stored in float16 and in int8, for one query.

    The passages lie scattered in a file of five times as many. Peers get their vectors in memory,
    in float32, each passage a tensor.
    """
    from sentence_transformers.util.similarity import maxsim

    generator = np.random.default_rng(0)
    values = []
    for length in generator.integers(20, 180, 5 * SCORED).tolist():
        vectors = generator.standard_normal((length, DIMENSION), np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        values.append(PassageTokenVectors(vectors.astype(np.float16), np.zeros(length, np.int32)))
    model = TokenModel('drawn', '0' * 64, DIMENSION, 180, is_mean=False, precision='float32')
    rows = TOKENS.rows(values, model)
    small = TOKENS.rows(values, model.stored_as('int8'))
    chosen = np.sort(generator.choice(len(rows), SCORED, replace=False))
    drawn = torch.from_numpy(generator.standard_normal((32, DIMENSION), np.float32))
    asked = torch.nn.functional.normalize(drawn)
    query = QueryTokenVectors(asked.numpy(), np.zeros(len(asked), np.int32), divisor=1)
    parts = [torch.from_numpy(rows.value(row).vectors).float() for row in chosen.tolist()]
    with tempfile.NamedTemporaryFile(suffix='.npy') as file:
        np.save(file.name, rows.vectors)
        stored = replace(rows, vectors=np.load(file.name, mmap_mode='c').view(np.ndarray))
        expected = maxsim([asked], parts)[0].numpy()
        np.testing.assert_allclose(stored.scores_of(query, chosen), expected, atol=1e-4)
        np.testing.assert_allclose(small.scores_of(query, chosen), expected, rtol=1e-2)
        contenders: dict[str, Callable[[], object]] = {
            'sentence-transformers': lambda: maxsim([asked], parts),
            'ours': lambda: stored.scores_of(query, chosen),
            'ours in int8': lambda: small.scores_of(query, chosen),
        }
        if importlib.util.find_spec('pylate') is not None:
            from pylate import rank

            ids = [chosen.tolist()]
            contenders['PyLate'] = lambda: rank.rerank(ids, [asked], [parts])
        times = best_times(contenders, rounds * 5, clock)
    print(f'rescoring {SCORED} stored passages: {1000 * times["ours"]:.1f} ms')
    name = f'rescoring {SCORED:,} stored passages in int8, one query: float16'
    found = [Figure(name, times['ours'] / times['ours in int8'])]
    for peer in sorted(contenders.keys() - {'ours', 'ours in int8'}):
        name = f'rescoring {SCORED:,} stored passages, one query: {peer}'
        found.append(Figure(name, times[peer] / times['ours'], 'x', 3))
    return found


def main() -> None:
    """Print passages a second, and ratios."""
    parser = figures.parser(__doc__, ['sentence_transformers'])
    parser.add_argument('--passages', type=int, default=200)
    parser.add_argument('--threads', type=threads, default=1)
    parser.add_argument('--rounds', type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    texts = texts_of_msmarco_lengths(options.passages)
    folder = Path(tempfile.mkdtemp())
    try:
        found = reranking_figures(write_colbert(folder), texts, options.rounds)
    finally:
        shutil.rmtree(folder)
    found += maxsim_figures(options.rounds)
    found += rescoring_figures(options.rounds)
    figures.tell(options, found)


if __name__ == '__main__':
    main()
