"""How Java is started for a collection of many texts."""

import pytest

from pyserini_repbert import processes
from pyserini_repbert.collection import lucene_folder


@pytest.mark.jvm
@pytest.mark.parametrize('many', [2, 3])
def test_java_is_started_for_a_long_life_where_it_indexes_many_texts(
    monkeypatch, open_collection, many
):
    monkeypatch.setattr(processes, '_ends_soon', True)
    monkeypatch.setattr(processes, '_goes_on', False)
    monkeypatch.setattr(lucene_folder, '_MANY_TEXTS', many)
    with open_collection(sparse='bm25') as collection:
        collection.sync([('a', 'cat'), ('b', 'dog')])
    assert processes.is_to_end_soon() == (many > 2)
