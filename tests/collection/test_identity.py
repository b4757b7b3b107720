"""A collection has an identity: a program goes on with the one that it has opened, and no other."""

import shutil

import pandas
import pytest

from pyserini_repbert.collection.copying import copy_collection
from pyserini_repbert.collection.generation import read_known
from pyserini_repbert.errors import DamagedFileError, LostCollectionError

CAT = [('a', 'cat')]


def test_an_identity_stays_and_a_copy_has_it(open_collection, tmp_path):
    with open_collection() as collection, open_collection('other') as other:
        collection.sync(CAT)
        identity = collection.generation.identity
        assert identity is not None
        assert collection.generation.manifest.identity == identity
        collection.add([('b', 'dog')])
        assert collection.generation.identity == identity
        copy_collection(collection.folder, tmp_path / 'copy')
        assert read_known(tmp_path / 'copy') == collection.generation.known
        other.sync(CAT)
        assert other.generation.identity != identity


def test_an_object_goes_on_with_its_collection_alone(open_collection, tmp_path):
    with open_collection() as collection:
        collection.sync(CAT)
        folder = collection.folder
        copy_collection(folder, tmp_path / 'backup')
        collection.add([('b', 'dog')])
        folder.rename(tmp_path / 'away')
        for change in (lambda: collection.add(CAT), lambda: collection.delete('a')):
            with pytest.raises(LostCollectionError, match='no longer holds a collection'):
                change()
        assert not folder.exists()
        (tmp_path / 'backup').rename(folder)
        with pytest.raises(LostCollectionError, match='generation 1, and generation 2 was there'):
            collection.refresh()
        folder.rename(tmp_path / 'older')
        open_collection().sync([('c', 'fish')])
        for change in (collection.refresh, lambda: collection.add(CAT)):
            with pytest.raises(LostCollectionError, match='no longer holds the collection'):
                change()
        folder.rename(tmp_path / 'another')
        (tmp_path / 'away').rename(folder)
        assert collection.add([('d', 'moon')]).generation == 3


def test_every_way_to_read_says_that_another_collection_is_there(open_collection):
    with open_collection() as collection, open_collection() as unsearched:
        collection.sync(CAT)
        assert [hit.docid for hit in collection.search('cat')] == ['a']
        assert unsearched.generation.number == 1
        shutil.rmtree(collection.folder)
        open_collection().sync([('b', 'cat')])
        frame = pandas.DataFrame({'qid': ['1'], 'query': ['cat']})
        for opened in (collection, unsearched):
            for read in (
                opened.refresh,
                opened.searcher,
                lambda opened=opened: opened.search('cat'),
                lambda opened=opened: opened.search(frame),
                lambda opened=opened: opened.more_like('a'),
            ):
                with pytest.raises(LostCollectionError, match='no longer .*: put it .* again'):
                    read()
    with open_collection() as again:
        assert [hit.docid for hit in again.search('cat')] == ['b']


def test_another_history_of_the_same_collection_is_not_gone_on_with(open_collection, tmp_path):
    with open_collection() as collection:
        collection.sync(CAT)
        copy_collection(collection.folder, tmp_path / 'copy')
        collection.add([('b', 'dog')])
        with open_collection('copy') as copy:
            copy.add([('b', 'fish')])
        collection.folder.rename(tmp_path / 'away')
        (tmp_path / 'copy').rename(collection.folder)
        with pytest.raises(LostCollectionError, match='holds another generation 2'):
            collection.add([('c', 'moon')])


def test_manifests_of_another_collection_are_damage(open_collection):
    with open_collection() as collection, open_collection('other') as other:
        collection.sync(CAT)
        other.sync(CAT)
    for name in ('generations', 'shards'):
        (collection.folder / name).rename(collection.folder / f'own-{name}')
        (other.folder / name).rename(collection.folder / name)
    with pytest.raises(DamagedFileError, match='sha256 differs'):
        open_collection().generation  # noqa: B018
