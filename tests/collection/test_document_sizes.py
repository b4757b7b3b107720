"""Titles and fields have limits: they come with every hit."""

import json

import pytest

from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.passages import corpus_of
from pyserini_repbert.errors import InputError
from pyserini_repbert.names.corpora import open_corpus

MANY = {f'field{number}': number for number in range(1001)}
TOO_LARGE = [
    (MANY, "document 'd' has 1,001 fields, at most 1,000 are allowed"),
    ({'outer': [{'inner': MANY}]}, 'has 1,003 fields'),
    ({'field': 'é' * 500_000}, 'has 1,000,013 bytes of fields, at most 1,000,000 are allowed'),
    ({'title': 'x' * 10_001}, 'has a title of 10,001 characters, at most 10,000 are allowed'),
]


@pytest.mark.parametrize(('values', 'problem'), TOO_LARGE)
def test_a_document_that_is_too_large_is_named_with_its_line(tmp_path, values, problem):
    record = {'id': 'd', 'text': 'cat', **values}
    lines = [json.dumps({'id': 'small', 'text': 'cat'}), json.dumps(record)]
    path = tmp_path / 'corpus.jsonl'
    path.write_text('\n'.join(lines))
    corpus = open_corpus(path)
    with pytest.raises(InputError) as refused:
        list(corpus.documents())
    assert str(refused.value).startswith(f'{path}:2: document')
    assert problem in str(refused.value)
    with pytest.raises(InputError, match='document 1: '):
        list(corpus_of([record]).documents())


def test_documents_up_to_the_limits_are_taken():
    document = Document('d', 'cat', 'x' * 10_000, {'field': 'x' * 999_000, 'list': [1] * 100})
    wide = Document('e', 'cat', fields={f'field{number}': 1 for number in range(1000)})
    assert list(corpus_of([document, wide]).documents()) == [document, wide]


def test_a_collection_stays_as_it_was(open_collection):
    collection = open_collection()
    collection.sync([('a', 'cat sat')])
    with pytest.raises(InputError, match='1,001 fields'):
        collection.add([{'id': 'b', 'text': 'dog', **MANY}])
    assert len(collection) == 1
