"""A collection is searched by what `adapt` stored, whichever of its rankings that names."""

from dataclasses import replace

import numpy as np
import pytest
from folders import write_files

from pyserini_repbert.adapt.learning import adapt
from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.judging import from_judgments
from pyserini_repbert.collection.judging.from_judgments import learn_from_judgments, use_learning
from pyserini_repbert.collection.judging.own_settings import OwnSetting, own_settings
from pyserini_repbert.collection.judgments import Judgment
from pyserini_repbert.collection.search_description import SearchedRankings
from pyserini_repbert.commands.adapt import main as adapt_command
from pyserini_repbert.extension import extensions
from pyserini_repbert.indexes.kind import SearchOptions, kind_of
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.search.adapted_folder import open_query_map, write_adapted

N_QUESTIONS = 24
QUESTION = 'cat w3'


@pytest.fixture
def make_folder(tiny_checkpoint, tiny_epic, tmp_path):
    """make_folder(**settings) -> a judged collection with a learned sparse ranking beside the dense
    one: no Java.
    """

    def make(**settings):
        documents = []
        for number in range(N_QUESTIONS):
            documents.append((f'plain{number}', f'w{number} cat'))
            documents.append((f'wanted{number}', f'w{number} mat sat the cat'))
        models = {'encoder': str(tiny_checkpoint()), 'sparse': str(tiny_epic('weighing'))}
        with Collection.open(tmp_path / 'mine', **models | settings) as collection:
            collection.sync(documents)
        judgments = [Judgment(f'cat w{i}', f'wanted{i}', 2) for i in range(N_QUESTIONS)]
        judgments_of(tmp_path / 'mine').add(judgments)
        return tmp_path / 'mine'

    return make


@pytest.fixture
def folder(make_folder):
    """A judged collection of a dense and a learned sparse ranking."""
    return make_folder()


@pytest.fixture
def let_win(monkeypatch):
    """let_win(name) makes a way of searching the best by far."""

    def make(name):
        def adapt_so(*given, **named):
            learnt = adapt(*given, **named)
            ones = np.ones(len(learnt.texts))
            untuned = replace(learnt.untuned, values={**learnt.untuned.values, name: ones})
            return replace(learnt, untuned=untuned, chosen=ones)

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
    assert learning.report['baseline'] == 'interpolation tiny+sparse alpha=0.6 background'
    before = hits_by(PipelineSpec(index=str(folder)))
    expected = hits_by(PipelineSpec(index=str(folder), **asked))
    assert expected != before
    use_learning(folder, True)
    assert hits_by(PipelineSpec(index=str(folder))) == expected
    with Collection.open(folder) as collection:
        searcher = collection.searcher()
        assert searcher.dense.query_map is None
        if 'confidence' in extensions():
            # It was learned for what is used.
            stored = learning.report['confidence']['model_of_offered']
            assert stored['search'] == SearchedRankings.of(searcher).description()
        searcher.close()
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


@pytest.fixture
def rescored(make_folder, tmp_path):
    """A judged collection that token vectors search, too."""
    pytest.importorskip('sentence_transformers')
    from sentence_folders import write_multi_vector

    return make_folder(multi_vector=write_multi_vector(tmp_path / 'late'))


def test_token_vectors_are_compared_with_and_not_learned_from(rescored, let_win):
    """What is used is what was measured: the other rankings, fused as learned."""
    learning = learn_from_judgments(rescored)
    report = learning.report
    assert report['baseline'] == 'rescored'
    assert {'tiny', 'sparse', 'with the query map', 'and fused'} < report['means'].keys()
    assert own_settings(rescored)[0] == OwnSetting('rankings', 'rescored', 'default')
    let_win('interleave sparse+tiny')
    learn_from_judgments(rescored)
    use_learning(rescored, True)
    assert own_settings(rescored)[0] == OwnSetting('rankings', 'sparse dense', 'learned')
    let_win('interleave tiny+sparse')
    learn_from_judgments(rescored)
    use_learning(rescored, True)
    assert own_settings(rescored)[0] == OwnSetting('rankings', 'dense sparse', 'learned')
    let_win('sparse')
    learn_from_judgments(rescored)
    use_learning(rescored, True)
    alone = hits_by(PipelineSpec(index=str(rescored), rankings=('sparse',)))
    assert hits_by(PipelineSpec(index=str(rescored))) == alone


def test_what_topics_teach_of_token_vectors_can_be_searched(rescored, tmp_path, capsys):
    topics = ''.join(f'{i}\tcat w{i}\n' for i in range(N_QUESTIONS))
    write_files(
        tmp_path,
        {
            'topics.tsv': topics,
            'qrels': ''.join(f'{i} 0 wanted{i} 2\n' for i in range(N_QUESTIONS)),
        },
    )
    arguments = ['--index', str(rescored), '--topics', str(tmp_path / 'topics.tsv')]
    arguments += ['--qrels', str(tmp_path / 'qrels'), '--output', str(tmp_path / 'learned')]
    adapt_command([*arguments, '--keep', '--quiet'])
    assert 'rescored (now)' in capsys.readouterr().out
    learned = PipelineSpec(index=str(rescored), adapted=str(tmp_path / 'learned'))
    assert len(hits_by(learned)) == 8


def test_a_map_that_was_learned_of_vectors_alone_is_searched_so(rescored, tmp_path):
    """An earlier release learned of the dense ranking alone beside token vectors."""
    index = kind_of(str(rescored)).open(str(rescored), SearchOptions())
    settings = index.generation.settings
    index.close()
    write_adapted(
        tmp_path / 'learned',
        np.zeros((settings.dimension, settings.dimension), np.float32),
        index=str(rescored),
        encoder=settings.encoder,
        encoder_weights=settings.weights_sha256,
        sparse=(),
        weights=(1.0,),
        depth=1000,
        estimate={},
    )
    # A map of zeros is not a map.
    assert open_query_map(tmp_path / 'learned', settings.dimension) is None
    learned = PipelineSpec(index=str(rescored), adapted=str(tmp_path / 'learned'))
    assert hits_by(learned) == hits_by(PipelineSpec(index=str(rescored), rankings=('dense',)))
