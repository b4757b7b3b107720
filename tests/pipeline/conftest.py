"""A small world to rerank: a corpus, topics, a first stage's run, and two tiny models."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from pyserini_repbert.data.runs import write_run
from pyserini_repbert.pipeline import PipelineSpec, StageCost, open_pipeline, run_pipeline
from pyserini_repbert.ranking import Query, Ranking, Run
from pyserini_repbert.systems.duobert.saved_scores import SavedScores
from pyserini_repbert.trace import Notes, Trace


class World(NamedTuple):
    """Files, and what is in them."""

    corpus: Path
    topics: Path
    run_file: Path
    mono: Path
    duo: Path
    queries: list[Query]
    run: Run


class Reranked(NamedTuple):
    """A new run, the costs of the stages, the saved scores, and the calls of the progress
    callback.
    """

    run: Run
    costs: list[StageCost]
    saved: list[SavedScores]
    done: list[int]


class Progress(Trace):
    """Keeps how far the work is."""

    def __init__(self, on_progress=int):
        self.totals: list[int] = []
        self.done: list[int] = []
        self.on_progress = on_progress

    def begins(self, step, total, unit):
        self.totals.append(total)

    def advance(self, n):
        if n:
            self.done.append(n)
            self.on_progress(n)


def run_stages(world, stages, queries=None, run=None, machine=None, **given):
    """Rerank the world's run; `given` are fields of the spec and arguments of `run_pipeline`."""
    spec = {name: given.pop(name) for name in list(given) if name in PipelineSpec.model_fields}
    opened = open_pipeline(
        PipelineSpec.of({'stages': stages, 'corpus': str(world.corpus), **spec}), machine
    )
    progress = Progress(given.pop('on_progress', int))
    notes = Notes(progress)
    new = run_pipeline(
        opened.pipeline, queries or world.queries, run or world.run, None, notes, **given
    )
    opened.pipeline.close()
    saved = [own for part in notes.walk() for own in part.kept.get('scores', {}).values()]
    return Reranked(new, [part.cost for part in notes.walk() if part.cost], saved, progress.done)


@pytest.fixture
def world(tmp_path, tiny_checkpoint, corpus_file):
    """Twenty passages, three topics with 12, 12 and 4 candidates, tiny monoBERT and duoBERT."""

    def checkpoint(system, seed, **config):
        import torch
        from safetensors.torch import save_file

        from pyserini_repbert.models.bert_config import BertConfig
        from pyserini_repbert.models.cross_encoder import CrossEncoder

        ranking = {'system': system, 'max_query_length': 8, 'max_length': 48}
        folder = tiny_checkpoint(f'{system}-tiny', seed, ranking=ranking, **config)
        torch.manual_seed(seed)
        values = json.loads((folder / 'config.json').read_text())
        save_file(
            CrossEncoder(BertConfig.from_dict(values)).state_dict(), folder / 'model.safetensors'
        )
        return folder

    queries = [Query('q1', 'red cat'), Query('q2', 'the big sea'), Query('q3', 'moon')]
    run = {}
    for number, (query, n) in enumerate(zip(queries, (12, 12, 4), strict=True)):
        docids = [f'd{(place * 7 + number * 3) % 20}' for place in range(n)]
        run[query.qid] = Ranking(docids, [float(20 - place) for place in range(n)])
    topics = tmp_path / 'topics.tsv'
    run_file = tmp_path / 'bm25.txt'
    topics.write_text(
        ''.join(f'{query.qid}\t{query.text}\n' for query in queries), encoding='utf-8'
    )
    write_run(run_file, run)
    duo = checkpoint('duobert', 2, type_vocab_size=3)
    return World(corpus_file(20), topics, run_file, checkpoint('monobert', 1), duo, queries, run)
