"""Who decides how a search runs: what a user says, then a folder of `adapt` or what a collection
learned or is set to, then the index.
"""

import numpy as np
import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import ADAPTATIONS, judgments_of
from pyserini_repbert.collection.index.collection_index import CollectionIndex
from pyserini_repbert.collection.judging.own_settings import set_settings
from pyserini_repbert.collection.judgments import Learning
from pyserini_repbert.errors import InputError, UnknownNameError
from pyserini_repbert.indexes import kind
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.resolving import resolve
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.search.adapted_folder import write_adapted

LEARNED = {'weights': (0.9, 0.1), 'depth': 700}


@pytest.fixture
def collection(tiny_checkpoint, tmp_path):
    """A collection with a dense ranking alone: no Java."""
    folder = tmp_path / 'mine'
    with Collection.open(folder, encoder=tiny_checkpoint(), sparse='none') as opened:
        opened.sync([('a', 'the cat'), ('b', 'the mat')])
    return folder


@pytest.fixture
def write(tmp_path):
    """write(name, **values) -> a folder of `adapt`."""

    def make(folder, **values):
        given = {
            'index': 'elsewhere',
            'encoder': 'their-encoder',
            'sparse': ('bm25@lucene',),
            'stages': ('monobert@10:weight=0.5',),
            **LEARNED,
            **values,
        }
        write_adapted(
            folder, np.eye(16, dtype=np.float32), encoder_weights='', estimate={}, **given
        )
        return str(folder)

    return make


@pytest.fixture
def learned(collection, write):
    """The folder of what the collection learned and uses."""
    with Collection.open(collection) as opened:
        weights = opened.generation.settings.models_sha256
    name = f'{ADAPTATIONS}/000001'
    (collection / ADAPTATIONS).mkdir()
    folder = write(
        collection / name, index=str(collection), sparse=(), stages=(), weights=(1.0,), depth=1000
    )
    store = judgments_of(collection)
    store.add_learning(
        Learning(
            number=1,
            folder=name,
            learned='2026-01-01T00:00:00.000+00:00',
            generation=1,
            judgments=20,
            encoder_weights=weights,
            in_use=False,
            report={},
        )
    )
    store.use(1)
    return folder


def used(**asked):
    """The spec that is run for a spec of these fields."""
    resolved = resolve(PipelineSpec(**asked))
    resolved.close()
    return resolved.spec


def test_a_spec_of_a_bundle_is_run_as_it_is():
    asked = PipelineSpec(index='some/bundle', sparse=('bm25@lucene',), fusion='rrf', depth=10)
    resolved = resolve(asked)
    assert resolved.spec == resolved.asked == asked


def test_the_folder_decides_what_the_user_does_not_say(write, tmp_path):
    folder = write(tmp_path / 'adapted')
    spec = used(adapted=folder)
    assert (spec.index, spec.encoder) == ('elsewhere', 'their-encoder')
    assert spec.sparse == ('bm25@lucene',)
    assert [str(stage) for stage in spec.stages] == ['monobert@10:weight=0.5']
    assert (spec.fusion, spec.weights, spec.depth) == ('interpolation', (0.9, 0.1), 700)


def test_the_user_wins_over_the_folder(write, tmp_path):
    own = {'index': 'moved', 'encoder': 'own', 'sparse': ('bm25@moved',)}
    spec = used(adapted=write(tmp_path / 'adapted'), stages=('monobert@5',), **own)
    assert {name: getattr(spec, name) for name in own} == own
    assert [str(stage) for stage in spec.stages] == ['monobert@5']


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('fusion', 'rrf'),
        ('alpha', 0.3),
        ('weights', (0.5, 0.5)),
        ('depth', 5),
        ('normalize', 'none'),
    ],
)
def test_how_a_folder_fuses_is_not_changed(write, tmp_path, name, value):
    with pytest.raises(InputError, match='decides how rankings are fused') as raised:
        used(adapted=write(tmp_path / 'adapted'), **{name: value})
    assert raised.value.parameters == (name,)


def test_a_collection_is_searched_as_it_learned(collection, learned):
    asked = PipelineSpec(index=str(collection))
    resolved = resolve(asked)
    resolved.close()
    assert resolved.asked.adapted is None
    assert resolved.spec.adapted == learned
    assert resolved.spec.rankings == ('dense',)


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('fusion', 'interleave'),
        ('fusion', 'rrf'),
        ('rankings', ('dense',)),
        ('aggregate', 'mean'),
        ('prf', 'average'),
        ('depth', 10),
        ('adapted', 'none'),
    ],
)
def test_a_user_who_chooses_does_not_get_what_was_learned(collection, learned, name, value):
    spec = used(index=str(collection), **{name: value})
    assert spec.adapted is None
    if name != 'adapted':
        assert getattr(spec, name) == value


def test_another_folder_wins_over_what_was_learned(collection, learned, write, tmp_path):
    folder = write(tmp_path / 'adapted', sparse=(), stages=(), weights=(1.0,))
    assert used(index=str(collection), adapted=folder).adapted == folder


@pytest.fixture
def set_collection(collection):
    """A collection that is set to another aggregation, and to a reranker."""
    set_settings(collection, {'aggregate': 'mean', 'stages': ['monobert-demo@5']})
    return collection


def stages(spec):
    return [str(stage) for stage in spec.stages]


def test_a_collection_is_searched_as_it_is_set(set_collection):
    spec = used(index=str(set_collection))
    assert spec.aggregate == 'mean'
    assert stages(spec) == ['monobert-demo@5']


def test_flags_win_over_settings(set_collection):
    spec = used(index=str(set_collection), stages=('monobert-demo@3',))
    assert stages(spec) == ['monobert-demo@3']
    assert spec.aggregate == 'mean'
    # Rankings, aggregation and fusion are one choice; a reranker is another.
    spec = used(index=str(set_collection), rankings=('dense',))
    assert stages(spec) == ['monobert-demo@5']
    assert spec.aggregate == 'max'
    spec = used(index=str(set_collection), aggregate='top3')
    assert spec.aggregate == 'top3'


def test_a_search_without_an_adaptation_is_without_settings(set_collection):
    spec = used(index=str(set_collection), adapted='none')
    assert (spec.aggregate, stages(spec)) == ('max', [])


def test_settings_are_of_the_collection_alone(set_collection):
    spec = used(index=str(set_collection), sparse=('bm25@lucene',))
    assert (spec.aggregate, stages(spec)) == ('max', [])


def test_a_named_folder_wins_over_settings(set_collection, write, tmp_path):
    folder = write(tmp_path / 'adapted', sparse=(), stages=(), weights=(1.0,))
    spec = used(index=str(set_collection), adapted=folder)
    assert (spec.aggregate, stages(spec)) == ('max', [])


def test_one_resolution_opens_a_collection_once(collection, learned, monkeypatch):
    from pyserini_repbert.collection.index import collection_index

    opened = []
    open_generation = collection_index.open_generation

    def counted(*arguments):
        opened.append(arguments)
        return open_generation(*arguments)

    monkeypatch.setattr(collection_index, 'open_generation', counted)
    resolve(PipelineSpec(index=str(collection))).close()
    assert len(opened) == 1


def test_what_cannot_be_opened_releases_the_index(collection, monkeypatch):
    closed = []
    close = CollectionIndex.close

    def counted(self):
        closed.append(self.location)
        close(self)

    monkeypatch.setattr(CollectionIndex, 'close', counted)
    with pytest.raises(UnknownNameError, match='no-such-reranker'):
        open_pipeline(PipelineSpec(index=str(collection), stages=('no-such-reranker@5',)))
    assert closed == [str(collection)]


@pytest.mark.parametrize(
    ('name', 'value', 'purpose'),
    [
        ('rankings', ('dense',), 'a collection'),
        ('aggregate', 'mean', 'a collection'),
        ('filter', 'a:b', 'a collection'),
        ('only_ids', 'ids.txt', 'a collection'),
        ('not_ids', 'ids.txt', 'a collection'),
        ('max_length', 5, 'a model that reads queries'),
    ],
)
def test_a_kind_refuses_what_it_does_not_take(name, value, purpose, tmp_path):
    index = tmp_path / 'lucene'
    index.mkdir()
    (index / 'segments_1').touch()
    with pytest.raises(InputError) as raised:
        used(index=str(index), **{name: value})
    expected = f"{name} is for {purpose}, and '{index}' is a Lucene index: leave it out"
    assert (str(raised.value), raised.value.parameters) == (expected, (name,))


def test_settings_of_an_index_need_one():
    with pytest.raises(InputError, match='filter is for a collection'):
        used(sparse=('bm25@lucene',), filter='a:b')


def test_an_encoder_searches_an_index():
    with pytest.raises(InputError, match="encoder 'minilm' was named, and no index") as raised:
        used(encoder='minilm', sparse=('bm25@lucene',))
    assert raised.value.parameters == ('index',)


def test_kinds_register_themselves():
    assert set(kind.kinds()) == {'collection', 'dense', 'lucene', 'several', 'term_weights'}
