"""A family of models from another package: named by an entry point, it reranks and explains."""

import json

import pytest

from pyserini_repbert.errors import InputError
from pyserini_repbert.explain import explanation
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.pipeline.spec import parse_stage
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.systems import registry

PACKAGE = '''
import numpy as np

from pyserini_repbert.data.values import integer
from pyserini_repbert.rerank import Reranker
from pyserini_repbert.systems.registry import StageOption, System


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


SYSTEM = System(
    name='shared-words',
    title='shared words',
    reranker='toy_family:SharedWords',
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
    yield
    registry.systems.cache_clear()


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


def test_without_it_its_option_is_unknown(checkpoint):
    with pytest.raises(InputError, match="'most' is no option"):
        parse_stage(f'{checkpoint}@10:most=2')
