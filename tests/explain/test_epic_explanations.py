"""EPIC's explanations: they sum to the score, and show what they should."""

import pytest

from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.errors import MismatchError, MissingResourceError
from pyserini_repbert.explain import explain_indexed, explain_text
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import EpicReranker
from pyserini_repbert.systems.epic.encoder import EpicEncoder

QUERY = 'the old fish in the sea'
PASSAGE = 'big blue fish ate the small bird , fish'


@pytest.fixture
def encoder(tiny_epic):
    return EpicEncoder(tiny_epic())


@pytest.mark.parametrize('prune', [0, 10])
def test_contributions_sum_to_the_rerankers_score(prune, encoder):
    found = explain_text(encoder, QUERY, PASSAGE, prune=prune)
    (reranked,) = EpicReranker(encoder, prune=prune).rerank(QUERY, [Candidate('d', text=PASSAGE)])
    assert found['score'] == pytest.approx(reranked.score, abs=1e-5)
    assert sum(part['contribution'] for part in found['contributions']) == found['score']
    assert [part['term'] for part in found['contributions']].count('the') == 1
    products = [part['contribution'] for part in found['contributions']]
    assert products == sorted(products, reverse=True)


def test_terms_and_expansions(encoder):
    found = explain_text(encoder, QUERY, PASSAGE, top=5)
    assert [term['term'] for term in found['query_terms']] == QUERY.split()
    assert [term['term'] for term in found['passage_terms']] == PASSAGE.split()
    assert len({term['weight'] for term in found['passage_terms'] if term['term'] == 'fish'}) == 1
    dense = encoder.encode_dense([PASSAGE])[0]
    absent = [
        term for term in range(40) if encoder.tokenizer.tokens([term])[0] not in PASSAGE.split()
    ]
    strongest = sorted(absent, key=lambda term: -dense[term])[:5]
    assert [term['term'] for term in found['expansions']] == encoder.tokenizer.tokens(strongest)
    assert 0 < found['quality'] < 1
    assert explain_text(encoder, '', PASSAGE)['score'] == 0
    assert explain_text(encoder, QUERY, '')['score'] == 0


def test_a_stored_vector_is_explained_as_it_is(encoder, corpus_file, tmp_path, tiny_epic):
    corpus = open_corpus(corpus_file(12))
    encode_corpus(corpus, encoder, tmp_path / 'index', prune=12, weights='uint8')
    index = TermWeightsBundle(tmp_path / 'index')
    (reranked,) = EpicReranker(encoder, index=index).rerank(QUERY, [Candidate('d5')])
    found = explain_indexed(encoder, index, QUERY, 'd5')
    assert found['score'] == pytest.approx(reranked.score, abs=1e-5)
    assert (
        found['passage_terms'] == [] and found['quality'] is None and len(found['expansions']) == 10
    )
    text = list(corpus)[5].text
    known = explain_indexed(encoder, index, QUERY, 'd5', text)
    assert [term['term'] for term in known['passage_terms']] == text.split()
    assert known['score'] == found['score']
    with pytest.raises(MissingResourceError, match="no passage 'd99'"):
        explain_indexed(encoder, index, QUERY, 'd99')
    with pytest.raises(MismatchError, match='other weights'):
        explain_indexed(EpicEncoder(tiny_epic('other', seed=3)), index, QUERY, 'd5')
