"""A collection by its folder's name, in PyTerrier, LangChain and LlamaIndex."""

import importlib

import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.errors import InputError
from pyserini_repbert.interop.hits import (
    excerpt_metadata,
    hits_with_text,
    retrieved_hits,
)
from pyserini_repbert.pipeline import Pipeline
from pyserini_repbert.pipeline.opening import open_searcher
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Candidate, Excerpt, Ranking

LONG = ' '.join(f'{word} ran on the red mat.' for word in ('cat', 'dog', 'fish', 'bird') * 3)
DOCUMENTS = [
    {'id': 'a', 'text': 'cat sat on the mat', 'title': 'cat', 'year': 2019},
    {'id': 'guide/b', 'text': f'{LONG} moon tree.', 'title': 'the long one', 'year': 2020},
    {'id': 'c', 'text': 'the fish ate the bird in the sea', 'year': 2021},
]
QUERY = 'moon tree'


@pytest.fixture
def folder(tiny_checkpoint, tmp_path):
    """The folder of a collection of three documents, without Lucene."""
    encoder = str(tiny_checkpoint('encoder'))
    small = {'passage_tokens': 10, 'overlap': 3, 'sparse': 'none'}
    with Collection.open(tmp_path / 'mine', encoder=encoder, **small) as collection:
        collection.sync(DOCUMENTS)
    return tmp_path / 'mine'


@pytest.fixture
def hits(folder):
    """Of the query, from the library."""
    searcher = open_searcher(PipelineSpec(index=str(folder)))
    yield searcher.search(QUERY, 3)
    searcher.close()


def metadata(hit):
    (passage,) = hit.excerpts
    return {
        'title': passage.title,
        'passage': passage.number,
        'start': passage.start,
        'end': passage.end,
        'headings': list(passage.headings),
        'anchor': passage.anchor,
        'file': passage.file,
        'line': passage.line,
        'row': passage.row,
        'last_page': passage.last_page,
        'url': passage.url,
    }


def test_metadata_by_hand():
    passage = Excerpt(
        number=3,
        start=12,
        end=18,
        text='snails',
        title='Salad',
        headings=('Pests', 'At night'),
        anchor='at-night',
        file='salad.md',
        line=7,
    )
    assert excerpt_metadata(Candidate('d', 1.0, 'Salad snails', (passage,))) == {
        'title': 'Salad',
        'passage': 3,
        'start': 12,
        'end': 18,
        'headings': ['Pests', 'At night'],
        'anchor': 'at-night',
        'file': 'salad.md',
        'line': 7,
        'row': None,
        'last_page': None,
        'url': '',
    }
    assert excerpt_metadata(Candidate('d', 1.0, 'text')) == {}


def test_the_passage_that_a_reranker_preferred_is_the_text(folder, mono):
    searcher = open_searcher(PipelineSpec(index=str(folder)))
    pipeline = Pipeline([searcher, (mono.with_settings(n_excerpts=20), 3)])
    for hit in hits_with_text(pipeline, QUERY, 3):
        (alone,) = mono.rerank(QUERY, [Candidate('x', text=hit.text)])
        assert alone.score == pytest.approx(hit.score, abs=1e-5)
        assert hit.text == hit.excerpts[0].model_input
    pipeline.close()


@pytest.fixture
def even_odds(monkeypatch):
    """Each hit is relevant with a probability of a half."""
    models = pytest.importorskip('pyserini_repbert.extensions.confidence.models')
    estimating = importlib.import_module('pyserini_repbert.extensions.confidence.estimating')
    numbers = (0.0,) * len(models.HIT_FEATURES)
    logistic = models.LogisticModel(numbers, (1.0,) * len(numbers), numbers, 0.0)
    test = models.HeldOutTest(0.8, 0.6)
    model = models.ConfidenceModel(logistic, logistic, 'learned', test, test, {}, '')
    monkeypatch.setattr(estimating, 'model_for', lambda *_: model)


def test_probabilities_in_langchain(folder, hits, even_odds):
    pytest.importorskip('langchain_core')
    from pyserini_repbert.interop.langchain import DocumentRetriever

    documents = DocumentRetriever(searcher=str(folder), k=2, confidence=True).invoke(QUERY)
    plain = DocumentRetriever(searcher=str(folder), k=2).invoke(QUERY)
    assert [document.id for document in documents] == [hit.docid for hit in hits[:2]]
    for document, without in zip(documents, plain, strict=True):
        assert document.page_content == without.page_content
        assert document.metadata == {**without.metadata, 'probability': 0.5}


def test_probabilities_in_llama_index(folder, hits, even_odds):
    pytest.importorskip('llama_index.core')
    from pyserini_repbert.interop.llama_index import NodeRetriever

    nodes = NodeRetriever(str(folder), k=2, confidence=True).retrieve(QUERY)
    assert [node.node_id for node in nodes] == [hit.docid for hit in hits[:2]]
    assert [node.metadata['probability'] for node in nodes] == [0.5, 0.5]


def test_probabilities_are_of_a_collection_and_known(folder, searcher):
    opened = open_searcher(PipelineSpec(index=str(folder)))
    with pytest.raises(InputError, match='confidence is not known'):
        retrieved_hits(opened, QUERY, 2, None, {'confidence': True})
    opened.close()
    with pytest.raises(InputError, match="takes 'confidence' with this search"):
        retrieved_hits(searcher, QUERY, 2, None, {'confidence': True})


def test_langchain(folder, hits):
    pytest.importorskip('langchain_core')
    from pyserini_repbert.interop.langchain import DocumentRetriever

    for name in (folder, str(folder)):
        documents = DocumentRetriever(searcher=name, k=3).invoke(QUERY)
        assert [document.id for document in documents] == [hit.docid for hit in hits]
        for document, hit in zip(documents, hits, strict=True):
            assert document.page_content == hit.text
            assert document.metadata == {
                'docid': hit.docid,
                'score': pytest.approx(hit.score, abs=1e-5),
                **metadata(hit),
            }


def test_llama_index(folder, hits):
    pytest.importorskip('llama_index.core')
    from llama_index.core.schema import MetadataMode

    from pyserini_repbert.interop.llama_index import NodeRetriever

    nodes = NodeRetriever(folder, k=3).retrieve(QUERY)
    assert [node.node_id for node in nodes] == [hit.docid for hit in hits]
    for node, hit in zip(nodes, hits, strict=True):
        assert node.text == hit.text
        assert node.metadata == metadata(hit)
        (passage,) = hit.excerpts
        assert (node.node.start_char_idx, node.node.end_char_idx) == (passage.start, passage.end)
        assert node.node.get_content(MetadataMode.LLM) == hit.text


@pytest.mark.parametrize('kind', ['Retriever', 'RepBertRetriever'])
def test_pyterrier(kind, folder):
    """Texts are for rerankers that follow: the nearest passage, not the one that is shown."""
    pt = pytest.importorskip('pyterrier')
    import pandas as pd

    import pyserini_repbert.interop.pyterrier as ours

    searcher = open_searcher(PipelineSpec(index=str(folder)))
    hits = searcher.with_stored_texts(QUERY, Ranking.of(searcher.search(QUERY, 3)))
    searcher.close()
    retriever = getattr(ours, kind)(str(folder), num_results=3)
    assert retriever.name == 'mine'
    topics = pd.DataFrame({'qid': ['1'], 'query': [QUERY]})
    frame = retriever(topics)
    added = ['docno', 'text', 'passage', 'start', 'end', 'score', 'rank']
    assert sorted(frame.columns) == sorted(['qid', 'query', *added])
    assert frame['docno'].tolist() == [hit.docid for hit in hits]
    assert frame['text'].tolist() == [hit.text for hit in hits]
    for name in ('passage', 'start', 'end'):
        assert frame[name].tolist() == [metadata(hit)[name] for hit in hits]
    assert retriever(topics.iloc[:0]).empty
    pd.testing.assert_frame_equal((retriever % 2)(topics), pt.RankCutoff(2)(frame))


@pytest.mark.parametrize('kind', ['Retriever', 'RepBertRetriever'])
def test_pyterrier_asks_within_a_filter(kind, folder):
    pytest.importorskip('pyterrier')
    import pandas as pd

    import pyserini_repbert.interop.pyterrier as ours

    topics = pd.DataFrame({'qid': ['1', '2'], 'query': [QUERY, 'fish']})
    retrieve = getattr(ours, kind)
    everything = retrieve(str(folder))(topics)
    within = retrieve(str(folder), filter='year:[2020 TO *]')(topics)
    allowed = everything[everything['docno'].isin(['guide/b', 'c'])]
    for name in ('qid', 'docno', 'text'):
        assert within[name].tolist() == allowed[name].tolist()
    assert within['score'].tolist() == pytest.approx(allowed['score'].tolist(), abs=1e-5)
    assert within['rank'].tolist() == [0, 1, 0, 1]
    with pytest.raises(InputError, match="no field 'month'"):
        retrieve(str(folder), filter='month:3')


def test_a_filter_of_pyterrier_is_for_a_collection(folder, tmp_path):
    pytest.importorskip('pyterrier')
    import pyserini_repbert.interop.pyterrier as ours

    with Collection.open(folder) as collection:
        retriever = ours.Retriever(collection.searcher(), filter='year:2020')
        assert retriever.ranker.search('fish', 3)[0].docid == 'guide/b'
        # One ranking of a collection takes a filter, too.
        dense = ours.Retriever(retriever.ranker.dense, filter='year:2020')
        assert [hit.docid for hit in dense.ranker.search('fish', 3)] == ['guide/b']
        with pytest.raises(InputError, match='filter is for a collection'):
            ours.Retriever(str(tmp_path / 'none'), filter='year:2020')
        retriever.ranker.close()


def test_pyterrier_reranks_the_passages(folder, mono):
    pytest.importorskip('pyterrier')
    import pandas as pd

    import pyserini_repbert.interop.pyterrier as ours

    topics = pd.DataFrame({'qid': ['1'], 'query': [QUERY]})
    frame = (ours.Retriever(str(folder)) >> ours.Rerank(mono))(topics)
    searcher = open_searcher(PipelineSpec(index=str(folder)))
    expected = Pipeline([searcher, mono]).search(QUERY, 3)
    assert frame['docno'].tolist() == [hit.docid for hit in expected]
    assert frame['score'].tolist() == pytest.approx([hit.score for hit in expected], abs=1e-5)
    searcher.close()
