"""Collections that store token vectors: late interaction over the best hits, or all passages."""

import contextlib
import json
import re
import shutil
import string

import numpy as np
import pytest
from folders import all_documents
from sentence_folders import write_multi_vector
from stored_models import (
    AGGREGATIONS,
    check_a_killed_writer_leaves_what_it_encoded,
    check_nothing_is_encoded_twice,
    command_runner,
    passage_inputs,
)

from pyserini_repbert.collection import (
    Collection,
    compacting,
    rescoring,
    staging,
)
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.copying import copy_collection
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.rankings import default_fusion
from pyserini_repbert.collection.shards import PassageShard
from pyserini_repbert.commands.explain import main as explain
from pyserini_repbert.commands.index import main as index
from pyserini_repbert.commands.search import main as search
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError, UnknownNameError
from pyserini_repbert.extensions.token_vectors import EXTENSION, maxsim
from pyserini_repbert.extensions.token_vectors.encoder import MultiVectorTextEncoder
from pyserini_repbert.extensions.token_vectors.stored import PassageTokenVectors, TokenModel
from pyserini_repbert.pipeline.opening import open_searcher
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Query
from pyserini_repbert.record import record_path
from pyserini_repbert.search.adapted_folder import write_adapted
from pyserini_repbert.systems.encoders import document_encoder, term_weights_encoder

pytest.importorskip('sentence_transformers')

(TOKENS,) = EXTENSION.representations
LONG = 'the cat sat on the sea . an old red dog sat on the old sea . new moon ' * 2
DOCUMENTS = [
    {'id': 'a', 'text': LONG, 'year': 1},
    {'id': 'b', 'text': 'red cat', 'title': 'dog', 'year': 2},
    {'id': 'c', 'text': 'the sea . the sea . the dog . on sat', 'year': 2},
    {'id': 'd', 'text': '', 'year': 1},
    {'id': 'e', 'text': 'red cat', 'title': 'dog', 'year': 1},
    {'id': 'f', 'text': 'an old dog sat on the red cat', 'year': 3},
    # Of tokens that are not scored.
    {'id': 'g', 'text': '. , ?', 'year': 3},
]
QUERIES = ['red cat', 'the old sea', 'dogs sitting']
SCORED = ['a', 'b', 'c', 'e', 'f']


def write_model(folder, **settings):
    """A `MultiVectorEncoder`, which scores neither punctuation nor special tokens of passages."""
    skipped = [*string.punctuation, '[CLS]', '[SEP]', '[D]']
    return write_multi_vector(folder, dense=[(16, 8, False)], skiplist=skipped, **settings)


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    """The folder of a multi-vector model; it is not changed."""
    return write_model(tmp_path_factory.mktemp('late'))


@pytest.fixture
def dense(tiny_checkpoint):
    return document_encoder(str(tiny_checkpoint()))


@pytest.fixture
def make(tmp_path, dense, model):
    """make(name='mine', **settings) -> a collection with tiny random models, without Lucene."""

    def make(name='mine', **settings):
        given = {'encoder': dense, 'passage_tokens': 8, 'overlap': 2, 'sparse': 'none'}
        return Collection.open(tmp_path / name, **{**given, 'multi_vector': model, **settings})

    return make


def their_scores(collection, folder, query):
    """{docid: the scores of its passages} by sentence-transformers, which encodes them again."""
    from sentence_transformers import MultiVectorEncoder

    theirs = MultiVectorEncoder(str(folder), device='cpu')
    asked = theirs.encode_query([query])
    scores = {}
    for docid, inputs in passage_inputs(collection.generation).items():
        if docid in SCORED:
            similarities = theirs.similarity(asked, theirs.encode_document(inputs))
            scores[docid] = similarities[0].tolist()
    return scores


def found(searcher, query='red cat', k=10):
    """{docid: score} of a search."""
    return {hit.docid: hit.score for hit in searcher.search(query, k)}


def of_tokens(collection, query='red cat'):
    """{docid: score} of the ranking of token vectors alone."""
    with contextlib.closing(collection.searcher(rankings=('multi',))) as searcher:
        return found(searcher, query)


@pytest.mark.parametrize('similarity', ['maxsim', 'meanmaxsim'])
@pytest.mark.parametrize('aggregate', ['max', 'first', 'mean'])
def test_scores_are_those_of_sentence_transformers(make, tmp_path, similarity, aggregate):
    folder = write_model(tmp_path / 'model', similarity=similarity)
    with make(multi_vector=folder) as collection:
        collection.sync(DOCUMENTS)
        searcher = collection.searcher(rankings=('multi',), aggregate=aggregate)
        for query in QUERIES:
            expected = {}
            for docid, scores in their_scores(collection, folder, query).items():
                expected[docid] = AGGREGATIONS[aggregate](scores)
            hits = searcher.search(query, 10)
            assert {hit.docid: hit.score for hit in hits} == pytest.approx(expected, abs=1e-3)
            order = [(-hit.score, hit.docid) for hit in hits]
            assert order == sorted(order)
        searcher.close()


def test_passages_are_scored_alike_however_they_are_put_together(make, monkeypatch):
    with make() as collection:
        collection.sync(DOCUMENTS)
        together = of_tokens(collection)
        monkeypatch.setattr(maxsim, '_TOKENS', 3)
        assert of_tokens(collection) == pytest.approx(together, abs=1e-6)


def test_the_best_hits_are_scored_unless_rankings_are_named(make, monkeypatch):
    monkeypatch.setattr(rescoring, 'RESCORED_HITS', 4)
    with make(sparse='bm25') as collection:
        collection.sync(DOCUMENTS)
        searcher = collection.searcher()
        assert searcher.part_names == ['rescored']
        hybrid = collection.searcher(rankings=('dense', 'bm25'))
        for query in ('red cat', 'the old sea'):
            candidates = [hit.docid for hit in hybrid.search(query, 10)]
            alone = of_tokens(collection, query)
            scored = {docid: alone[docid] for docid in candidates[:4] if docid in alone}
            below = [docid for docid in candidates if docid not in scored]
            hits = searcher.search(query, 10)
            expected = [*sorted(scored, key=lambda docid: (-scored[docid], docid)), *below]
            assert [hit.docid for hit in hits] == expected
            first = {hit.docid: hit.score for hit in hits[: len(scored)]}
            assert first == pytest.approx(scored, abs=1e-6)
            assert [hit.docid for hit in collection.search(query, 2)] == expected[:2]
        assert hits[0].excerpts


def test_the_stronger_of_two_rankings_has_the_greater_share():
    for stronger, other in (('dense', 'bm25'), ('dense', 'multi'), ('multi', 'bm25')):
        assert default_fusion((stronger, other)).weights == pytest.approx((0.6, 0.4))
        assert default_fusion((other, stronger)).weights == pytest.approx((0.4, 0.6))


def test_it_is_fused_as_a_ranking_of_its_own(make, model):
    with make(sparse='bm25') as collection:
        collection.sync(DOCUMENTS)
        searcher = collection.searcher(rankings=('dense', 'bm25', 'multi'))
        assert searcher.settings.weights == pytest.approx((1 / 3, 1 / 3, 1 / 3))
        runs = [found(part, 'red cat') for part in searcher.parts]
        # So few passages are all in the sample.
        vectors = searcher.dense.vectors
        products = vectors.gather(np.flatnonzero(vectors.live)) @ searcher.dense.vector_of(
            'red cat'
        )
        of_passages = np.concatenate(list(their_scores(collection, model, 'red cat').values()))
        zeros = (products.mean(), 0, of_passages.mean())
        topic = Query('q', 'red cat')
        totals = dict.fromkeys(runs[0], 0.0)
        for part, run, zero in zip(searcher.parts, runs, zeros, strict=True):
            background = part.rank([topic])['q'].background
            assert background.score == pytest.approx(zero, abs=1e-3)
            best = max(max(run.values()) - zero, background.chance)
            for docid in totals:
                totals[docid] += max(run.get(docid, zero) - zero, 0) / best / 3
        assert found(searcher, 'red cat') == pytest.approx(totals, abs=1e-4)


def test_a_filter_and_deleted_documents(make):
    with make() as collection:
        collection.sync(DOCUMENTS)
        for rankings in (('multi',), ('rescored',)):
            searcher = collection.searcher(rankings=rankings)
            everything = found(searcher)
            within = found(searcher.within(DocumentFilter('year:1')))
            assert within == {docid: everything[docid] for docid in ('a', 'e')}
            searcher.close()
        collection.delete(['a', 'b'])
        left = of_tokens(collection)
        assert left == {docid: everything[docid] for docid in ('c', 'e', 'f')}


def test_more_like_a_document(make, model):
    with make() as collection:
        collection.sync(DOCUMENTS)
        searcher = collection.searcher(rankings=('multi',))
        hits = {hit.docid: hit.score for hit in searcher.more_like('b', 10)}
        encoder = MultiVectorTextEncoder(model)
        own, other = TOKENS.work.encode(encoder, ['dog red cat', 'an old dog sat on the red cat'])
        products = own.vectors.astype(np.float32) @ other.vectors.astype(np.float32).T
        assert sorted(hits) == ['a', 'c', 'e', 'f']
        # All of its eight tokens are in one passage.
        assert hits['f'] == pytest.approx(products.max(axis=1).sum(), abs=1e-3)
        assert searcher.more_like('d', 10) == []
        assert 'b' not in [hit.docid for hit in collection.more_like('b')]


def test_it_equals_one_built_anew(make, monkeypatch):
    monkeypatch.setattr(staging, '_PASSAGES_AT_ONCE', 3)
    monkeypatch.setattr(compacting, 'SMALL_ROWS', 4)
    monkeypatch.setattr(compacting, 'MOST_SMALL', 2)
    with make() as collection, make('anew') as anew:
        collection.sync(DOCUMENTS)
        changed = [document for document in DOCUMENTS if document['id'] != 'c']
        changed[0] = changed[0] | {'text': f'{LONG} cats ran .'}
        changes = collection.sync(changed)
        assert 0 < changes.encoded < 8
        collection.add([{'id': 'h', 'text': 'dogs'}])
        anew.sync([*changed, {'id': 'h', 'text': 'dogs'}])
        for _ in ('before', 'after'):
            for query in QUERIES:
                mine = of_tokens(collection, query)
                theirs = of_tokens(anew, query)
                assert mine == pytest.approx(theirs, abs=1e-3)
            collection.compact()
        assert collection.generation.manifest.passages == anew.generation.manifest.passages
        copy = copy_collection(collection.folder, collection.folder.with_name('copy'))
        assert copy == collection.generation.manifest
    assert "multi-vector model '" in check_collection(collection.folder.with_name('copy'))


def values_of(collection):
    """{(docid, number): what is stored of a passage's tokens}."""
    generation = collection.generation
    values = {}
    for document in all_documents(generation):
        (docno,) = generation.docnos([document.docid])
        for span in generation.passages([docno])[docno]:
            value = generation.shards[span.shard].shard.rows_of(TOKENS).value(span.row)
            values[document.docid, span.number] = (
                np.asarray(value.vectors).tolist(),
                value.ids.tolist(),
            )
    return values


def test_int8_takes_half_the_bytes_and_changes_scores_little(make, monkeypatch):
    monkeypatch.setattr(compacting, 'MOST_SMALL', 1)
    with make('large') as large, make(dtype='int8') as collection:
        large.sync(DOCUMENTS)
        collection.sync(DOCUMENTS)
        files = {path.name for path in collection.folder.glob('shards/*/token_*')}
        assert files == {f'token_{name}.npy' for name in ('offsets', 'vectors', 'scales', 'ids')}
        assert np.load(next(collection.folder.glob('shards/*/token_vectors.npy'))).dtype == np.int8
        assert large.generation.settings.further['multi_vector_model'].dtype == 'float16'
        for query in QUERIES:
            mine = of_tokens(collection, query)
            theirs = of_tokens(large, query)
            assert mine == pytest.approx(theirs, rel=1e-2)
            assert mine != theirs
        collection.add([{'id': 'h', 'text': 'dogs'}])
        before = values_of(collection)
        collection.delete(['a'])
        collection.compact()
        # Copied as the same bytes, without those of the document that is gone.
        expected = {key: value for key, value in before.items() if key[0] != 'a'}
        assert values_of(collection) == expected
        assert len(collection.generation.shards) == 1
        searcher = collection.searcher(rankings=('multi',))
        assert 'f' in found(searcher.by_documents(), 'b')
        assert searcher.reasons('red cat', ['b'])['b']
        searcher.close()
    check_collection(collection.folder)
    # Another type is asked for by a rebuild alone, which encodes again.
    with make(dtype='float16') as collection:
        with pytest.raises(MismatchError, match="has dtype 'int8', 'float16' was given"):
            collection.sync(DOCUMENTS)
        collection.sync(DOCUMENTS, rebuild=True)
        assert collection.generation.settings.further['multi_vector_model'].dtype == 'float16'
        scores = of_tokens(collection, QUERIES[-1])
        assert {docid: scores[docid] for docid in theirs} == pytest.approx(theirs, abs=1e-3)


def test_rows_of_several_shards_are_copied_in_an_order():
    model = TokenModel('drawn', '0' * 64, 4, 9, is_mean=False, precision='float32')
    drawn = np.random.default_rng(1)
    for dtype in ('float16', 'int8'):
        values = []
        for length in (3, 0, 1, 5, 2):
            vectors = drawn.standard_normal((length, 4)).astype(np.float16)
            values.append(PassageTokenVectors(vectors, np.arange(length, dtype=np.int32)))
        stored = model.stored_as(dtype)
        first, second = TOKENS.work.rows(values[:2], stored), TOKENS.work.rows(values[2:], stored)
        order = np.array([4, 0, 1, 3, 3])
        copied = first.select([second], order)
        parts = [*map(first.value, range(2)), *map(second.value, range(3))]
        assert len(copied) == len(order)
        for row, number in enumerate(order.tolist()):
            value = copied.value(row)
            np.testing.assert_array_equal(value.vectors, np.asarray(parts[number].vectors))
            np.testing.assert_array_equal(value.ids, parts[number].ids)


def test_a_shard_has_fewer_rows_of_token_vectors(make, monkeypatch):
    monkeypatch.setattr(type(TOKENS.work), 'shard_rows', 4)
    with make() as collection:
        collection.sync(DOCUMENTS)
        before = of_tokens(collection)
        n_shards = len(collection.generation.shards)
        collection.add([{'id': 'h', 'text': 'dogs'}])
        collection.delete(['h'])
        collection.compact()
        rows = [len(live.shard) for live in collection.generation.shards]
        assert len(rows) >= n_shards
        assert of_tokens(collection) == before


def test_nothing_is_encoded_twice(make, monkeypatch):
    check_nothing_is_encoded_twice(make, DOCUMENTS, monkeypatch)


def test_a_killed_writer_leaves_what_it_encoded(make, monkeypatch):
    check_a_killed_writer_leaves_what_it_encoded(make, DOCUMENTS, monkeypatch)


def test_a_model_is_added_and_taken_away(make, dense, monkeypatch):
    with make(multi_vector=None) as collection:
        n_passages = collection.sync(DOCUMENTS).encoded
        manifest = collection.folder / 'generations' / '000001.json'
        # As before there were such models.
        assert 'multi_vector_model' not in manifest.read_text()
        absence = 'without a multi-vector model: its ranking is dense'
        for ranking in ('multi', 'rescored'):
            with pytest.raises(InputError, match=absence):
                collection.searcher(rankings=(ranking,))
    with make() as collection:
        with pytest.raises(MismatchError, match="has multi_vector 'none', '.*' was given"):
            collection.sync(DOCUMENTS)
        with monkeypatch.context() as patch:
            # Dense vectors stay as they are.
            patch.setattr(type(dense), 'embed', None)
            assert collection.sync(DOCUMENTS, rebuild=True).encoded == n_passages
        expected = of_tokens(collection)
    check_collection(collection.folder)
    with make(multi_vector='none') as collection:
        assert collection.sync(DOCUMENTS, rebuild=True).encoded == 0
        assert collection.searcher().part_names == ['tiny']
    with make() as collection:
        collection.sync(DOCUMENTS, rebuild=True)
        assert of_tokens(collection) == pytest.approx(expected)


def test_beside_a_learned_sparse_model(make, tiny_epic):
    learned = term_weights_encoder(str(tiny_epic()))
    with make(sparse=learned, multi_vector=None) as collection:
        collection.sync(DOCUMENTS)
    with make(sparse=learned) as collection:
        collection.sync(DOCUMENTS, rebuild=True)
        assert found(collection.searcher())
        rankings = ('dense', 'sparse', 'multi')
        assert collection.searcher(rankings=rankings).part_names == ['tiny', 'sparse', 'multi']
        collection.compact()
    check_collection(collection.folder)


def test_another_model_is_refused(make, tmp_path):
    other = write_model(tmp_path / 'other', max_seq_length=30)
    with make() as collection:
        collection.sync(DOCUMENTS)
    with make(multi_vector=other) as collection:
        with pytest.raises(MismatchError, match='multi-vector model .* differs in weights') as told:
            collection.add([{'id': 'h', 'text': 'dogs'}])
        assert '\n' not in str(told.value)
        assert collection.sync(DOCUMENTS, rebuild=True).encoded > 0
    with make(multi_vector=None) as collection:
        assert collection.add([{'id': 'h', 'text': 'dogs'}]).encoded == 1
    (other / 'modules.json').write_text((other / 'modules.json').read_text() + ' ')
    with make(multi_vector=None) as collection:
        with pytest.raises(MismatchError, match='differs in weights'):
            collection.add([{'id': 'i', 'text': 'cats'}])
        with pytest.raises(MismatchError, match='was built with other weights'):
            collection.searcher()


def test_a_name_that_is_no_multi_vector_model(make, tmp_path):
    refusal = "multi-vector model 'nowhere' is unknown: expected none, the folder"
    with make(multi_vector='nowhere') as collection, pytest.raises(UnknownNameError, match=refusal):
        collection.sync(DOCUMENTS)


def test_damaged_token_vectors_are_told(make):
    with make() as collection:
        collection.sync(DOCUMENTS)
        folder = collection.generation.shards[0].shard.folder
    path = folder / 'token_vectors.npy'
    vectors = np.load(path)
    np.save(path, vectors + np.float16(1))
    with pytest.raises(DamagedFileError, match=r'token_vectors\.npy'):
        check_collection(collection.folder)
    np.save(path, vectors[:-1])
    with pytest.raises(DamagedFileError, match='holds float16'):
        PassageShard(folder).rows_of(TOKENS)


@pytest.fixture
def printed(tmp_path, tiny_checkpoint, model, monkeypatch, capsys):
    """run(main, *arguments) -> what a command printed; 'tiny' and 'late' are tiny models."""
    tiny_checkpoint()
    shutil.copytree(model, tmp_path / 'late')
    return command_runner(DOCUMENTS, tmp_path, monkeypatch, capsys)


def test_commands_take_it(printed, tmp_path):
    build = ['sync', '--corpus', 'corpus.jsonl', '--index', 'mine', '--quiet']
    models = ['--encoder', 'tiny', '--sparse', 'none', '--multi-vector', 'late']
    printed(index, *build, *models, '--passage-tokens', '8', '--overlap', '2')
    manifest = tmp_path / 'mine' / 'generations' / '000001.json'
    record = json.loads(record_path(manifest).read_text())
    assert [used['name'] for used in record['models']] == ['tiny', 'late']
    assert "multi-vector model 'late', no Lucene index" in printed(
        index, 'check', '--index', 'mine'
    )
    vectors = np.load(next((tmp_path / 'mine').glob('shards/*/token_vectors.npy')))
    ids = np.load(next((tmp_path / 'mine').glob('shards/*/token_ids.npy')))
    offsets = np.load(next((tmp_path / 'mine').glob('shards/*/token_offsets.npy')))
    size = round((vectors.nbytes + ids.nbytes + offsets.nbytes) / (len(offsets) - 1))
    status = printed(index, 'status', '--index', 'mine')
    assert f"multi-vector model 'late': {size} bytes a passage" in status
    ask = ['--index', 'mine', '--query', 'red cat', '--hits', '6', '--quiet']
    explained = printed(search, *ask, '--explain')
    # Neither document without scored tokens has any to show.
    assert explained.count('ranks: tiny ') == 6
    assert explained.count('tokens: ') == len(SCORED)
    assert 'cat=cat ' in explained
    (tmp_path / 'topics.tsv').write_text('q1\tred cat\n', encoding='utf-8')
    printed(search, '--index', 'mine', '--topics', 'topics.tsv', '--output', 'run.txt', '--quiet')
    assert (tmp_path / 'run.txt').read_text()
    record = json.loads((tmp_path / 'run.txt.record.json').read_text())
    assert [used['name'] for used in record['models']] == ['tiny', 'late']
    alone = printed(search, *ask, '--rankings', 'multi')
    assert alone.count('score') == explained.count('score')
    assert 'tokens: ' in printed(search, '--index', 'mine', '--like', 'b', '--explain', '--quiet')
    refused = printed(index, *build, '--multi-vector', 'none', status=2)
    assert "has multi_vector 'late', 'none' was given" in refused
    assert '--rebuild' in refused
    assert refused.count('\n') == 1


def test_tokens_are_explained_by_the_model_of_the_collection(printed):
    build = ['sync', '--corpus', 'corpus.jsonl', '--index', 'mine', '--quiet', '--encoder', 'tiny']
    printed(index, *build, '--sparse', 'none', '--multi-vector', 'late')
    ask = ['--index', 'mine', '--query', 'red cat', '--quiet']
    stored = re.search(r'b  \(([^)]*)\)', printed(search, *ask, '--rankings', 'multi'))[1]
    why = printed(explain, *ask, '--docid', 'b')
    # The model encodes the passage anew, in float32.
    encoded = re.search(r'b: score (\S+)', why)[1]
    assert float(encoded) == pytest.approx(float(stored), abs=1e-3)
    assert '| token' in why


@pytest.mark.parametrize(
    ('values', 'searched'),
    [
        # A person has set k1 alone.
        ({'k1': 1.2, 'weights': ()}, ['rescored']),
        ({'weights': (0.3, 0.7)}, ['tiny', 'bm25']),
    ],
)
def test_what_was_learned_is_searched_without_token_vectors(make, dense, values, searched):
    with make(sparse='bm25') as collection:
        collection.sync(DOCUMENTS)
    named = {'index': str(collection.folder), 'encoder': str(collection.folder.parent / 'tiny')}
    folder = collection.folder.parent / 'adapted'
    known = {'encoder_weights': dense.weights_sha256, 'sparse': (), 'depth': 10, 'estimate': {}}
    write_adapted(folder, None, **{**named, **known, **values})
    with contextlib.closing(open_searcher(PipelineSpec(adapted=str(folder)))) as searcher:
        assert searcher.part_names == searched
        assert found(searcher)
