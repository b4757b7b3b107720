"""A phrase is a text: it is not a number, whatever it looks like."""

import pytest

from pyserini_repbert.collection import Collection

DOCUMENTS = [
    {'id': 'number', 'text': '', 'code': 2021},
    {'id': 'text', 'text': '', 'code': '2021'},
    {'id': 'phrase', 'text': '', 'code': 'Two Words'},
]


@pytest.mark.parametrize(
    ('filter', 'found'),
    [
        ('code:2021', ['number', 'text']),
        ('code:"2021"', ['text']),
        ('code:"two words"', ['phrase']),
        ('code:two', []),
    ],
)
def test_phrases(tiny_checkpoint, tmp_path, filter, found):
    from pyserini_repbert.collection.filters import DocumentFilter

    encoder = str(tiny_checkpoint('encoder'))
    with Collection.open(tmp_path / 'mine', encoder=encoder, sparse='none') as collection:
        collection.sync(DOCUMENTS)
        generation = collection.generation
        mask = DocumentFilter(filter).mask(generation)
        docids = generation.docids([number for number, kept in enumerate(mask) if kept])
    assert sorted(docids) == found
