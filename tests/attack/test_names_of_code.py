"""A file never names the code that runs: not an adapted folder, and not a collection that was
received.
"""

from dataclasses import replace

import numpy as np
import pytest
from indexes import EPIC, epic

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import adaptation_in_use, judgments_of
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.judgments import Learning
from pyserini_repbert.commands import command
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.resolving import resolve
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.search.adapted_folder import write_adapted

EVIL = 'received.evil:X'


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """A file that is there once the received module was imported."""
    marker = tmp_path / 'imported'
    (tmp_path / 'received').mkdir()
    (tmp_path / 'received' / 'evil.py').write_text(f'open({str(marker)!r}, "w")\nX = None\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return marker


def adapted_folder(folder, weights_sha256='', **values):
    write_adapted(
        folder,
        np.zeros((16, 16), np.float32),
        index=str(folder.parent),
        depth=1000,
        estimate={},
        **{'encoder': 'tiny', 'sparse': (), 'weights': (1.0,)} | values,
        encoder_weights=weights_sha256,
    )
    return folder


NAMED = {
    'rerank': {'stages': (f'{EVIL}@10:weight=0.5',)},
    'sparse': {'sparse': ('bm25@lucene', f'{EVIL}@words'), 'weights': (0.4, 0.3, 0.3)},
    'encoder': {'encoder': f'{EVIL}@model'},
}


@pytest.mark.parametrize('flag', NAMED)
def test_an_adapted_folder_names_no_code(flag, imported, tmp_path, capsys):
    adapted_folder(tmp_path / 'mine', **NAMED[flag])
    arguments = ['search', '--adapted', 'mine', '--query', 'cat']
    assert command.run(main, arguments) == command.EXIT_ERROR
    said = capsys.readouterr().err
    assert said.startswith(f"error: mine/adapted.json names the code '{EVIL}@")
    assert said.endswith(f'if you know it, name it yourself (--{flag})\n')
    assert not imported.exists()


def test_what_one_adapted_oneself_is_named_again(imported, tmp_path):
    folder = adapted_folder(tmp_path / 'mine', **NAMED['rerank'])
    own = PipelineSpec(adapted=str(folder), stages=(f'{EVIL}@10:weight=0.5',))
    assert resolve(own).spec.stages == own.stages
    folder = adapted_folder(tmp_path / 'other', **NAMED['sparse'])
    own = PipelineSpec(adapted=str(folder), sparse=('bm25@moved', f'{EVIL}@words'))
    assert resolve(own).spec.sparse == own.sparse


def test_an_operator_of_a_service_allows_classes(imported, tmp_path):
    folder = adapted_folder(tmp_path / 'mine', **NAMED['rerank'])
    spec = resolve(PipelineSpec(adapted=str(folder)), allowed_classes=[EVIL]).spec
    assert str(spec.stages[0]) == f'{EVIL}@10:weight=0.5'
    # It is opened as it is.
    assert resolve(spec).spec == spec


def test_an_index_of_weights_of_terms_names_no_code(imported, tmp_path, capsys):
    epic(tmp_path / 'index', replace(EPIC, encoder=EVIL))
    arguments = ['explain', '--index', 'index', '--docid', 'd1', '--query', 'cat']
    assert command.run(main, arguments) == command.EXIT_ERROR
    assert f"error: index names the code '{EVIL}'" in capsys.readouterr().err
    assert not imported.exists()


@pytest.fixture
def collection(tiny_checkpoint, tmp_path):
    folder = tmp_path / 'received'
    with Collection.open(folder, encoder=tiny_checkpoint(), sparse='none') as opened:
        opened.sync([('a', 'the cat'), ('b', 'the mat')])
    return folder


def learn(collection, name='adapted/000001', **values):
    """Let a collection use what it seems to have learned."""
    with Collection.open(collection) as opened:
        settings = opened.generation.settings
    (collection / name).parent.mkdir(exist_ok=True)
    adapted_folder(
        collection / name, settings.weights_sha256, **{'encoder': settings.encoder} | values
    )
    store = judgments_of(collection)
    store.add_learning(Learning(1, name, '', 1, 1, settings.models_sha256, False, {}))
    store.use(1)


@pytest.fixture
def received(collection, tmp_path, monkeypatch):
    """A collection with code in it, and the file that is there once the code has run."""
    marker = tmp_path / 'imported'
    (collection / 'evil.py').write_text(f'open({str(marker)!r}, "w")\nX = None\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return collection, marker


@pytest.mark.parametrize(
    'values',
    [
        {'stages': (f'{EVIL}@10',)},
        {'sparse': (EVIL,), 'weights': (0.5, 0.5)},
        {'sparse': ('bm25@/other',), 'weights': (0.5, 0.5)},
        {'stages': ('monobert-large@1000',)},
    ],
)
def test_a_received_collection_names_no_code_and_no_other_index(received, values, capsys):
    folder, marker = received
    learn(folder, **values)

    def fails(*arguments):
        assert command.run(main, list(arguments)) == command.EXIT_ERROR
        return capsys.readouterr().err

    message = 'or search without what was learned (--adapted none)\n'
    assert fails('search', '--index', 'received', '--query', 'cat').endswith(message)
    with (
        Collection.open(folder) as opened,
        pytest.raises(DamagedFileError, match='is not a collection|no collection'),
    ):
        opened.search('cat')
    plain = PipelineSpec(index=str(folder), adapted='none')
    assert open_pipeline(plain).pipeline.search('cat', 1)
    check = ('index', 'check', '--index', 'received')
    assert 'received/evil.py is not part of a collection' in fails(*check)
    (folder / 'evil.py').unlink()
    assert 'received/adapted/000001/adapted.json names ' in fails(*check)
    assert not marker.exists()


def test_what_a_collection_learned_is_used(collection):
    learn(collection)
    with Collection.open(collection) as opened:
        assert adaptation_in_use(collection, opened.generation.settings).name == '000001'
    assert open_pipeline(PipelineSpec(index=str(collection))).pipeline.search('cat', 1)


@pytest.mark.parametrize('name', ['../outside', 'adapted/../../outside', 'shards', '/outside'])
def test_judgments_lead_to_no_other_folder(collection, name):
    learn(collection)
    learning = replace(judgments_of(collection).learnings()[0], number=2, folder=name)
    judgments_of(collection).add_learning(learning)
    judgments_of(collection).use(2)
    for read in (check_collection, lambda folder: open_pipeline(PipelineSpec(index=str(folder)))):
        with pytest.raises(DamagedFileError, match=r"judgments\.sqlite names the folder '"):
            read(collection)
