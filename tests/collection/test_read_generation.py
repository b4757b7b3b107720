"""A `Collection` searches the generation that it reads, whatever others write meanwhile."""


def test_a_first_search_is_of_the_generation_that_is_read(open_collection, monkeypatch):
    with open_collection() as writing:
        writing.sync([('a', 'cat sat')])
        with open_collection() as reading:
            assert len(reading) == 1
            writing.add([('b', 'cat ran')])
            assert [hit.docid for hit in reading.search('cat')] == ['a']
            assert reading.refresh()
            assert {hit.docid for hit in reading.search('cat')} == {'a', 'b'}
