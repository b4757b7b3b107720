"""What records call rankers: resuming compares it, so that a class may be renamed, but not this."""

import importlib
import inspect

import pytest

from pyserini_repbert.ranking import Ranker

RECORDED = {
    'collection.dense_search:DenseDocumentSearcher': 'DocumentSearcher',
    'collection.rescoring:RescoredSearcher': 'RescoredSearcher',
    'collection.searching:CollectionSearcher': 'CollectionSearcher',
    'collection.representation_search:RepresentationSearcher': 'RepresentationSearcher',
    'collection.bm25_search:Bm25DocumentSearcher': 'DocumentBm25',
    'collection.bm25_search:FilteredBm25': 'FilteredBm25',
    'extensions.neighbours.ladr:LadrReranker': 'LadrReranker',
    'extensions.neighbours.reranking:AdaptiveReranker': 'AdaptiveReranker',
    'extensions.several.searching:MergedRanking': 'MergedRanking',
    'extensions.several.searching:SeveralSearcher': 'SeveralSearcher',
    'fusion.fused:Fusion': 'Fusion',
    'lucene.impacts:ImpactSearcher': 'ImpactSearcher',
    'lucene.searcher:LuceneSparseSearcher': 'LuceneSparseSearcher',
    'indexes.dense.searcher:DenseSearcher': 'RepBertSearcher',
    'pipeline.pipeline:Pipeline': 'Pipeline',
    'pipeline.pipeline:RerankerChain': 'RerankerChain',
    'pipeline.spreading:SpreadRerankers': 'SpreadRerankers',
    'rerank.term_weights:TermWeightsReranker': 'TermWeightsReranker',
    'search.dense:VectorSearcher': 'DenseSearcher',
    'search.hybrid:HybridSearcher': 'HybridSearcher',
    'search.hybrid:PyseriniRanker': 'PyseriniRanker',
    'indexes.term_weights.searcher:TermWeightsSearcher': 'ExactImpactSearcher',
    'serve.queues:BatchedRanker': 'BatchedRanker',
    'systems.cedr.reranker:CedrReranker': 'CedrReranker',
    'systems.duobert.reranker:DuoBertReranker': 'DuoBertReranker',
    'systems.duobert.reranker:RememberingDuoBert': 'RememberingDuoBert',
    'systems.duobert.saved_scores:ScoreRecorder': 'ScoreRecorder',
    'systems.epic.reranker:EpicReranker': 'EpicReranker',
    'systems.impact_searcher:EpicImpactSearcher': 'EpicImpactSearcher',
    'extensions.language_models.reranker:LanguageModelReranker': 'LanguageModelReranker',
    'systems.mmr.reranker:MmrReranker': 'MmrReranker',
    'systems.monobert.reranker:MonoBertReranker': 'MonoBertReranker',
    'extensions.token_vectors.reranker:MultiVectorReranker': 'MultiVectorReranker',
    'systems.sentence_transformers.reranker:SentenceCrossEncoderReranker': (
        'SentenceCrossEncoderReranker'
    ),
    'systems.sparse_encoder.reranker:SparseEncoderReranker': 'SparseEncoderReranker',
}


def ranker_class(place):
    module, _, name = place.partition(':')
    return getattr(importlib.import_module(f'pyserini_repbert.{module}'), name)


@pytest.mark.parametrize('place', RECORDED)
def test_a_class_is_recorded_as_ever(place):
    assert ranker_class(place).recorded_as == RECORDED[place]


def test_every_ranker_of_the_package_is_above():
    listed = {ranker_class(place) for place in RECORDED}
    waiting = [Ranker]
    while waiting:
        subclasses = waiting.pop().__subclasses__()
        waiting += subclasses
        for kind in subclasses:
            if kind.__module__.startswith('pyserini_repbert.') and not inspect.isabstract(kind):
                assert kind in listed


def test_a_class_of_a_users_is_recorded_by_its_own_name():
    class Own(ranker_class('systems.epic.reranker:EpicReranker')):
        pass

    assert Own.recorded_as == 'Own'


def test_identities_have_the_recorded_name():
    class Searches(Ranker, recorded_as='first stage'):
        def _rank(self, topics, run, k, trace):
            return {}

    assert Searches().identity() == {'ranker': 'first stage', 'name': ''}
    assert Searches().label == 'first stage'
