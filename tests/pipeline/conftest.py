"""A small world to rerank: a corpus, topics, a first stage's run, and two tiny models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pyserini_repbert.data.runs import write_run
from pyserini_repbert.ranking import Query, Ranking, Run


class World(NamedTuple):
    """Files, and what is in them."""

    corpus: Path
    topics: Path
    run_file: Path
    mono: Path
    duo: Path
    queries: list[Query]
    run: Run


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[..., Path], corpus_file: Callable[..., Path]) -> World:
    """Twenty passages, three topics with 12, 12 and 4 candidates, tiny monoBERT and duoBERT."""

    def checkpoint(system: str, seed: int, **config: Any) -> Path:
        import torch
        from safetensors.torch import save_file

        from pyserini_repbert.models.bert_config import BertConfig
        from pyserini_repbert.models.cross_encoder import CrossEncoder

        ranking = {'system': system, 'max_query_length': 8, 'max_length': 48}
        folder = tiny_checkpoint(f'{system}-tiny', seed, ranking=ranking, **config)
        torch.manual_seed(seed)
        values = json.loads((folder / 'config.json').read_text())
        save_file(CrossEncoder(BertConfig.from_dict(values)).state_dict(), folder / 'model.safetensors')
        return folder

    queries = [Query('q1', 'red cat'), Query('q2', 'the big sea'), Query('q3', 'moon')]
    run = {}
    for number, (query, n) in enumerate(zip(queries, (12, 12, 4), strict=True)):
        docids = [f'd{(place * 7 + number * 3) % 20}' for place in range(n)]
        run[query.qid] = Ranking(docids, [float(20 - place) for place in range(n)])
    topics, run_file = tmp_path / 'topics.tsv', tmp_path / 'bm25.txt'
    topics.write_text(''.join(f'{query.qid}\t{query.text}\n' for query in queries), encoding='utf-8')
    write_run(run_file, run)
    duo = checkpoint('duobert', 2, type_vocab_size=3)
    return World(corpus_file(20), topics, run_file, checkpoint('monobert', 1), duo, queries, run)
