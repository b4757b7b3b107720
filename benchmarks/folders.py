"""Folders of sentence-transformers: this package's engine against sentence-transformers, for five
architectures, encoders and cross-encoders.

pip install sentence-transformers onnx onnxscript
python benchmarks/folders.py [--passages 200] [--threads 2] [--rounds 2] [--only NAME ...]
[--no-int8]

With one thread, times are the processor's, so that other programs affect all alike.

Weights are random: speed does not depend on what they learned. Texts have MS MARCO's lengths. BERT
has the vocabulary of MiniLM; the vocabularies of RoBERTa and XLM-R are trained on the demo
collection.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import figures
import numpy as np
import torch
from encoding import texts_of_msmarco_lengths
from figures import Figure
from rounds import best_times

from pyserini_repbert import catalog
from pyserini_repbert.commands.command import threads
from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.record import OWN_ENGINE
from pyserini_repbert.systems.encoders import document_encoder

CANDIDATES = 25
VOCABULARY = 20_000
LIMIT = 256
SPECIALS = ['<s>', '<pad>', '</s>', '<unk>', '<mask>']


@dataclass(frozen=True)
class Architecture:
    """A body's class in transformers, its sizes, and how its tokens become one vector."""

    name: str
    kind: str
    layers: int
    size: int
    pooling: str

    @property
    def values(self) -> dict[str, int]:
        """Of its config.json."""
        return {
            'num_hidden_layers': self.layers,
            'hidden_size': self.size,
            'num_attention_heads': 12,
            'intermediate_size': 4 * self.size,
        }


ARCHITECTURES = (
    Architecture('all-MiniLM-L6', 'Bert', 6, 384, 'mean'),
    Architecture('bge-small', 'Bert', 12, 384, 'cls'),
    Architecture('bge-base', 'Bert', 12, 768, 'cls'),
    Architecture('all-distilroberta', 'Roberta', 6, 768, 'mean'),
    Architecture('multilingual-e5-small, as XLM-R', 'XLMRoberta', 12, 384, 'mean'),
)


def write_folders(architecture: Architecture, folder: Path) -> tuple[Path, Path]:
    """The folders of an encoder and of a cross-encoder with random weights."""
    import transformers

    tokenizer = tokenizer_of(architecture.kind)
    tokenizer.model_max_length = LIMIT
    settings = getattr(transformers, f'{architecture.kind}Config')(
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        max_position_embeddings=514,
        type_vocab_size=2 if architecture.kind == 'Bert' else 1,
        num_labels=1,
        **architecture.values,
    )
    torch.manual_seed(0)
    paths = []
    for head in ('Model', 'ForSequenceClassification'):
        path = folder / head
        model = getattr(transformers, f'{architecture.kind}{head}')(settings)
        model.save_pretrained(path)
        tokenizer.save_pretrained(path)
        paths.append(path)
    modules = []
    for number, kind in enumerate(('Transformer', 'Pooling', 'Normalize')):
        path = f'{number}_{kind}' if number else ''
        name = f'sentence_transformers.models.{kind}'
        modules.append({'idx': number, 'name': str(number), 'path': path, 'type': name})
    (paths[0] / 'modules.json').write_text(json.dumps(modules))
    pooling = {'embedding_dimension': architecture.size, 'pooling_mode': architecture.pooling}
    (paths[0] / '1_Pooling').mkdir()
    (paths[0] / '1_Pooling/config.json').write_text(json.dumps(pooling))
    return paths[0], paths[1]


def tokenizer_of(kind: str) -> Any:
    """The tokenizer of a body's class, of transformers."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    if kind == 'Bert':
        return transformers.BertTokenizer.from_pretrained(
            catalog.package_folder(catalog.get('encoders', 'minilm'))
        )
    texts: Iterator[str] = (passage.text for passage in open_corpus('demo'))
    if kind == 'Roberta':
        backend = Tokenizer(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        letters = pre_tokenizers.ByteLevel.alphabet()
        trainer: Any = trainers.BpeTrainer(
            vocab_size=VOCABULARY, special_tokens=SPECIALS, initial_alphabet=letters
        )
        backend.train_from_iterator(texts, trainer)
        model = json.loads(backend.to_str())['model']
        merges = [tuple(merge) for merge in model['merges']]
        return transformers.RobertaTokenizer(vocab=model['vocab'], merges=merges)
    backend = Tokenizer(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIALS[:4], unk_token='<unk>'
    )
    backend.train_from_iterator(texts, trainer)
    model = json.loads(backend.to_str())['model']
    vocabulary = [(piece, score) for piece, score in model['vocab']]
    return transformers.XLMRobertaTokenizer(vocab=[*vocabulary, ('<mask>', 0.0)])


def clock() -> float:
    """Seconds of this process's work on one thread, or by the clock on several."""
    if torch.get_num_threads() == 1:
        return time.process_time()
    return time.perf_counter()


def encoder_figures(name: str, folder: Path, texts: list[str], rounds: int) -> list[Figure]:
    """Ratios of encoding, after a comparison of the vectors."""
    from sentence_transformers import SentenceTransformer

    peer = SentenceTransformer(str(folder), device='cpu', local_files_only=True)
    ours = document_encoder(folder)
    auto = document_encoder(folder, precision='auto')
    assert ours.engine == OWN_ENGINE  # type: ignore[attr-defined]
    np.testing.assert_allclose(ours.encode(texts[:20]), peer.encode(texts[:20]), atol=1e-5)
    times = best_times(
        {
            'peer': lambda: peer.encode(texts, show_progress_bar=False),
            'ours': lambda: ours.encode(texts),
            'auto': lambda: auto.encode(texts),
        },
        rounds,
        clock,
    )
    print(f'{name}: {len(texts) / times["ours"]:.1f} passages/s in float32')
    label = 'sentence-transformers, float32'
    return [
        Figure(f'encoding, {name}, float32: {label}', times['peer'] / times['ours'], 'x', 1.3),
        Figure(
            f'encoding, {name}, --precision auto: {label}', times['peer'] / times['auto'], 'x', 2.0
        ),
    ]


def reranker_figures(
    name: str, folder: Path, texts: list[str], rounds: int, int8: bool
) -> list[Figure]:
    """Ratios of a cross-encoder, after a comparison of the scores."""
    from sentence_transformers import CrossEncoder

    peer = CrossEncoder(str(folder), device='cpu', local_files_only=True)
    topics = read_topics(catalog.file('topics', 'demo') or '')
    queries = []
    lists = []
    pairs = []
    for number, start in enumerate(range(0, len(texts), CANDIDATES)):
        part = texts[start : start + CANDIDATES]
        query = topics[number % len(topics)].text
        queries.append(query)
        lists.append(Ranking(map(str, range(len(part))), [0.0] * len(part), part))
        pairs += [(query, text) for text in part]
    ours = open_reranker(folder)
    assert ours.engine == OWN_ENGINE  # type: ignore[attr-defined]
    scores = np.concatenate(ours.score_lists(queries, lists))
    np.testing.assert_allclose(scores, peer.predict(pairs), atol=1e-5)
    contenders: dict[str, Callable[[], object]] = {
        'peer': lambda: peer.predict(pairs, show_progress_bar=False),
        'ours': lambda: ours.score_lists(queries, lists),
    }
    if int8:
        quantised = open_reranker(folder, backend='onnx-int8')
        contenders['int8'] = lambda: quantised.score_lists(queries, lists)
    times = best_times(contenders, rounds, clock)
    print(f'{name}: {len(pairs) / times["ours"]:.1f} pairs/s in float32')
    goals = {'ours': ('float32', 1.5), 'int8': ('int8', 3.0)}
    found = []
    for contender, (precision, goal) in goals.items():
        if contender in times:
            label = f'cross-encoder, {name}, {precision}: CrossEncoder, float32'
            found.append(Figure(label, times['peer'] / times[contender], 'x', goal))
    return found


def main() -> None:
    """Print passages and pairs a second, and ratios."""
    parser = figures.parser(__doc__, ['sentence_transformers', 'onnx', 'onnxscript', 'onnxruntime'])
    parser.add_argument('--passages', type=int, default=200)
    parser.add_argument('--threads', type=threads, default=os.cpu_count())
    parser.add_argument('--rounds', type=int, default=2)
    parser.add_argument('--only', nargs='*', help='names of architectures')
    parser.add_argument('--no-int8', action='store_true', help='without ONNX Runtime')
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    texts = texts_of_msmarco_lengths(options.passages)
    words = np.mean([len(text.split()) for text in texts])
    print(f'{len(texts)} passages of {words:.0f} words on average, {options.threads} threads')
    found = []
    for architecture in ARCHITECTURES:
        name = architecture.name
        if options.only and name not in options.only:
            continue
        folder = Path(tempfile.mkdtemp())
        try:
            encoder, reranker = write_folders(architecture, folder)
            found += encoder_figures(name, encoder, texts, options.rounds)
            found += reranker_figures(
                name, reranker, texts, options.rounds, int8=not options.no_int8
            )
        finally:
            shutil.rmtree(folder)
    figures.tell(options, found)


if __name__ == '__main__':
    main()
