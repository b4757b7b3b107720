"""More like a document: by its vectors, by its best terms, fused, and within a filter."""

import math
import re
from collections import Counter

import numpy as np
import pytest
from folders import passage_vectors

from pyserini_repbert.collection import Collection
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.fusion.fusing import fuse
from pyserini_repbert.index import DenseBundle, export_faiss
from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.sparse_settings import SparseSettings
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.search import DenseSearcher, HybridSearcher

LONG = ' '.join(f'{word} ran on the red mat.' for word in ('cat', 'dog', 'fish', 'bird') * 3)
DOCUMENTS = [
    {'id': 'a', 'text': 'cat sat on the mat', 'title': 'cat', 'kind': 'guide'},
    {'id': 'b', 'text': f'{LONG} moon tree.', 'title': 'the long one', 'kind': 'note'},
    {'id': 'c', 'text': 'the fish ate the bird in the sea', 'kind': 'guide'},
    {'id': 'd', 'text': 'cat and dog sat in the tree', 'kind': 'note'},
    {'id': 'untold', 'text': '', 'kind': 'note'},
]


@pytest.fixture
def checkpoint(tiny_checkpoint):
    return str(tiny_checkpoint('encoder'))


@pytest.fixture
def bundle(checkpoint, corpus_file, tmp_path):
    encoder = RepBertDocumentEncoder(checkpoint)
    encode_corpus(open_corpus(corpus_file(30)), encoder, tmp_path / 'bundle', store_text=True)
    return tmp_path / 'bundle'


@pytest.fixture
def open_collection(checkpoint, tmp_path):
    """open(sparse='none') -> a collection of five documents, one without text."""
    opened = []

    def make(sparse='none'):
        small = {'passage_tokens': 10, 'overlap': 3, 'sparse': sparse}
        collection = Collection.open(tmp_path / 'mine', encoder=checkpoint, **small)
        collection.sync(DOCUMENTS)
        opened.append(collection)
        return collection

    yield make
    for collection in opened:
        collection.close()


def scores(hits):
    return {hit.docid: hit.score for hit in hits}


def test_a_passage_is_searched_by_its_vector(bundle):
    searcher = DenseSearcher(bundle)
    index = searcher.index
    vectors = index.vectors(np.arange(len(index)))
    docids = index.docids(np.arange(len(index)))
    row = docids.index('d3')
    products = vectors @ vectors[row]
    order = sorted(range(len(docids)), key=lambda other: (-products[other], docids[other]))
    expected = [docids[other] for other in order if other != row]
    found = searcher.more_like('d3', 7)
    assert [hit.docid for hit in found] == expected[:7]
    assert found[0].score == pytest.approx(float(products[docids.index(expected[0])]), abs=1e-4)
    assert found[0].text == searcher.texts([expected[0]])[0]
    whole = searcher.by_documents().rank([Query('1', 'd3')], None, None)
    assert set(whole['1'].docids) == set(docids) - {'d3'}
    # The searcher takes questions as before.
    assert len(searcher.search('cat sat', 30)) == 30


def test_several_documents_at_once(bundle):
    searcher = DenseSearcher(bundle)
    topics = [Query('1', 'd3'), Query('2', 'nowhere'), Query('3', 'd0')]
    run = searcher.by_documents().rank(topics, None, 5)
    assert [len(ranking) for ranking in run.values()] == [5, 0, 5]
    assert scores(run['3']) == pytest.approx(scores(searcher.more_like('d0', 5)), abs=1e-5)


def test_feedback_moves_a_document_too(bundle):
    spec = PipelineSpec(index=str(bundle), prf='average')
    moved = open_pipeline(spec).pipeline.more_like('d3', 5)
    assert scores(moved) != scores(DenseSearcher(bundle).more_like('d3', 5))


def test_a_document_is_searched_by_the_mean_of_its_passages(open_collection):
    collection = open_collection()
    searcher = collection.searcher()
    generation = searcher.generation
    vectors = {}
    for docid in 'abcd':
        (docno,) = generation.docnos([docid])
        spans = generation.passages([docno])[docno]
        vectors[docid] = passage_vectors(generation, spans)
    assert len(vectors['b']) > 2
    query = vectors['b'].mean(axis=0)
    expected = {docid: float((vectors[docid] @ query).max()) for docid in 'acd'}
    found = collection.more_like('b')
    assert scores(found) == pytest.approx(expected, abs=1e-4)
    assert [hit.docid for hit in found] == sorted(expected, key=lambda docid: -expected[docid])
    # With each hit, the passage that is nearest to the mean.
    for hit in found:
        nearest = int((vectors[hit.docid] @ query).argmax())
        assert hit.excerpts[0].number == nearest
    searcher.close()


def test_within_a_filter(open_collection):
    collection = open_collection()
    whole = scores(collection.more_like('a'))
    within = scores(collection.more_like('a', filter='kind:note'))
    assert within == pytest.approx({docid: whole[docid] for docid in within}, abs=1e-5)
    assert set(within) == {'b', 'd'}
    with pytest.raises(InputError, match='kin'):
        collection.more_like('a', filter='kin:note')


def test_what_is_not_there(open_collection, bundle):
    collection = open_collection()
    assert collection.more_like('untold') == []
    with pytest.raises(MissingResourceError, match="there is no document 'nowhere' in mine"):
        collection.more_like('nowhere')
    with pytest.raises(MissingResourceError, match="there is no document 'nowhere'"):
        DenseSearcher(bundle).more_like('nowhere')
    collection.delete('d')
    with pytest.raises(MissingResourceError, match="'d'"):
        collection.more_like('d')
    assert 'd' not in scores(collection.more_like('a'))


def test_what_takes_questions_only(bundle, cross_encoder_folder, tmp_path, checkpoint):
    reranked = PipelineSpec(index=str(bundle), stages=(f'{cross_encoder_folder("monobert")}@5',))
    with pytest.raises(InputError, match='a reranker reads a question'):
        open_pipeline(reranked).pipeline.more_like('d3')
    export_faiss(DenseBundle(bundle), tmp_path / 'faiss')
    faiss = DenseSearcher(tmp_path / 'faiss', checkpoint)
    with pytest.raises(InputError, match='is a FAISS folder'):
        faiss.more_like('d3')


WORDS = (
    'apple berry cedar daisy elder fern grape hazel iris juniper kale lemon mint nut olive'.split()
)


@pytest.fixture(scope='module')
def words(tmp_path_factory):
    """{docid: text} of 60 texts of 30 words, rare and common, and their Lucene index."""
    random = np.random.default_rng(3)
    names = [f'{word}{ending}' for word in WORDS for ending in ('a', 'o', 'um', 'ix')]
    weights = 1 / np.arange(1, len(names) + 1)
    texts = {}
    for number in range(60):
        chosen = random.choice(names, 30, p=weights / weights.sum())
        texts[f't{number}'] = ' '.join([*chosen, f'alone{number}x'])
    folder = tmp_path_factory.mktemp('words')
    lines = ''.join(f'{docid}\t{text}\n' for docid, text in texts.items())
    (folder / 'corpus.tsv').write_text(lines)
    build_lucene_index(open_corpus(folder / 'corpus.tsv'), folder / 'lucene')
    return texts, folder / 'lucene'


def best_terms(texts, docid, most=25):
    """The terms of greatest tf-idf: as Lucene's, log((N + 1) / (df + 1)) + 1."""
    counts = {name: Counter(re.findall(r'\w+', text)) for name, text in texts.items()}
    weights = {}
    for term, tf in counts[docid].items():
        df = sum(term in other for other in counts.values())
        if df > 1:
            weights[term] = tf * (math.log((len(texts) + 1) / (df + 1)) + 1)
    return sorted(weights, key=lambda term: -weights[term])[:most]


@pytest.mark.jvm
def test_a_text_is_searched_by_its_best_terms(words):
    texts, folder = words
    searcher = LuceneSparseSearcher(folder)
    for docid in ('t0', 't17'):
        terms = best_terms(texts, docid)
        expected = Ranking.of(searcher.search(' '.join(terms), 60)).without(docid)
        found = searcher.more_like(docid, 20)
        assert scores(found) == pytest.approx(scores(expected[:20]), abs=1e-3)
        assert docid not in scores(found)
    assert searcher.more_like('t0', 1)[0].docid == searcher.more_like('t0', 20)[0].docid


@pytest.mark.jvm
def test_feedback_is_left_out(words):
    _, folder = words
    plain = LuceneSparseSearcher(folder)
    expanding = LuceneSparseSearcher(folder, SparseSettings(rm3=True))
    assert scores(expanding.more_like('t3')) == scores(plain.more_like('t3'))
    before = scores(expanding.search('applea'))
    assert before != scores(plain.search('applea'))
    expanding.more_like('t3')
    assert scores(expanding.search('applea')) == before


@pytest.mark.jvm
def test_a_text_that_shares_no_word(tmp_path):
    (tmp_path / 'corpus.tsv').write_text('x\tred cars\ny\tblue boats\n')
    build_lucene_index(open_corpus(tmp_path / 'corpus.tsv'), tmp_path / 'lucene')
    searcher = LuceneSparseSearcher(tmp_path / 'lucene')
    assert searcher.more_like('x') == []
    (warning,) = searcher.by_documents().warnings('x')
    assert warning == "Lucene finds nothing like 'x': no other document has a word of it"
    with pytest.raises(MissingResourceError, match="no document 'z' in lucene"):
        searcher.more_like('z')


@pytest.mark.jvm
def test_a_collection_fuses_as_it_does_for_questions(open_collection):
    collection = open_collection(sparse='bm25')
    searcher = collection.searcher()
    runs = []
    for part in searcher.parts:
        runs.append(part.by_documents().rank([Query('0', 'a')], None, 100))
    assert all(len(run['0']) for run in runs)
    expected = fuse(runs, 'interpolation', 10, 0.6, normalize='background')['0']
    assert scores(collection.more_like('a')) == pytest.approx(scores(expected), abs=1e-5)
    words_alone = collection.searcher(['bm25']).within(searcher.filter)
    assert 'a' not in scores(words_alone.more_like('a'))
    assert words_alone.more_like('untold') == []
    # BM25 within a filter has the scores of all documents.
    whole = scores(runs[1]['0'])
    within = collection.more_like('a', filter='kind:note')
    assert {hit.docid for hit in within} == {'b', 'd'}
    assert set(whole) >= {'b', 'd'}
    searcher.close()


@pytest.mark.jvm
def test_a_hybrid_of_indexes(bundle, corpus_file, tmp_path):
    build_lucene_index(open_corpus(corpus_file(30)), tmp_path / 'lucene')
    hybrid = HybridSearcher(DenseSearcher(bundle), LuceneSparseSearcher(tmp_path / 'lucene'))
    found = [hit.docid for hit in hybrid.more_like('d3', 5)]
    dense = [hit.docid for hit in DenseSearcher(bundle).more_like('d3', 5)]
    assert found[0] == dense[0]
    assert 'd3' not in found
    assert len(found) == 5
