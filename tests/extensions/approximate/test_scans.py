"""A scan is asked for by its name: of a searcher, of a spec, and of an index."""

import pytest
from vector_bundles import RowEncoder, clustered, write_bundle

from pyserini_repbert.commands import command
from pyserini_repbert.commands.search import main as search_command
from pyserini_repbert.errors import InputError
from pyserini_repbert.pipeline.resolving import resolve
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.search import DenseSearcher
from pyserini_repbert.search.scans import asked_scan, scans


def test_the_name_is_what_asks():
    assert list(scans()) == ['ann']
    assert PipelineSpec(index='mine', ann=True).scan == asked_scan({'ann': True}) == 'ann'
    assert PipelineSpec(index='mine').scan == asked_scan({'ann': False}) == ''


def test_an_unknown_scan_is_refused(tmp_path):
    vectors = clustered(10)
    folder = write_bundle(tmp_path / 'b', vectors)
    with pytest.raises(InputError, match="there is no way to search named 'nearest'") as raised:
        DenseSearcher(folder, RowEncoder(vectors), nearest=True)
    assert raised.value.parameters == ('nearest',)


def test_two_scans_are_refused(monkeypatch):
    both = {'ann': scans()['ann'], 'other': scans()['ann']}
    monkeypatch.setattr('pyserini_repbert.search.scans.scans', lambda: both)
    with pytest.raises(InputError, match='ann and other were asked for'):
        asked_scan({'ann': True, 'other': True})


def test_an_index_of_words_takes_none(tmp_path):
    (tmp_path / 'segments_1').touch()
    with pytest.raises(InputError) as raised:
        resolve(PipelineSpec(index=str(tmp_path), ann=True))
    expected = f"ann is for dense vectors, and '{tmp_path}' is a Lucene index: leave it out"
    assert (str(raised.value), raised.value.parameters) == (expected, ('ann',))


def test_it_is_on_one_machine(tmp_path, capsys):
    with pytest.raises(InputError, match="'ann' searches on one machine") as raised:
        DenseSearcher(tmp_path, spread=len, ann=True)
    assert raised.value.parameters == ('ann', 'ray')
    asked = ['--index', str(tmp_path), '--query', 'cat', '--ray', 'auto', '--ann']
    assert command.run(search_command, asked) == 2
    assert '--ray is for the exact search of an --index' in capsys.readouterr().err
