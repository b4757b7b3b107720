"""Reranking with EPIC: from an index, on the fly, and both."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from folders import change_model

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.errors import InputError, MismatchError, MissingResourceError
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import EpicReranker
from pyserini_repbert.systems.epic.encoder import EpicEncoder
from tests.rerank.many import cost_of, rerank_many

QUERIES = ['blue fish in the sea', 'moon', 'the cat ate the bird ?']


@pytest.fixture
def passages(corpus_file):
    return list(open_corpus(corpus_file(25)))


@pytest.fixture
def encoder(tiny_epic):
    return EpicEncoder(tiny_epic())


def candidates(passages, text=True):
    return [Candidate(passage.docid, 7.0, passage.text if text else None) for passage in passages]


def scores(found):
    return {candidate.docid: candidate.score for candidate in found}


def test_on_the_fly_scores_are_inner_products(encoder, passages):
    given = candidates(passages)
    found = EpicReranker(encoder).rerank(QUERIES[0], given)
    dense = encoder.encode_dense([passage.text for passage in passages])
    query = encoder.encode_query(QUERIES[0])
    expected = dense[:, query.terms] @ query.weights
    np.testing.assert_allclose([scores(found)[p.docid] for p in passages], expected, atol=1e-5)
    assert [c.docid for c in found] == sorted(
        scores(found), key=lambda docid: (-scores(found)[docid], docid)
    )
    assert given == candidates(passages)


@pytest.mark.parametrize(('weights', 'atol'), [('float16', 2e-3), ('uint8', 2e-2)])
@pytest.mark.parametrize('prune', [0, 15])
def test_an_index_gives_the_scores_of_the_fly(prune, weights, atol, encoder, passages, tmp_path):
    encode_corpus(
        passages, encoder, tmp_path / 'index', prune=prune, weights=weights, shard_size=10
    )
    indexed = EpicReranker(encoder, index=tmp_path / 'index')
    fly = EpicReranker(encoder, prune=prune)
    without_text = [candidates(passages, text=False)] * 3
    for one, other in zip(
        rerank_many(indexed, QUERIES, without_text),
        rerank_many(fly, QUERIES, [candidates(passages)] * 3),
        strict=True,
    ):
        assert set(scores(one)) == set(scores(other))
        for docid, score in scores(one).items():
            assert score == pytest.approx(scores(other)[docid], abs=atol)
    lists = [candidates(passages)] * 3
    assert [cost_of(one, QUERIES, lists).inferences for one in (indexed, fly)] == [0, 25]


@pytest.mark.parametrize('prune', [0, 15])
def test_scores_do_not_depend_on_other_queries(prune, encoder, passages):
    reranker = EpicReranker(encoder, prune=prune)
    lists = [candidates(passages[:20]), [], candidates(passages[5:]), candidates(passages[:1])]
    seen = []
    many = rerank_many(reranker, [*QUERIES, ''], lists, on_progress=seen.append)
    for query, own, found in zip([*QUERIES, ''], lists, many, strict=True):
        assert scores(found) == pytest.approx(scores(reranker.rerank(query, own)), abs=1e-5)
    assert sum(seen) == 41


def test_missing_candidates_are_encoded_or_refused(encoder, passages, tmp_path):
    encode_corpus(passages[:20], encoder, tmp_path / 'index', prune=15)
    mixed = candidates(passages)
    reranker = EpicReranker(encoder, index=tmp_path / 'index')
    found = scores(reranker.rerank(QUERIES[0], mixed))
    assert cost_of(reranker, QUERIES[:1], [mixed]).inferences == 5
    whole = scores(EpicReranker(encoder, prune=15).rerank(QUERIES[0], mixed))
    assert found == pytest.approx(whole, abs=2e-3)
    strict = EpicReranker(encoder, index=tmp_path / 'index', missing='refuse')
    with pytest.raises(MissingResourceError, match=r"'d20' \(one of 5\) has no vector"):
        strict.rerank(QUERIES[0], mixed)
    with pytest.raises(InputError, match="'d20' has no vector in index .* and has no text"):
        reranker.rerank(QUERIES[0], candidates(passages, text=False))
    with pytest.raises(InputError, match="missing 'skip'"):
        EpicReranker(encoder, missing='skip')


def test_an_empty_query_scores_zero_and_keeps_the_order_of_the_candidates(
    encoder, passages, tmp_path
):
    encode_corpus(passages, encoder, tmp_path / 'index', prune=15)
    for reranker in (EpicReranker(encoder), EpicReranker(encoder, index=tmp_path / 'index')):
        found = reranker.rerank('', candidates(passages)[::-1])
        assert {candidate.score for candidate in found} == {0.0}
        assert [candidate.docid for candidate in found] == [passage.docid for passage in passages][
            ::-1
        ]
        assert reranker.rerank(QUERIES[0], []) == []


def test_an_index_of_another_model_is_refused(encoder, passages, tiny_epic, tmp_path):
    encode_corpus(passages, encoder, tmp_path / 'index', prune=15)
    with pytest.raises(MismatchError, match='other weights'):
        EpicReranker(tiny_epic('other', seed=1), index=tmp_path / 'index')
    for part in ('configuration', 'tokenizer'):
        changed = tiny_epic(part)
        change_model(changed, part)
        with pytest.raises(
            MismatchError, match=f'other {part} than encoder .*: pass the encoder it was built with'
        ):
            EpicReranker(changed, index=tmp_path / 'index')
    with pytest.raises(MismatchError, match=r'another vocabulary \(40 terms\).*\(41 terms\)'):
        EpicReranker(tiny_epic('larger', vocab_size=41), index=tmp_path / 'index')
    renamed = tiny_epic('renamed')
    vocabulary = renamed / 'vocab.txt'
    vocabulary.write_text(vocabulary.read_text().replace('moon', 'noon'))
    with pytest.raises(MismatchError, match='another vocabulary'):
        EpicReranker(renamed, index=tmp_path / 'index')
    with pytest.raises(MismatchError, match="variant 'official', encoder .* has 'paper_strict'"):
        EpicReranker(tiny_epic('strict', variant='paper_strict'), index=tmp_path / 'index')


def test_work_counts_what_was_read(tiny_epic, tmp_path):
    """Chunks of 10 wordpieces, passages cut to 15; d0 to d3 have 3, 12, 15 and 40 wordpieces, d4
    has none.
    """
    folder = tiny_epic(
        max_position_embeddings=12, ranking={'system': 'epic', 'variant': 'official'}
    )
    short = EpicEncoder(folder, max_length=15)
    lengths = (3, 12, 15, 40, 0)
    passages = [
        Passage(f'd{number}', ' '.join(['cat'] * length)) for number, length in enumerate(lengths)
    ]
    for prune in (0, 9):
        fly = EpicReranker(short, prune=prune)
        cost = cost_of(fly, ['cat', 'dog'], [candidates(passages), candidates(passages[3:])])
        # 3 + 2 in one chunk; 12 + 4, 15 + 4 and 15 + 4 in two; nothing; d3 counts once as read,
        # twice as cut
        assert (cost.inferences, cost.tokens, cost.candidates, cost.truncated) == (
            5,
            5 + 16 + 19 + 19,
            7,
            2,
        )
    encode_corpus(passages[2:], short, tmp_path / 'index', prune=9)
    mixed = EpicReranker(short, index=tmp_path / 'index')
    cost = cost_of(mixed, ['cat'], [candidates(passages)])
    assert (cost.inferences, cost.tokens, cost.candidates, cost.truncated, cost.stored) == (
        2,
        5 + 16,
        5,
        0,
        3,
    )


def test_a_stage_names_its_index(encoder, passages, tmp_path):
    from pyserini_repbert.indexes.texts import open_texts
    from pyserini_repbert.pipeline import open_reranker, parse_stage

    encode_corpus(passages, encoder, tmp_path / 'index', prune=15, store_text=True)
    stage = parse_stage(f'{encoder.name}@10:index={tmp_path / "index"},missing=refuse')
    reranker = open_reranker(stage.name, options=dict(stage.options), precision='float32')
    assert isinstance(reranker, EpicReranker) and reranker.prune == 15
    found = reranker.rerank(QUERIES[0], candidates(passages, text=False), 10)
    assert found == EpicReranker(encoder, index=tmp_path / 'index').rerank(
        QUERIES[0], candidates(passages, text=False), 10
    )
    assert open_texts(None, str(tmp_path / 'index'), []).texts(['d3']) == [passages[3].text]


def test_an_index_sets_the_length_of_passages(encoder, passages, tiny_epic, tmp_path):
    short = EpicEncoder(tiny_epic('short'), max_length=2)
    encode_corpus(passages[:10], short, tmp_path / 'index', prune=15)
    reranker = EpicReranker(short.name, index=tmp_path / 'index')
    assert reranker.encoder.limit == 2
    found = scores(reranker.rerank(QUERIES[0], candidates(passages)))
    expected = scores(EpicReranker(short, prune=15).rerank(QUERIES[0], candidates(passages)))
    assert found == pytest.approx(expected, abs=2e-3)


def test_an_identity_has_what_decides_scores_from_texts_and_from_an_index(
    encoder, passages, tmp_path
):
    weights = Path(encoder.name) / 'model.safetensors'
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    assert encoder.weights_sha256 == digest
    identity = {
        'reranker': 'EpicReranker',
        'name': encoder.name,
        'weights_sha256': digest,
        'max_length': encoder.limit,
        'prune': 7,
        'dtype': 'float32',
    }
    assert EpicReranker(encoder, prune=7).identity() == identity
    encode_corpus(passages[:5], encoder, tmp_path / 'index', prune=15, weights='uint8')
    indexed = EpicReranker(encoder, index=tmp_path / 'index', prune=7)
    manifest = hashlib.sha256((tmp_path / 'index' / 'manifest.json').read_bytes()).hexdigest()
    of_index = {'prune': 15, 'index_weights': 'uint8', 'index_sha256': manifest}
    assert indexed.identity() == {**identity, **of_index}
    encode_corpus(passages[1:6], encoder, tmp_path / 'other', prune=15, weights='uint8')
    other = EpicReranker(encoder, index=tmp_path / 'other')
    assert other.identity() != indexed.identity()
