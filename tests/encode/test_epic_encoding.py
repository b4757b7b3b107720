"""EPIC's encoder, and corpora encoded into EPIC bundles."""

import numpy as np
import pytest
from folders import tree

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.systems.epic.encoder import EpicEncoder

TEXTS = ['the cat sat on the mat', 'a big blue fish', 'moon', 'old tree , new leaf . red root ?']


def test_query_has_its_terms_only_and_sums_repeated_ones(tiny_epic):
    encoder = EpicEncoder(tiny_epic())
    (query,) = encoder.query_weights(['the cat sat on the mat'])
    ids = query.ids
    weights = query.weights
    vector = encoder.encode_query('the cat sat on the mat')
    assert vector.terms.tolist() == sorted(set(ids))
    assert vector.as_dict()[ids[0]] == pytest.approx(weights[0] + weights[4])
    assert (vector.weights > 0).all()


def test_empty_texts_have_no_terms(tiny_epic):
    encoder = EpicEncoder(tiny_epic())
    assert len(encoder.encode_query('')) == len(encoder.encode_query('  ')) == 0
    dense = encoder.encode_dense(['', 'moon', ''])
    assert not dense[[0, 2]].any() and (dense[1] > 0).all()
    assert [len(vector) for vector in encoder.encode_pruned(['', 'moon'], 5)] == [0, 5]
    assert encoder.passage_weights([''])[0].quality == 0
    assert encoder.encode_dense([]).shape == (0, 40)


@pytest.mark.parametrize('variant', ['official', 'paper_strict', 'paper_mlm_head'])
def test_a_vector_depends_neither_on_its_batch_nor_on_pieces_of_the_vocabulary(
    variant, tiny_epic, monkeypatch
):
    encoder = EpicEncoder(tiny_epic(variant=variant, vocab_size=300))
    texts = [*TEXTS, ' '.join(['moon sat'] * 100)]  # the last needs four chunks
    alone = np.concatenate([encoder.encode_dense([text]) for text in texts])
    np.testing.assert_allclose(encoder.encode_dense(texts, token_budget=10_000), alone, atol=1e-5)
    np.testing.assert_allclose(
        encoder.encode_dense(texts, [299, 0, 7]), alone[:, [299, 0, 7]], atol=1e-5
    )
    monkeypatch.setattr('pyserini_repbert.systems.epic.network._CHUNK_VALUES', 1)
    np.testing.assert_allclose(encoder.encode_dense(texts), alone, atol=1e-5)
    assert (alone.min() < 0) is np.bool_(variant != 'official')


def test_training_gives_the_same_vectors_and_gradients(tiny_epic):
    encoder = EpicEncoder(tiny_epic())
    tokens, lengths, cls_vectors = encoder._contextual(
        encoder._chunks(encoder.tokenizer.ids(TEXTS), 50, 1)
    )
    vectors = encoder.model.document_vectors(tokens, lengths, cls_vectors)
    np.testing.assert_allclose(vectors.detach().numpy(), encoder.encode_dense(TEXTS), atol=1e-5)
    vectors.sum().backward()
    assert encoder.model.document_quality.weight.grad.abs().sum() > 0


def test_a_checkpoint_may_repeat_its_tied_decoder_and_nothing_else(tiny_epic):
    from safetensors.torch import load_file, save_file

    folder = tiny_epic()
    tensors = load_file(folder / 'model.safetensors')
    tensors['cls.predictions.decoder.weight'] = tensors[
        'bert.embeddings.word_embeddings.weight'
    ].clone()
    save_file(tensors, folder / 'model.safetensors')
    EpicEncoder(folder)
    more = {'cls.seq_relationship.bias': tensors['query_importance.bias'].clone()}
    save_file(tensors | more, folder / 'model.safetensors')
    with pytest.raises(DamagedFileError, match='unexpected: cls.seq_relationship.bias'):
        EpicEncoder(folder)
    del tensors['document_quality.weight']
    save_file(tensors, folder / 'model.safetensors')
    with pytest.raises(DamagedFileError, match='missing: document_quality.weight'):
        EpicEncoder(folder)


def test_a_killed_run_continues_to_the_same_bytes(tiny_epic, corpus_file, tmp_path):
    encoder = EpicEncoder(tiny_epic())
    corpus = open_corpus(corpus_file(30))
    options = {'prune': 12, 'shard_size': 8}
    encode_corpus(corpus, encoder, tmp_path / 'at once', **options)
    done = 0

    def stop_at_17(n):
        nonlocal done
        done += n
        if done >= 17:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode_corpus(corpus, encoder, tmp_path / 'stopped', **options, on_progress=stop_at_17)
    with pytest.raises(InputError, match='not finished'):
        TermWeightsBundle(tmp_path / 'stopped')
    with pytest.raises(MismatchError, match="begun with prune '12', now it is '11'"):
        encode_corpus(corpus, encoder, tmp_path / 'stopped', prune=11, shard_size=8, resume=True)
    encode_corpus(corpus, encoder, tmp_path / 'stopped', **options, resume=True)
    assert tree(tmp_path / 'stopped') == tree(tmp_path / 'at once')


def test_passages_without_wordpieces_are_kept_with_empty_vectors(tiny_epic, tmp_path):
    encode_corpus(
        [Passage('a', 'moon'), Passage('b', ' ')],
        EpicEncoder(tiny_epic()),
        tmp_path / 'index',
        prune=5,
    )
    assert [len(TermWeightsBundle(tmp_path / 'index').vector(row)) for row in (0, 1)] == [5, 0]
