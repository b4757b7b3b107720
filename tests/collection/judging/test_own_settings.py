"""What a person sets for a collection: what is searched then, what is shown, and the way back."""

from dataclasses import replace

import pytest
from folders import N_QUESTIONS

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.judging.from_judgments import learn_from_judgments, use_learning
from pyserini_repbert.collection.judging.own_settings import (
    own_settings,
    set_settings,
    undo_settings,
)
from pyserini_repbert.collection.judgments import Judgment
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import InputError
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.resolving import resolve
from pyserini_repbert.pipeline.spec import PipelineSpec


def used(mine, **asked):
    """The spec that is run for a spec of these fields."""
    resolved = resolve(PipelineSpec(index=str(mine), **asked))
    resolved.close()
    return resolved.spec


def sources(mine):
    return {setting.name: (setting.value, setting.source) for setting in own_settings(mine)}


def test_what_is_set_counts_and_is_undone(mine):
    usual = sources(mine)
    assert usual == {
        'rankings': ('dense', 'default'),
        'aggregate': ('max', 'default'),
        'rerank': ('none', 'default'),
        'query map': ('none', 'default'),
    }
    set_settings(mine, {'aggregate': 'mean'})
    set_settings(mine, {'stages': ['monobert-demo@5']})
    spec = used(mine)
    assert spec.aggregate == 'mean'
    assert [str(stage) for stage in spec.stages] == ['monobert-demo@5']
    assert sources(mine)['aggregate'] == ('mean', 'set')
    assert sources(mine)['rerank'] == ('monobert-demo@5', 'set')
    check_collection(mine)
    undo_settings(mine)
    assert sources(mine)['aggregate'] == ('mean', 'set')
    assert used(mine).stages == ()
    undo_settings(mine)
    assert sources(mine) == usual
    with pytest.raises(InputError, match='has no stored settings'):
        undo_settings(mine)


def test_status_shows_what_is_set(mine, capsys):
    assert run(main, ['index', 'status', '--index', str(mine)]) == 0
    assert 'aggregate' not in capsys.readouterr().out
    set_settings(mine, {'aggregate': 'mean'})
    assert run(main, ['index', 'status', '--index', str(mine)]) == 0
    assert capsys.readouterr().out.endswith('\n  aggregate mean (set)\n')


def test_python_searches_as_it_is_set(mine):
    with Collection.open(mine) as collection:
        collection.sync([('long', 'w1 mat. ' * 200 + 'w2 cat. ' * 200)], 'more')
        before = collection.search('w1 mat', 60)
        set_settings(mine, {'aggregate': 'mean'})
        after = collection.search('w1 mat', 60)
        expected = collection.searcher(aggregate='mean').search('w1 mat', 60)
    hits = open_pipeline(PipelineSpec(index=str(mine))).pipeline.search('w1 mat', 60)
    values = [(hit.docid, hit.score) for hit in after]
    assert values == [(hit.docid, hit.score) for hit in expected]
    assert values == [(hit.docid, hit.score) for hit in hits]
    assert values != [(hit.docid, hit.score) for hit in before]


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        ({'rankings': ['bm25']}, 'built without Lucene'),
        ({'fusion': 'rrf'}, 'a fusion needs two rankings'),
        ({'b': 0.5}, 'k1 and b are for BM25'),
        ({'b': 2.0}, 'b is 2.0, a number from 0 to 1'),
        ({'k1': -1.0}, 'k1 is -1.0, a number from 0 on'),
        ({'stages': ['os:system@5']}, 'a collection can only name one of the catalog'),
        ({'stages': ['../folder@5']}, 'a collection can only name one of the catalog'),
        ({'stages': ['monobert-demo@101']}, 'K at most 100'),
        ({'stages': ['monobert-demo@5:weight=0.5']}, 'as NAME@K'),
    ],
)
def test_what_cannot_be_set_changes_nothing(mine, values, message):
    with pytest.raises(InputError, match=message):
        set_settings(mine, values)
    assert judgments_of(mine).learnings() == []


def test_settings_go_over_what_was_learned(mine):
    judgments = [Judgment(f'cat w{i}', f'wanted{i}', 2) for i in range(N_QUESTIONS)]
    judgments_of(mine).add(judgments)
    learn_from_judgments(mine)
    use_learning(mine, True, even_if_worse=True)
    learned = sources(mine)['query map']
    set_settings(mine, {'stages': ['monobert-demo@5']})
    assert sources(mine)['query map'] == learned
    assert used(mine).stages
    # The way of `adapt` ends at what was set before it learned: nothing.
    use_learning(mine, False)
    assert sources(mine)['rerank'] == ('none', 'default')
    set_settings(mine, {'stages': ['monobert-demo@5']})
    use_learning(mine, True, even_if_worse=True)
    assert sources(mine)['rerank'] == ('monobert-demo@5', 'set')
    assert sources(mine)['query map'] == learned
    set_settings(mine, {'aggregate': 'mean'})
    assert sources(mine)['query map'] == ('none', 'default')
    undo_settings(mine)
    use_learning(mine, False)
    assert sources(mine)['rerank'] == ('monobert-demo@5', 'set')


def test_settings_outlive_another_encoder(mine, tiny_checkpoint):
    set_settings(mine, {'aggregate': 'mean'})
    other = str(tiny_checkpoint('other', seed=7))
    with Collection.open(mine, encoder=other) as collection:
        collection.sync([('a', 'w1 cat')], 'new', rebuild=True)
    assert used(mine).aggregate == 'mean'


def test_the_command_sets_shows_and_goes_back(mine, capsys):
    def command(*arguments):
        status = run(main, ['index', 'settings', '--index', str(mine), *arguments])
        return status, capsys.readouterr()

    status, printed = command('--aggregate', 'mean', '--rerank', 'monobert-demo@5')
    assert status == 0
    assert printed.out == (
        f'{mine} is searched by:\n'
        '  rankings   dense            (default)\n'
        '  aggregate  mean             (set)\n'
        '  rerank     monobert-demo@5  (set)\n'
        '  query map  none             (default)\n'
    )
    status, printed = command('--go-back')
    assert '  aggregate  max    (default)\n' in printed.out
    status, printed = command('--go-back')
    assert (status, printed.out) == (2, '')
    assert 'has no stored settings' in printed.err
    status, printed = command('--rerank', 'evil:Class@5')
    assert status == 2
    assert 'name another one when you search' in printed.err


def test_a_number_of_another_hand_is_no_number_of_a_setting(mine):
    set_settings(mine, {'aggregate': 'mean'})
    store = judgments_of(mine)
    forged = replace(store.learnings()[0], number=2, report={'kind': 'settings'})
    store.add_learning(forged)
    store.use(2)
    undo_settings(mine)
    assert store.in_use() is None


@pytest.mark.jvm
def test_words_and_fusion_are_set(tiny_checkpoint, tmp_path):
    path = tmp_path / 'words'
    with Collection.open(path, encoder=str(tiny_checkpoint())) as collection:
        collection.sync([('a', 'the cat ' * 9), ('b', 'cat'), ('c', 'cat mat')])
        set_settings(path, {'b': 0.9, 'k1': 1.2})
        set_settings(path, {'rankings': ['bm25']})
        hits = collection.search('cat', 3)
    fresh = PipelineSpec(index=str(path), adapted='none', rankings=('bm25',), b=0.9, k1=1.2)
    expected = open_pipeline(fresh).pipeline.search('cat', 3)
    found = open_pipeline(PipelineSpec(index=str(path))).pipeline.search('cat', 3)
    values = [(hit.docid, hit.score) for hit in expected]
    assert [(hit.docid, hit.score) for hit in hits] == values
    assert [(hit.docid, hit.score) for hit in found] == values
    assert used(path, rankings=('bm25',)).b == 0.9
    assert used(path, rankings=('dense',)).b is None
    assert used(path, b=0.1).b == 0.1
    assert sources(path)['b'] == ('0.9', 'set')
    set_settings(path, {'fusion': 'rrf', 'rrf_k': 10.0})
    shown = sources(path)
    assert shown['rankings'] == ('dense bm25', 'default')
    assert shown['fusion'] == ('rrf, k 10', 'set')
    assert shown['k1'] == ('1.2', 'set')
    assert used(path).fusion_settings == used(path, fusion='rrf', rrf_k=10.0).fusion_settings
    with pytest.raises(InputError, match='two rankings'):
        set_settings(path, {'rankings': ['dense'], 'fusion': 'rrf'})
