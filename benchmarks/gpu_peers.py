"""The peers of `gpu.py`, each a separate command, so that its time has start-up and first batches
in it, as ours.

python benchmarks/gpu_peers.py PEER --folder FOLDER --device cuda --dtype bfloat16 --take N

FOLDER holds what `gpu.py` made; N is how many passages are encoded, topics are reranked or
searched, or steps trained.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch

_BATCH = 256
_CHUNK = 128  # queries whose scores are sorted together
_LIMIT = 258
_HITS = 1000


def lines(path: Path, n: int) -> list[list[str]]:
    """The fields of the first n lines."""
    with open(path, encoding='utf-8') as stream:
        return [line.rstrip('\n').split('\t') for line, _ in zip(stream, range(n), strict=False)]


def texts(path: Path, n: int) -> list[str]:
    """The texts of the first n lines of a collection or of topics."""
    return [text for _, text in lines(path, n)]


def mean_vectors(
    folder: Path, passages: list[str], device: str, dtype: torch.dtype
) -> torch.Tensor:
    """Hugging Face's BERT on batches of like length, mean over tokens: (n, h)."""
    from transformers import AutoTokenizer, BertModel

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = (
        BertModel.from_pretrained(folder, dtype=dtype, add_pooling_layer=False).to(device).eval()
    )
    order = sorted(range(len(passages)), key=lambda row: len(passages[row]))
    vectors = torch.empty(len(passages), model.config.hidden_size, dtype=dtype, device=device)
    for first in range(0, len(order), _BATCH):
        rows = order[first : first + _BATCH]
        batch = [passages[row] for row in rows]
        inputs = tokenizer(
            batch, padding=True, truncation=True, max_length=_LIMIT, return_tensors='pt'
        ).to(device)
        mask = inputs['attention_mask'][:, :, None]
        hidden = model(**inputs).last_hidden_state
        vectors[rows] = (hidden * mask).sum(dim=1) / mask.sum(dim=1)
    return vectors


def plain_encode(given: argparse.Namespace, dtype: torch.dtype) -> None:
    """Passages to vectors, in plain PyTorch."""
    vectors = mean_vectors(
        given.folder / 'repbert',
        texts(given.folder / 'collection.tsv', given.take),
        given.device,
        dtype,
    )
    np.save(given.folder / 'plain.npy', vectors.float().cpu().numpy())


def plain_search(given: argparse.Namespace, dtype: torch.dtype) -> None:
    """Topics over our index's vectors: `mm` and `topk`."""
    shards = sorted((given.folder / 'index').glob('shard-*/vectors.npy'))
    kind = torch.float16 if given.device != 'cpu' else torch.float32
    vectors = torch.cat(
        [torch.from_numpy(np.load(shard)).to(given.device, kind) for shard in shards]
    )
    topics = texts(given.folder / 'topics.tsv', given.take)
    queries = mean_vectors(given.folder / 'repbert', topics, given.device, dtype).to(kind)
    with open(given.folder / 'plain.txt', 'w', encoding='utf-8') as stream:
        for first in range(0, len(queries), _CHUNK):
            best = (queries[first : first + _CHUNK] @ vectors.T).topk(
                min(_HITS, len(vectors)), dim=1
            )
            for number, (scores, rows) in enumerate(
                zip(best.values.tolist(), best.indices.tolist(), strict=True), first
            ):
                hits = enumerate(zip(rows, scores, strict=True), 1)
                stream.writelines(
                    f'{number} Q0 {row} {rank} {score} plain\n' for rank, (row, score) in hits
                )


def sentence_encode(given: argparse.Namespace, dtype: torch.dtype) -> None:
    """Passages to vectors, by sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(
        str(given.folder / 'repbert'), device=given.device, model_kwargs={'dtype': dtype}
    )
    model.max_seq_length = _LIMIT
    model.encode(
        texts(given.folder / 'collection.tsv', given.take),
        batch_size=_BATCH,
        show_progress_bar=False,
    )


def sentence_rerank(given: argparse.Namespace, dtype: torch.dtype) -> None:
    """The candidates of our run, by CrossEncoder."""
    from sentence_transformers import CrossEncoder

    passages = dict(lines(given.folder / 'collection.tsv', 1 << 60))
    candidates: dict[str, list[str]] = defaultdict(list)
    with open(given.folder / 'candidates.txt', encoding='utf-8') as stream:
        for line in stream:
            qid, _, docid, *_ = line.split()
            candidates[qid].append(docid)
    topics = lines(given.folder / 'topics.tsv', given.take)
    pairs = [(topic, passages[docid]) for qid, topic in topics for docid in candidates[qid]]
    model = CrossEncoder(
        str(given.folder / 'monobert'),
        device=given.device,
        max_length=512,
        model_kwargs={'dtype': dtype},
    )
    model.predict(pairs, batch_size=_BATCH, show_progress_bar=False)


def sentence_train(given: argparse.Namespace, dtype: torch.dtype) -> None:
    """Steps of MultipleNegativesRankingLoss on our triples."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    passages, topics = (
        dict(lines(given.folder / name, 1 << 60)) for name in ('collection.tsv', 'topics.tsv')
    )
    triples = lines(given.folder / 'triples.tsv', 1 << 60)
    columns = {
        name: [source[line[place]] for line in triples]
        for place, (name, source) in enumerate(
            (('anchor', topics), ('positive', passages), ('negative', passages))
        )
    }
    model = SentenceTransformer(str(given.folder / 'repbert'), device=given.device)
    model.max_seq_length = _LIMIT
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(given.folder / 'peer'),
        max_steps=given.take,
        per_device_train_batch_size=given.batch,
        bf16=dtype == torch.bfloat16,
        use_cpu=given.device == 'cpu',
        save_strategy='no',
        report_to='none',
        disable_tqdm=True,
    )
    loss = MultipleNegativesRankingLoss(model)
    SentenceTransformerTrainer(
        model, arguments, train_dataset=Dataset.from_dict(columns), loss=loss
    ).train()


PEERS = {
    one.__name__: one
    for one in (plain_encode, plain_search, sentence_encode, sentence_rerank, sentence_train)
}


def main() -> None:
    """Run a peer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('peer', choices=PEERS)
    parser.add_argument('--folder', type=Path, required=True)
    parser.add_argument('--device', default='cuda')
    parser.add_argument('--dtype', default='bfloat16')
    parser.add_argument('--take', type=int, required=True)
    parser.add_argument('--batch', type=int, default=26)
    given = parser.parse_args()
    with torch.inference_mode(given.peer != 'sentence_train'):
        PEERS[given.peer](given, getattr(torch, given.dtype))


if __name__ == '__main__':
    main()
