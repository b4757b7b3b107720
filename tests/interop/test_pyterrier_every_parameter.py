"""Every parameter of every PyTerrier class: a set value does what the constructor's does, whether
`set_parameter` or an assignment sets it.
"""

import inspect
import json
import shutil
from dataclasses import dataclass
from functools import partial

import pytest
from pyterrier_world import TOPICS, pd, pt

import pyserini_repbert.interop.pyterrier as ours
from pyserini_repbert.collection import Collection
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.interop.pyterrier import retrievers
from pyserini_repbert.interop.pyterrier.parameters import Configured
from pyserini_repbert.names.corpora import open_corpus

NO_DEVICE = 'no-such-device'
DOCNOS = pd.DataFrame({'docno': ['d0', 'd3', 'd29']})


@dataclass(frozen=True)
class Case:
    """A class, arguments of its constructor, and another value for each of some of them."""

    kind: type
    arguments: dict
    others: dict
    frame: object = None


@pytest.fixture
def opened(monkeypatch):
    """The arguments with which searchers and texts are opened."""
    calls = []

    def watched(opener):
        def recorded(*arguments):
            calls.append(arguments)
            return opener(*arguments)

        return recorded

    for name in ('open_searcher', 'texts_opener'):
        monkeypatch.setattr(retrievers, name, watched(getattr(retrievers, name)))
    return calls


@pytest.fixture
def second(tiny_checkpoint, corpus_file, tmp_path):
    """An index of other passages, by another encoder."""
    encoder = RepBertDocumentEncoder(tiny_checkpoint('other', seed=1))
    corpus = open_corpus(corpus_file(20, 'second.jsonl'))
    encode_corpus(corpus, encoder, tmp_path / 'second', store_text=True)
    return tmp_path / 'second'


@pytest.fixture
def collection(tiny_checkpoint, tmp_path):
    """The folder of a collection of two documents."""
    encoder = str(tiny_checkpoint('of-collection'))
    with Collection.open(tmp_path / 'mine', encoder=encoder, sparse='none') as collection:
        collection.sync(
            [
                {'id': 'a', 'text': 'cat sat', 'year': 2019},
                {'id': 'b', 'text': 'old tree', 'year': 2020},
            ]
        )
    return tmp_path / 'mine'


@pytest.fixture
def first_stages(dense, second, collection, tiny_checkpoint):
    searchers = [ours.RepBertRetriever(dense).ranker, ours.RepBertRetriever(second).ranker]
    cut = {'num_results': 4}
    within = {'filter': 'year:2020'}
    another = str(tiny_checkpoint('third', seed=2))
    changed = {'index': second, 'num_results': 2, 'device': NO_DEVICE, 'threads': 2}
    return [
        Case(ours.Retriever, cut | {'ranker': searchers[0]}, {'ranker': searchers[1]}, TOPICS),
        Case(ours.Retriever, cut | {'ranker': searchers[0]}, {'num_results': 2}, TOPICS),
        Case(ours.Retriever, {'ranker': str(collection)}, within, TOPICS),
        Case(ours.RepBertRetriever, {'index': dense}, changed, TOPICS),
        Case(ours.RepBertRetriever, {'index': dense}, {'encoder': another}, TOPICS),
        Case(ours.RepBertRetriever, {'index': collection}, within, TOPICS),
    ]


@pytest.fixture
def fusions(dense, second):
    parts = [ours.RepBertRetriever(dense), ours.RepBertRetriever(second)]
    arguments = {'retrievers': parts, 'method': 'rrf', 'num_results': 4, 'depth': 9}
    changed = {
        'retrievers': parts[:1],
        'method': 'interleave',
        'num_results': 2,
        'rrf_k': 1.0,
        'depth': 4,
        'provenance': True,
        'threads': 2,
    }
    weighted = arguments | {'method': 'interpolation', 'alpha': 0.9}
    interleaved = {'systems': tuple(parts), 'num_results': 4}
    other = {'systems': (parts[1], parts[0] % 3), 'names': ['a', 'b'], 'num_results': 2}
    return [
        Case(ours.HybridRetriever, arguments, changed, TOPICS),
        Case(ours.HybridRetriever, weighted, {'alpha': 0.1}, TOPICS),
        Case(ours.Interleave, interleaved, other, TOPICS),
    ]


@pytest.fixture
def rerankers(candidates, cross_encoder_folder):
    duobert = str(cross_encoder_folder('duobert'))
    other = str(cross_encoder_folder('duobert', name='second-duobert', seed=1))
    changed = {'model': other, 'device': NO_DEVICE, 'matrix': True, 'settings': {'method': 'max'}}
    return [Case(ours.Rerank, {'model': duobert}, changed, candidates)]


@pytest.fixture
def texts(dense, second, tmp_path):
    files = []
    for name in ('titled', 'other'):
        path = tmp_path / f'{name}.jsonl'
        passage = {'id': 'd3', 'contents': f'text of {name}', 'title': 'its title'}
        path.write_text(json.dumps(passage) + '\n', encoding='utf-8')
        files.append(path)
    changed = {'corpus': files[1], 'corpus_format': 'tsv', 'fields': ('title',)}
    by_index = {'index': second, 'download': True}
    return [
        Case(ours.PassageText, {'index': dense}, by_index, DOCNOS),
        Case(ours.PassageText, {'corpus': files[0]}, changed, DOCNOS),
    ]


@pytest.fixture
def indexers(tiny_checkpoint, tiny_epic, tmp_path):
    encoders = {
        ours.RepBertIndexer: [tiny_checkpoint('a'), tiny_checkpoint('b', seed=1)],
        ours.EpicIndexer: [tiny_epic('c'), tiny_epic('d', seed=1)],
    }
    cases = []
    for kind, (encoder, other) in encoders.items():
        arguments = {'output': tmp_path / 'made', 'encoder': encoder, 'on_error': 'skip'}
        changed = {
            'output': tmp_path / 'elsewhere',
            'encoder': other,
            'device': NO_DEVICE,
            'fields': ('title', 'text'),
            'precision': 'no-such-precision',
            'on_error': 'refuse',
            'store_text': False,
            'settings': {'shard_size': 2},
        }
        cases.append(Case(kind, arguments, changed))
    return cases


@pytest.fixture
def lucenes(dense, tmp_path):
    from pyserini_repbert.index.lucene import build_lucene_index

    folders = []
    for size in (30, 20):
        corpus = list(open_corpus(tmp_path / 'corpus.jsonl'))[:size]
        build_lucene_index(corpus, tmp_path / f'lucene-{size}')
        folders.append(tmp_path / f'lucene-{size}')
    changed = {
        'spec': 'bm25+rm3',
        'index': folders[1],
        'num_results': 2,
        'threads': 2,
        'download': True,
        'device': NO_DEVICE,
        'language': 'de',
    }
    return [Case(ours.LuceneRetriever, {'spec': 'bm25', 'index': folders[0]}, changed, TOPICS)]


@pytest.mark.parametrize(
    'cases',
    [
        'first_stages',
        'fusions',
        'rerankers',
        'texts',
        'indexers',
        pytest.param('lucenes', marks=pytest.mark.jvm),
    ],
)
def test_every_parameter_can_be_set(cases, opened, request):
    tested = {}
    for case in request.getfixturevalue(cases):
        tested.setdefault(case.kind, set()).update(case.others)
        before = _outcome(partial(_made, case), case, opened)
        for name, value in case.others.items():
            fresh = _outcome(partial(_made, case, {name: value}), case, opened)
            for assign in (Configured.set_parameter, setattr):
                changed = _outcome(partial(_made_then_set, case, name, value, assign), case, opened)
                assert changed == fresh, (case.kind, name, assign)
                assert changed != before, (case.kind, name, assign)
    for kind, names in tested.items():
        assert names == set(inspect.signature(kind).parameters), kind


def _made(case, changed=None):
    signature = inspect.signature(case.kind)
    arguments = case.arguments | (changed or {})
    bound = inspect.BoundArguments(signature, {})
    bound.arguments = {name: arguments[name] for name in signature.parameters if name in arguments}
    return case.kind(*bound.args, **bound.kwargs)


def _made_then_set(case, name, value, assign):
    transformer = _made(case)
    assign(transformer, name, value)
    assert transformer.get_parameter(name) == value
    return transformer


def _outcome(make, case, opened):
    """What a transformer does, and with what it was opened; or the error that it raises."""
    try:
        transformer = make()
        if isinstance(transformer, pt.Indexer):
            return _index_files(transformer)
        threads = transformer.ranker.threads if isinstance(transformer, ours.Retriever) else None
        return transformer(case.frame).to_csv(), threads, opened[-1:]
    except (PyseriniRepbertError, RuntimeError) as error:
        return type(error), str(error)


def _index_files(indexer):
    """The bytes of the files that an indexer writes, which are then removed."""
    documents = [{'docno': f'd{n}', 'text': 'red cat', 'title': 'old sea'} for n in range(3)]
    folder = indexer.index([*documents, {'docno': 'without text'}])
    contents = {str(path): path.read_bytes() for path in folder.rglob('*') if path.is_file()}
    shutil.rmtree(folder)
    return contents
