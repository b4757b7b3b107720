"""A filter is evaluated once for a generation, whoever asks."""

import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.generation import open_generation
from pyserini_repbert.indexes.kind import SearchOptions, kind_of
from pyserini_repbert.indexes.machine import Machine

DOCUMENTS = [{'id': f'd{year}', 'text': 'the cat', 'year': year} for year in range(50)]


@pytest.fixture
def folder(tiny_checkpoint, tmp_path):
    with Collection.open(tmp_path / 'mine', encoder=tiny_checkpoint(), sparse='none') as opened:
        opened.sync(DOCUMENTS)
    return tmp_path / 'mine'


def test_a_filter_is_evaluated_once(folder, monkeypatch):
    evaluated = []
    evaluate = DocumentFilter._evaluate

    def counted(self, generation):
        evaluated.append(self.text)
        return evaluate(self, generation)

    monkeypatch.setattr(DocumentFilter, '_evaluate', counted)
    index = kind_of(str(folder)).open(str(folder), SearchOptions())
    wanted = DocumentFilter('year:[3 TO 5]')
    searcher = index.searcher(Machine())
    within = index.within(wanted)
    for ranking in (
        searcher.within(wanted),
        within.searcher(Machine()),
        within.ranking('dense', Machine()),
    ):
        assert {hit.docid for hit in ranking.search('cat', 10)} == {'d3', 'd4', 'd5'}
    index.close()
    assert evaluated == ['year:[3 TO 5]']


def test_the_last_masks_are_kept(folder):
    generation = open_generation(folder)
    first = DocumentFilter('year:1').mask(generation)
    assert DocumentFilter('year:1').mask(generation) is first
    for year in range(2, 40):
        DocumentFilter(f'year:{year}').mask(generation)
    assert DocumentFilter('year:1').mask(generation) is not first
    assert DocumentFilter('year:39').mask(generation) is DocumentFilter('year:39').mask(generation)
    generation.close()
