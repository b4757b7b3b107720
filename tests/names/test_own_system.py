"""A family of models from another package: named by an entry point, it reranks, explains and
learns.
"""

import json
import math

import pytest

from pyserini_repbert.errors import InputError
from pyserini_repbert.explain import explanation
from pyserini_repbert.extension import all_entry_points
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.pipeline.spec import parse_stage
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.systems import registry
from pyserini_repbert.tasks.instances import Instance
from pyserini_repbert.train.checkpoints import task_class
from pyserini_repbert.train.recipe_files import read_recipe

PACKAGE = '''
import numpy as np
import torch
from torch import nn

from pyserini_repbert.data.values import integer
from pyserini_repbert.rerank import Reranker
from pyserini_repbert.systems.registry import StageOption, System
from pyserini_repbert.tasks.task import GroupTask


class SharedWords(Reranker):
    """Scores a passage by the words that it shares with the query, each at most `most` times."""

    def __init__(self, checkpoint, device='cpu', most=1):
        self.name = checkpoint.name
        self.most = most

    def score_lists(self, queries, lists, on_progress=int):
        scores = []
        for query, candidates in zip(queries, lists):
            words = set(query.split())
            counts = []
            for hit in candidates:
                found = hit.text.split()
                counts.append(sum(min(found.count(word), self.most) for word in words))
            scores.append(np.array(counts, dtype=float))
        return scores


class WordTask(GroupTask):
    """Learns one weight: that of a shared word."""

    known = ()

    def new_ranker(self, sizes):
        ranker = nn.Module()
        ranker.weight = nn.Parameter(torch.zeros(()))
        return ranker

    def ranking(self):
        return {'system': 'shared-words'}

    def inputs_of(self, queries, passages, query_of):
        shared = [len(set(queries[row]) & set(text)) for row, text in zip(query_of, passages)]
        return {'shared': torch.tensor(shared, dtype=torch.float32)}

    def scores(self, batch):
        return self.ranker.weight * batch['shared']


SYSTEM = System(
    name='shared-words',
    title='shared words',
    reranker='toy_family:SharedWords',
    task='toy_family:WordTask',
    stage_options=(StageOption('most=N', 'most', integer),),
)
'''
HITS = Ranking(['a', 'b'], [2.0, 1.0], ['the dog', 'the cat cat'])


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The package as pip installs it: a module, and the entry point that names its system."""
    (tmp_path / 'toy_family.py').write_text(PACKAGE)
    info = tmp_path / 'toy_family-1.0.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text('Metadata-Version: 2.1\nName: toy-family\nVersion: 1.0\n')
    group = registry.ENTRY_POINTS
    (info / 'entry_points.txt').write_text(f'[{group}]\nshared-words = toy_family:SYSTEM\n')
    monkeypatch.syspath_prepend(tmp_path)
    registry.systems.cache_clear()
    all_entry_points.cache_clear()
    yield
    registry.systems.cache_clear()
    all_entry_points.cache_clear()


@pytest.fixture
def checkpoint(tmp_path):
    folder = tmp_path / 'words'
    folder.mkdir()
    config = {'model_type': 'words', 'ranking': {'system': 'shared-words'}}
    (folder / 'config.json').write_text(json.dumps(config))
    return folder


@pytest.mark.usefixtures('installed')
def test_it_reranks_with_its_option(checkpoint):
    stage = parse_stage(f'{checkpoint}@10:most=2')
    reranker = open_reranker(stage.name, options=dict(stage.options))
    hits = reranker.rerank('the cat', list(HITS))
    assert [(hit.docid, hit.score) for hit in hits] == [('b', 3.0), ('a', 1.0)]


@pytest.mark.usefixtures('installed')
def test_it_explains_its_scores(checkpoint):
    explained = explanation(open_reranker(checkpoint), 'the cat', HITS)
    assert explained['system'] == 'own'
    assert explained['scores'] == [1.0, 2.0]


@pytest.mark.usefixtures('installed')
def test_its_reason_names_its_class(checkpoint):
    reason = open_reranker(checkpoint).reason('the cat', Candidate('b', 2.0, 'the cat cat'))
    assert reason == 'scored 2.0000 by SharedWords'


RECIPE = """
name: words
system: shared-words
base: minilm
data: [{topics: t.tsv, qrels: q.txt, run: r.txt, corpus: c.jsonl}]
training: {steps: 1, batch_size: 2}
"""


@pytest.fixture
def recipe_file(tmp_path):
    path = tmp_path / 'recipe.yaml'
    path.write_text(RECIPE)
    return path


class Source:
    """A query and two passages, of which the first is relevant."""

    def query(self, qid):
        return 'the cat'

    def texts(self, docids):
        return ['the cat sat', 'a dog']


@pytest.mark.usefixtures('installed')
def test_its_task_learns(recipe_file, tiny_checkpoint):
    recipe = read_recipe(recipe_file)
    base = open_checkpoint(tiny_checkpoint())
    task = task_class(recipe.system)(recipe, base.tokenizer(), [Source()], base.config)
    loss = task(task.collate([Instance(0, 'q', ('a', 'b'))]))
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    # A greater weight of shared words puts the relevant passage further ahead.
    assert task.ranker.weight.grad.item() < 0


def test_without_it_its_recipe_is_refused(recipe_file):
    with pytest.raises(InputError, match="system is 'shared-words', expected one of cedr, duobert"):
        read_recipe(recipe_file)


def test_without_it_its_option_is_unknown(checkpoint):
    with pytest.raises(InputError, match="there is no option 'most'"):
        parse_stage(f'{checkpoint}@10:most=2')
