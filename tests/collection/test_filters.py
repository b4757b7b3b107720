"""Filters: what they mean, what is refused, and that every ranking answers within them."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pyserini_repbert.collection import filters
from pyserini_repbert.collection.bm25_search import FilteredBm25
from pyserini_repbert.collection.field_counts import FieldCounter
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.fusing import fuse
from pyserini_repbert.ranking import Query, Ranker, by_score

DOCUMENTS = [
    {'id': 'a', 'text': 'cat', 'type': 'guide', 'year': 2019, 'tags': ['Red', 'moon sea']},
    {'id': 'b', 'text': 'dog', 'type': 'Guide', 'year': 2021.5, 'day': '2021-03-05', 'draft': True},
    {'id': 'c/1', 'text': 'mat', 'type': 'note', 'year': '2021', 'day': '2022-01-01T10:00'},
    {'id': 'd', 'text': 'sea', 'author': {'name': 'Ü. Öz'}, 'day': '2021-12-31', 'draft': False},
    {'id': 'e', 'text': 'sky', 'path': 'guides/one:two.md', 'og:depth': -3},
]
MEANINGS = {
    'type:guide': 'ab',
    'type:GUIDE': 'ab',
    'type:gui*': 'ab',
    'type:gui': '',
    'type:(guide OR note)': 'abc',
    'type:*': 'abc',
    'NOT type:*': 'de',
    '-type:guide': 'cde',
    '+type:guide -year:2019': 'b',
    'year:2019': 'a',
    'year:2019.0': 'a',
    'year:2021': 'c',
    'year:"2019"': '',
    'year:"2021"': 'c',
    'year:[2019 TO 2021.5]': 'ab',
    'year:{2019 TO 2021.5]': 'b',
    'year:[* TO 2020]': 'a',
    'year:>2019': 'b',
    'year:<=2019': 'a',
    'day:[2021 TO 2021]': 'bd',
    'day:[2021-03-05 TO 2022-01-01]': 'bcd',
    'day:{2021-03-05 TO 2021-12-31}': '',
    'day:2021-03*': 'b',
    'day:2021': 'bd',
    'day:"2021"': 'bd',
    'day:2021-03': 'b',
    'day:2022-01-01': 'c',
    'day:2022-01-01T10:00': 'c',
    'day:20': '',
    'day:2021-03-0': '',
    'day:[2022-01-01T09:00 TO *]': 'c',
    'tags:red': 'a',
    'tags:"moon sea"': 'a',
    'tags:moon': '',
    'tags:moon*': 'a',
    'draft:true': 'b',
    'draft:false': 'd',
    'author.name:"ü. öz"': 'd',
    r'path:guides\/one\:two.md': 'e',
    'path:"guides/one:two.md"': 'e',
    r'og\:depth:[-3 TO -3]': 'e',
    r'og\:depth:-3': 'e',
    r'og\:depth:-3.0 AND path:*': 'e',
    r'(og\:depth:-3)': 'e',
    r'og\:depth:>-4': 'e',
    r'og\:depth:>= -3': 'e',
    r'og\:depth:(>-4 AND <-2)': 'e',
    r'og\:depth:<-3': '',
    r'og\:depth:(\-3 OR 5)': 'e',
    r'og\:depth:(NOT 3 AND >-4)': 'e',
    r'og\:depth:(+[-3 TO 3] -2)': 'e',
    '"og:depth":>-4': 'e',
    '"og:depth":-3 AND "path":*': 'e',
    'NOT ("type":guide)': 'cde',
    'path:"a \\":b"': '',
    "tags:'moon sea'": 'a',
    "tags:'moon sea' AND type:'guide'": 'a',
    "docid:'c/*'": 'c',
    'docid:"c/*"': 'c',
    'year:-2019': '',
    '-year:2019 AND -draft:true': 'cde',
    'path:"a:-3"': '',
    'year:2_019': '',
    'NOT type:guide OR year:2019': 'acde',
    '(-type:guide) OR year:2019': 'acde',
    'docid:a': 'a',
    'docid:"c/1"': 'c',
    'docid:c*': 'c',
    'docid:never': '',
    'type:guide AND year:[2020 TO *] OR docid:e': 'be',
    '(type:guide AND NOT year:2019) OR (type:note AND day:*)': 'bc',
}


@pytest.fixture
def collection(open_collection):
    with open_collection() as opened:
        opened.sync([*DOCUMENTS, {'id': 'gone', 'text': 'x', 'type': 'guide', 'old': 1}])
        opened.delete('gone')
        yield opened


def allowed(collection, **wanted):
    generation = collection.generation
    mask = DocumentFilter(**wanted).mask(generation)
    return ''.join(docid[0] for docid in sorted(generation.docids(np.flatnonzero(mask))))


@pytest.mark.parametrize(('text', 'expected'), MEANINGS.items(), ids=list(MEANINGS))
def test_what_a_filter_means(collection, text, expected):
    assert allowed(collection, text=text) == expected


def test_a_field_with_a_name_of_the_syntax(open_collection):
    """A field that is called docid could not be asked for: docids were."""
    names = ('docid', 'AND', 'OR', 'NOT', 'TO')
    with open_collection() as opened:
        opened.sync(
            [
                {'id': 'a', 'text': 'cat', **dict.fromkeys(names, 'b')},
                {'id': 'b', 'text': 'dog', **dict.fromkeys(names, 7)},
            ]
        )
        assert allowed(opened, text='docid:b') == 'b'
        for name in names:
            assert allowed(opened, text=rf'\{name}:b') == 'a'
            assert allowed(opened, text=rf'\{name}:(b OR [6 TO *])') == 'ab'
            assert allowed(opened, text=rf'\{name}:b*') == 'a'
            assert allowed(opened, text=rf'NOT \{name}:* OR docid:a') == 'a'
        with pytest.raises(InputError, match=r'the fields are docid, AND, NOT, OR, TO, \\docid'):
            allowed(opened, text='kind:b')
        # A range is of values, which docids are not.
        with pytest.raises(InputError, match='values of type text'):
            allowed(opened, text='docid:[6 TO *]')


def test_a_field_is_named_in_quotes(open_collection):
    """An escaped name was the only way; a path with a space found nothing."""
    with open_collection() as collection:
        collection.sync(
            [
                {'id': 'a', 'text': 'cat', 'Body Mass (g)': 6100, "it's": 'x'},
                {'id': 'Backup%20docs/b', 'text': 'cat', 'Body Mass (g)': 5000},
            ]
        )
        for text, expected in (
            ('"Body Mass (g)":>6000', 'a'),
            (r'Body\ Mass\ \(g\):>6000', 'a'),
            ('"it\'s":x', 'a'),
            ("docid:'Backup docs/*'", 'B'),
            ('docid:"Backup docs/b"', 'B'),
            ('docid:Backup%20docs/*', 'B'),
        ):
            assert allowed(collection, text=text) == expected, text


def test_files_of_docids_meet_the_filter(collection):
    assert allowed(collection, only_ids=frozenset({'a', 'b', 'gone', 'never'})) == 'ab'
    assert allowed(collection, not_ids=frozenset({'a', 'never'})) == 'bcde'
    both = {'only_ids': frozenset('ab'), 'not_ids': frozenset('b')}
    assert allowed(collection, text='type:guide', **both) == 'a'


def test_a_filter_that_no_document_matches_is_said(collection, caplog):
    """A search of all rankings, or of one, says why there are no hits."""
    for wanted, warning in (
        (
            DocumentFilter('type:gui'),
            "no document matches filter 'type:gui': 'type' has the values guide, note",
        ),
        (DocumentFilter('year:[9 TO 2]'), "no document matches filter 'year:[9 TO 2]'"),
        (
            DocumentFilter('type:guide', not_ids=frozenset('ab')),
            "no document matches filter 'type:guide' within the lists of docids",
        ),
        (DocumentFilter(only_ids=frozenset()), 'the lists of docids leave no document'),
        (DocumentFilter('type:guide'), None),
        (DocumentFilter(not_ids=frozenset({'a'})), None),
    ):
        caplog.clear()
        searcher = collection.searcher(rankings=['dense']).within(wanted)
        hits = searcher.search('cat', 3)
        assert bool(hits) == (warning is None)
        assert caplog.messages == ([] if warning is None else [warning])
        searcher.close()


def test_values_of_many_documents_are_not_counted(collection, monkeypatch):
    """It would take as long as the collection is large, for each such search."""
    wanted = DocumentFilter('type:gui')
    assert wanted.warnings(collection.generation)[0].endswith(": 'type' has the values guide, note")
    monkeypatch.setattr(filters, '_MOST_COUNTED', len(collection) - 1)
    assert wanted.warnings(collection.generation) == ["no document matches filter 'type:gui'"]


REFUSED = {
    'yaer:2020': r"there is no field 'yaer' \(did you mean 'year' or 'type'\?\): the fields are",
    'old:1': "there is no field 'old'",
    'guide': "'guide' names no field: the fields are",
    'type:moon sea': 'write AND or OR between its parts',
    'type:guide year:2019': 'write AND or OR between its parts',
    'type:"guide': 'cannot be read',
    'type:(guide': 'cannot be read',
    'type:[a TO b]': "field 'type' has values of type text; a range needs numbers, or ISO dates",
    'day:[1 TO 2]': "field 'day' has values of type date",
    # It was taken, and found nothing.
    'day:[2026-13 TO *]': r"'day:\[2026-13 TO \*\]': the calendar has no date '2026-13': give",
    'day:[* TO 2026-02-31]': "the calendar has no date '2026-02-31'",
    'day:>=2026-00-01': "the calendar has no date '2026-00-01'",
    'day:[2026-01-01T25:00 TO *]': "the calendar has no date '2026-01-01T25:00'",
    r'og\:depth:3*': "field 'og:depth' has values of type number; a prefix needs texts or dates",
    'type:g*e': r'a \* can only end a value',
    'type:gu?de': r'a \* can only end a value',
    'type:guide~': 'regular expressions, fuzzy words and weights are not supported',
    'type:guide^2': 'regular expressions, fuzzy words and weights are not supported',
    'type:/g.*/': 'regular expressions, fuzzy words',
    'type:-guide': r'write -type:guide, or type:\\-guide for a value that begins with -',
    '+type:guide OR draft:true': 'beside OR, write NOT instead of -, and leave',
    'draft:true OR -type:guide': 'beside OR, write NOT instead of -',
    'type:(+guide OR note)': 'beside OR, write NOT instead of -',
    'type:+guide': r'write \+type:guide, or type:',
    'year:(-2019 OR 5)': r'write \\-2019 for the number, or NOT 2019',
    'year:(-2019)': r'write \\-2019 for the number, or NOT 2019',
    'type:gui\0de': r'the character U\+0000',
    'type:(day:2021)': "is inside field 'type'",
    ' ': 'the filter is empty',
    '(' * 60 + 'type:guide' + ')' * 60: 'more than 50 nested parentheses',
    'NOT ' * 2400 + 'type:guide': 'has too many signs before one value: write one',
    '-' * 9000 + 'type:guide': 'has too many signs before one value: write one',
    'type:guide' + '^2' * 1000: 'has too many signs|weights are not supported',
    'type:x OR ' * 2000 + 'type:x': 'characters, at most 10000 are read',
}


@pytest.mark.parametrize(('text', 'message'), REFUSED.items(), ids=[text[:20] for text in REFUSED])
def test_what_is_refused(collection, text, message):
    with pytest.raises(InputError, match=message) as caught:
        allowed(collection, text=text)
    assert '\n' not in str(caught.value)


def test_whole_numbers_are_compared_exactly(open_collection):
    """Floats have 53 bits, identifiers in JSON up to 64: neighbours are different numbers."""
    numbers = {
        'a': 2**53,
        'b': 2**53 + 1,
        'c': 2**63 - 1,
        'd': -(2**53) - 1,
        'e': 10**30,
        'f': 2.0**53,
    }
    with open_collection() as collection:
        collection.sync([{'id': key, 'text': 'x', 'n': value} for key, value in numbers.items()])
        assert allowed(collection, text=f'n:{2**53}') == 'af'
        assert allowed(collection, text=f'n:{2**53 + 1}') == 'b'
        assert allowed(collection, text=f'n:{2**53 + 1}.0') == 'af'
        assert allowed(collection, text=f'n:>{2**53}') == 'bce'
        assert allowed(collection, text=f'n:[{2**63 - 1} TO {2**63 - 1}]') == 'c'
        assert allowed(collection, text=f'n:-{2**53 + 1}') == 'd'
        assert allowed(collection, text='n:1e30') == 'e'
        assert allowed(collection, text=f'n:{10**30}') == 'e'


def test_a_time_comes_after_a_space_or_a_t(open_collection):
    days = {'a': '2024-03-05 10:00', 'b': '2024-03-05T11:00', 'c': '2024-03-05', 'd': '2024-03-06'}
    days['e'] = '2025-01-02 10:00:00 +0200'
    with open_collection() as collection:
        collection.sync([{'id': key, 'text': 'x', 'day': day} for key, day in days.items()])
        for text, expected in {
            'day:[2024-03-05T09:00 TO 2024-03-05T12:00]': 'ab',
            'day:[2024-03-05T10:30 TO *]': 'bde',
            'day:["2025-01-02 10:00:00 +0200" TO *]': 'e',
            'day:"2025-01-02 10:00:00 +0200"': 'e',
            'day:["2024-03-05 09:00" TO "2024-03-05 10:30"]': 'a',
            'day:2024-03-05T10:00': 'a',
            'day:"2024-03-05 10:00"': 'a',
            'day:"2024-03-05 11:00"': 'b',
            'day:2024-03-05T1*': 'ab',
            r'day:2024-03-05\ 1*': 'ab',
        }.items():
            assert allowed(collection, text=text) == expected, text


NUMBERS = itertools.count()


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    st.integers(1, 12),
    st.sampled_from(['kind:0', 'kind:[1 TO *]', 'kind:*', 'NOT kind:*', 'kind:7']),
    st.sampled_from(['max', 'first', 'mean', 'top3']),
)
def test_a_dense_ranking_within_a_filter_is_the_filtered_one(
    open_collection, seed, n_documents, k, text, aggregate
):
    random = np.random.default_rng(seed)
    words = 'cat dog ran mat red moon'.split()
    documents = []
    for number in range(n_documents):
        document = {'id': f'd{number}', 'text': ' '.join(random.choice(words, 25))}
        if random.random() < 0.8:
            document['kind'] = int(random.integers(0, 8) == 7) * 7 or int(random.integers(0, 3))
        documents.append(document)
    with open_collection(f'f{next(NUMBERS)}') as collection:
        collection.sync(
            [*documents, {'id': 'any', 'text': '', 'kind': 0}, {'id': 'un', 'text': ''}]
        )
        collection.delete('d0')
        searcher = collection.searcher(aggregate=aggregate)
        mask = DocumentFilter(text).mask(collection.generation)
        kept = set(collection.generation.docids(np.flatnonzero(mask)))
        whole = searcher.search('red cat', 100)
        expected = [(hit.docid, hit.score) for hit in whole if hit.docid in kept][:k]
        found = searcher.within(DocumentFilter(text)).search('red cat', k)
        assert [(hit.docid, hit.score) for hit in found] == expected
        searcher.close()


class CountedRanking(Ranker):
    """A first stage of 100 hits, which says how deep it was asked."""

    size = 100
    name = 'bm25'

    def __init__(self):
        self.depths = []

    def _rank(self, topics, run, k, trace):
        self.depths.append(k)
        docids = [f'd{number:03}' for number in range(100)]
        ranking = by_score(docids, [float(-number) for number in range(100)])
        return {topic.qid: ranking[:k] for topic in topics}


class Documents:
    """A generation of documents d000 to d099."""

    def docids(self, docnos):
        return [f'd{docno:03}' for docno in docnos]

    def are_among(self, documents, docids):
        return documents[[int(docid[1:]) for docid in docids]]


@pytest.mark.parametrize('k', [1, 10, 50, 200])
def test_bm25_deepens_until_there_are_k_allowed_hits(k):
    mask = np.arange(100) >= 50
    searcher = CountedRanking()
    ranker = FilteredBm25(searcher, Documents(), mask)
    found = ranker.rank([Query('1', 'x')], None, k)['1']
    assert found.docids == tuple(f'd{number:03}' for number in range(50, 50 + min(k, 50)))
    assert len(searcher.depths) <= 3


def test_bm25_without_an_allowed_document_asks_nobody():
    searcher = CountedRanking()
    ranker = FilteredBm25(searcher, Documents(), np.zeros(100, np.bool_))
    assert ranker.rank([Query('1', 'x')], None, 5) == {'1': by_score([], [])}
    assert searcher.depths == []


@pytest.mark.jvm
@pytest.mark.parametrize(
    'text', ['share:few', 'share:many', 'NOT share:few', 'share:none'], ids=lambda text: text
)
def test_bm25_and_the_fusion_answer_within_a_filter(open_collection, text):
    """Of 300 documents, 6 are few: Lucene gets their ids; else hits are left out afterwards."""
    random = np.random.default_rng(4)
    words = 'cat dog ran mat red moon sea'.split()
    documents = []
    for number in range(300):
        share = 'few' if number % 50 == 3 else 'many' if number % 2 else 'rest'
        chosen = ' '.join(random.choice(words, random.integers(3, 12)))
        documents.append({'id': f'd{number:03}', 'text': chosen, 'share': share})
    with open_collection(sparse='bm25', passage_tokens=50) as collection:
        collection.sync([*documents, {'id': 'x', 'text': 'zebra', 'share': 'none'}])
        mask = DocumentFilter(text).mask(collection.generation)
        kept = set(collection.generation.docids(np.flatnonzero(mask)))
        query = Query('1', 'red cat')
        rankings = {}
        for name in ('dense', 'bm25'):
            searcher = collection.searcher(rankings=[name])
            whole = searcher.rank([query], None, None)['1']
            found = searcher.within(DocumentFilter(text)).rank([query], None, 20)['1']
            expected = [hit for hit in whole if hit.docid in kept][:20]
            assert [hit.docid for hit in found] == [hit.docid for hit in expected]
            assert [hit.score for hit in found] == pytest.approx(
                [hit.score for hit in expected], abs=1e-4
            )
            rankings[name] = searcher.within(DocumentFilter(text)).rank([query], None, 1000)
            searcher.close()
        hybrid = collection.searcher()
        fused = fuse(list(rankings.values()), 'interpolation', 20, 0.6, normalize='background')['1']
        found = hybrid.within(DocumentFilter(text)).rank([query], None, 20)['1']
        assert found.docids == fused.docids
        assert found.scores == pytest.approx(fused.scores, abs=1e-5)
        hybrid.close()


def test_python_asks_within_a_filter(collection):
    assert {hit.docid for hit in collection.search('cat', filter='type:guide')} == {'a', 'b'}
    with pytest.raises(InputError, match="no field 'kind'"):
        collection.search('cat', filter='kind:guide')


def test_fields_are_counted(open_collection):
    """Values of a field are named as a filter names them, unless there are many of them."""
    documents = [
        {'id': f'd{number}', 'text': 'cat', 'number': number, 'tags': ['Red', 'red', 'blue']}
        for number in range(21)
    ]
    documents[0] |= {'draft': True, 'year': 2020, 'half': 0.5, 'day': '2020-01-02', 'list': [1, 2]}
    documents[1] |= {'draft': False, 'year': 2020, 'list': []}
    with open_collection() as collection:
        collection.sync(documents)
        counts = FieldCounter(collection.generation).counts()
        assert list(counts) == sorted(counts)
        values = {}
        for name, count in counts.items():
            values[name] = [(own.value, own.documents) for own in count.values]
        assert {name: count.documents for name, count in counts.items()} == {
            'day': 1,
            'draft': 2,
            'half': 1,
            'list': 1,
            'number': 21,
            'tags': 21,
            'year': 2,
        }
        assert values == {
            'day': [('2020-01-02', 1)],
            'draft': [('false', 1), ('true', 1)],
            'half': [('0.5', 1)],
            'list': [('1', 1), ('2', 1)],
            'number': [],
            'tags': [('blue', 21), ('red', 21)],
            'year': [('2020', 2)],
        }
        # What is counted is what a filter finds.
        for name, pairs in values.items():
            for value, n_documents in pairs:
                found = collection.search('cat', 30, filter=f'{name}:{value}')
                assert len(found) == n_documents, (name, value)
        collection.delete('d0')
        assert 'day' not in FieldCounter(collection.generation).counts()
