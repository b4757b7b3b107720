"""What extensions do in collections: after a publication, and with files of their own."""

import sys
import types

import pytest

from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.layout import collection_form
from pyserini_repbert.collection.parts import CollectionPart
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.extension import Extension, extensions


class Noted(CollectionPart):
    """Keeps a file, and notes what is published."""

    files = (r'notes\.txt',)

    def __init__(self):
        self.seen = []
        self.error = None

    def after_publication(self, collection):
        self.seen.append((collection.generation.number, len(collection)))
        if self.error is not None:
            raise self.error

    def check(self, generation):
        return [f'notes of generation {generation.number}']


@pytest.fixture
def noted(monkeypatch):
    """The part of an extension of a test."""
    package = types.ModuleType('noting')
    package.parts = types.ModuleType('noting.parts')
    package.parts.NOTED = Noted()
    monkeypatch.setitem(sys.modules, 'noting', package)
    monkeypatch.setitem(sys.modules, 'noting.parts', package.parts)
    noting = Extension(name='noting', package='noting', in_collections=('parts:NOTED',))
    known = {**extensions(), 'noting': noting}
    monkeypatch.setattr('pyserini_repbert.extension.extensions', lambda: known)
    collection_form.cache_clear()
    yield package.parts.NOTED
    collection_form.cache_clear()


def test_a_part_hears_of_each_generation_once(noted, open_collection):
    with open_collection() as collection:
        collection.add([('a', 'red cat'), ('b', 'blue sky')])
        collection.add([('a', 'red cat')])
        assert len(collection) == 2
        collection.delete('b')
    assert noted.seen == [(1, 2), (2, 1)]


def test_an_error_of_a_part_does_not_undo_what_was_published(noted, open_collection, caplog):
    noted.error = InputError('the moon is full')
    with open_collection() as collection:
        assert collection.add([('a', 'red cat')]).generation == 1
        assert len(collection) == 1
    assert 'generation 1 of' in caplog.text and 'is published: the moon is full' in caplog.text


def test_a_file_of_a_part_belongs_to_the_collection(noted, open_collection):
    with open_collection() as collection:
        collection.add([('a', 'red cat')])
    (collection.folder / 'notes.txt').write_text('one')
    assert check_collection(collection.folder).endswith('notes of generation 1')
    (collection.folder / 'others.txt').write_text('two')
    with pytest.raises(DamagedFileError, match=r'others\.txt is not part of a coll'):
        check_collection(collection.folder)
