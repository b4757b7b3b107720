"""A collection is searched by what `adapt` stored, whichever of its rankings that names."""

import numpy as np
import pytest

from pyserini_repbert.adapt import from_judgments
from pyserini_repbert.adapt.from_judgments import learn_from_judgments, use_learning
from pyserini_repbert.adapt.learning import adapt
from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.data.judgments import Judgment
from pyserini_repbert.indexes.kind import SearchOptions, kind_of
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec

N_QUESTIONS = 24
QUESTION = 'cat w3'


@pytest.fixture
def folder(tiny_checkpoint, tiny_epic, tmp_path):
    """A collection with a learned sparse ranking beside the dense one: no Java."""
    documents = []
    for number in range(N_QUESTIONS):
        documents.append((f'plain{number}', f'w{number} cat'))
        documents.append((f'wanted{number}', f'w{number} mat sat the cat'))
    settings = {'encoder': str(tiny_checkpoint()), 'sparse': str(tiny_epic('weighing'))}
    with Collection.open(tmp_path / 'mine', **settings) as collection:
        collection.sync(documents)
    judgments = [Judgment(f'cat w{i}', f'wanted{i}', 2) for i in range(N_QUESTIONS)]
    judgments_of(tmp_path / 'mine').add(judgments)
    return tmp_path / 'mine'


@pytest.fixture
def let_win(monkeypatch):
    """let_win(name) makes a way of searching the best by far."""

    def make(name):
        def adapt_so(*given, **named):
            learnt = adapt(*given, **named)
            ones = np.ones(len(learnt.texts))
            values = {**vars(learnt), 'untuned': {**learnt.untuned, name: ones}, 'chosen': ones}
            return type(learnt)(**values)

        monkeypatch.setattr(from_judgments, 'adapt', adapt_so)

    return make


def hits_of(ranker):
    ranking = ranker.search(QUESTION, 8)
    return [(hit.docid, round(hit.score, 5)) for hit in ranking]


def hits_by(spec):
    pipeline = open_pipeline(spec).pipeline
    hits = hits_of(pipeline)
    pipeline.close()
    return hits


@pytest.mark.parametrize(
    ('winner', 'asked'),
    [
        ('tiny', {'rankings': ('dense',)}),
        ('sparse', {'rankings': ('sparse',)}),
        ('rrf tiny+sparse k=60', {'fusion': 'rrf'}),
        ('interleave sparse+tiny', {'fusion': 'interleave', 'rankings': ('sparse', 'dense')}),
        (
            'interpolation tiny+sparse alpha=0.7 zscore',
            {'fusion': 'interpolation', 'alpha': 0.7, 'normalize': 'zscore'},
        ),
    ],
)
def test_an_untuned_way_that_wins_is_how_the_collection_is_searched(folder, let_win, winner, asked):
    """By commands and other programs, from Python, and in the service."""
    let_win(winner)
    learning = learn_from_judgments(folder)
    assert learning.report['winner'] == winner
    assert learning.report['baseline'] == 'interpolation tiny+sparse alpha=0.6 max'
    before = hits_by(PipelineSpec(index=str(folder)))
    expected = hits_by(PipelineSpec(index=str(folder), **asked))
    assert expected != before
    use_learning(folder, True)
    assert hits_by(PipelineSpec(index=str(folder))) == expected
    named = PipelineSpec(index=str(folder), adapted=str(folder / learning.folder))
    assert hits_by(named) == expected
    with Collection.open(folder) as collection:
        assert hits_of(collection) == expected
    index = kind_of(str(folder)).open(str(folder), SearchOptions())
    assert hits_of(index.as_learned(index.learned(), Machine())) == expected
    index.close()
    use_learning(folder, False)
    assert hits_by(PipelineSpec(index=str(folder))) == before


def test_the_search_as_it_is_now_is_what_is_used(folder, let_win):
    """Once a ranking alone is used, the next learning is compared with that."""
    before = learn_from_judgments(folder).report['means']
    let_win('sparse')
    learn_from_judgments(folder)
    use_learning(folder, True)
    report = learn_from_judgments(folder).report
    assert report['means'][report['baseline']] == before['sparse']
