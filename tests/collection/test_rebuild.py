"""After any sequence of adds, changes and deletes, a collection equals one that is built anew."""

import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from folders import all_documents
from hypothesis import HealthCheck, given, settings, strategies as st

from pyserini_repbert.collection import Collection, compacting, staging
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.errors import SourceConflictError
from pyserini_repbert.ranking import Query
from pyserini_repbert.systems.encoders import document_encoder, term_weights_encoder

DOCIDS = ['a', 'b', 'c#1', 'd/e', 'ü', '00']
WORDS = ['cat', 'dog', 'ran', 'the', 'mat', 'red', 'moon.', 'sea.\n\n', 'zebra']
TEXTS = st.one_of(
    # Several documents have the same text, of no, one or three passages.
    st.sampled_from(['', ' \n', 'cat ran', 'red moon. ' * 9]),
    st.lists(st.sampled_from(WORDS), max_size=40).map(' '.join),
)
DOCUMENTS = st.fixed_dictionaries(
    {'id': st.sampled_from(DOCIDS), 'text': TEXTS},
    optional={
        'title': st.sampled_from(['cat', 'red sky']),
        'year': st.integers(0, 2),
        'tags': st.lists(st.sampled_from(['x', 'Ü', '#/']), max_size=2),
    },
)
# What changes of a document, while the rest of it stays.
EDITS = {
    'fields': lambda document: {**document, 'year': document.get('year', 0) + 1},
    'title': lambda document: {**document, 'title': f'red {document.get("title", "")}'},
    'text': lambda document: {**document, 'text': f'{document["text"]} sea moon.'},
    'name': lambda document: {**document, 'id': f'{document["id"]}/ü#0'},
}
STEPS = st.one_of(
    st.tuples(st.just('sync'), st.lists(DOCUMENTS, max_size=6, unique_by=lambda one: one['id'])),
    st.tuples(st.just('add'), st.lists(DOCUMENTS, max_size=3, unique_by=lambda one: one['id'])),
    st.tuples(st.just('delete'), st.lists(st.sampled_from(DOCIDS), max_size=2, unique=True)),
    st.tuples(st.just('edit'), st.lists(st.sampled_from(sorted(EDITS)), min_size=1, max_size=6)),
    st.tuples(st.just('compact'), st.none()),
)


@pytest.fixture
def encoder(tiny_checkpoint):
    return document_encoder(str(tiny_checkpoint()))


@pytest.fixture(params=['usual', 'small', pytest.param('small, in int8', marks=pytest.mark.slow)])
def shards(request, monkeypatch):
    """Shards as usual, or so small that they are rewritten all the time; the type of vectors."""
    if request.param != 'usual':
        monkeypatch.setattr(staging, '_PASSAGES_AT_ONCE', 3)
        monkeypatch.setattr(compacting, 'SHARD_ROWS', 10)
        monkeypatch.setattr(compacting, 'SMALL_ROWS', 4)
        monkeypatch.setattr(compacting, 'MOST_SMALL', 2)
    return 'int8' if 'int8' in request.param else 'float32'


def open_one(folder, encoder, dtype=None, sparse='none'):
    return Collection.open(folder, encoder, passage_tokens=8, overlap=2, sparse=sparse, dtype=dtype)


def apply(collection, step, content, expected):
    """Do one step to a collection, and to what is expected of it: {docid: (document, source)}."""
    content = refuse_those_of_others(collection, step, content, expected)
    if step == 'sync':
        collection.sync(content, source='one', delete_most=True)
        kept = {item['id'] for item in content}
        for docid in [docid for docid, (_, source) in expected.items() if source == 'one']:
            if docid not in kept:
                del expected[docid]
        expected.update({item['id']: (item, 'one') for item in content})
    elif step == 'add':
        collection.add(content)
        expected.update({item['id']: (item, 'add') for item in content})
    elif step == 'delete':
        docids = [docid for docid in content if docid in expected]
        collection.delete(docids)
        for docid in docids:
            del expected[docid]
    elif step == 'edit':
        synced = [document for document, source in expected.values() if source == 'one']
        for number, edit in enumerate(content[: len(synced)]):
            synced[number] = EDITS[edit](synced[number])
        apply(collection, 'sync', synced, expected)
    elif expected:
        collection.compact()


def refuse_those_of_others(collection, step, content, expected):
    """The documents of a step that do not belong to another source; all together are refused."""
    source = {'sync': 'one', 'add': 'add'}.get(step)
    if source is None:
        return content
    others = {docid for docid, (_, owner) in expected.items() if owner != source}
    own = [item for item in content if item['id'] not in others]
    if len(own) < len(content):
        before = collection.generation.number
        with pytest.raises(SourceConflictError):
            if step == 'sync':
                collection.sync(content, source=source, delete_most=True)
            else:
                collection.add(content)
        assert not collection.refresh() and collection.generation.number == before
    return own


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(STEPS, min_size=1, max_size=8))
def test_a_collection_equals_one_built_anew(encoder, all_scores, query, shards, steps):
    with tempfile.TemporaryDirectory() as folder:
        expected = {}
        with open_one(Path(folder) / 'lived', encoder, shards) as lived:
            lived.sync([])
            for step, content in steps:
                apply(lived, step, content, expected)
            check_collection(lived.folder)
            with open_one(Path(folder) / 'anew', encoder, shards) as anew:
                anew.sync([document for document, _ in expected.values()])
                # The last bits of a vector depend on its batch, and may change a whole number by 1.
                tolerance = 1e-5 if shards == 'float32' else 0.1
                assert all_scores(lived, query) == pytest.approx(
                    all_scores(anew, query), abs=tolerance
                )
                for one, other in ((lived, anew), (anew, lived)):
                    docids = [document.docid for document in all_documents(one.generation)]
                    assert sorted(docids) == sorted(expected)
                    assert one.generation.documents(docids) == other.generation.documents(docids)
                    assert spans(one, docids) == spans(other, docids)
                assert lived.generation.manifest.passages == anew.generation.manifest.passages


def spans(collection, docids):
    """The number, start and end of each passage of documents."""
    generation = collection.generation
    docnos = generation.docnos(docids).tolist()
    passages = generation.passages(docnos)
    found = []
    for docid, docno in zip(docids, docnos, strict=True):
        for span in passages[docno]:
            shard = generation.shards[span.shard]
            assert (shard.shard.documents[span.row], shard.shard.numbers[span.row]) == (
                docno,
                span.number,
            )
            assert shard.live is None or shard.live[span.row]
            found.append((docid, span.number, span.start, span.end))
    return found


@pytest.fixture
def learned(tiny_epic):
    return term_weights_encoder(str(tiny_epic()))


@pytest.mark.slow
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(STEPS, min_size=1, max_size=8))
def test_a_learned_ranking_equals_one_built_anew(encoder, learned, shards, steps):
    with tempfile.TemporaryDirectory() as folder:
        expected = {}
        with open_one(Path(folder) / 'lived', encoder, sparse=learned) as lived:
            lived.sync([])
            for step, content in steps:
                apply(lived, step, content, expected)
            check_collection(lived.folder)
            with open_one(Path(folder) / 'anew', encoder, sparse=learned) as anew:
                anew.sync([document for document, _ in expected.values()])
                for text in ('cat ran', 'the red moon', 'zebra'):
                    found = learned_scores(lived, text)
                    assert found == pytest.approx(learned_scores(anew, text), abs=1e-5)


def learned_scores(collection, query):
    """{docid: score} of all hits of the learned ranking."""
    with closing(collection.searcher(rankings=('sparse',))) as searcher:
        ranking = searcher.rank([Query('q', query)], None, None)['q']
    return dict(zip(ranking.docids, ranking.scores, strict=True))
