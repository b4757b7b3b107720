"""`--ray` of `index sync` and `index add`: passages encoded by workers; without Ray itself."""

import json

import numpy as np
import pytest

from pyserini_repbert.collection.generation import open_generation
from pyserini_repbert.commands import command, index
from pyserini_repbert.errors import MismatchError
from pyserini_repbert.pipeline.ray_texts import ClusterEmbedding, EncodeTexts
from pyserini_repbert.systems.encoders import document_encoder


@pytest.fixture
def call(capsys):
    def run(*arguments):
        status = command.run(index.main, [*map(str, arguments), '--quiet'])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def vectors_of(folder):
    """The vector of each passage, by docid and number."""
    generation = open_generation(folder)
    vectors = {}
    for live in generation.shards:
        docids = generation.docids(np.asarray(live.shard.documents))
        for docid, number, vector in zip(
            docids, live.shard.numbers.tolist(), np.asarray(live.shard.vectors), strict=True
        ):
            vectors[docid, number] = vector
    generation.close()
    return vectors


def test_a_collection_is_the_one_of_one_machine(
    tiny_checkpoint, corpus_file, call, local_pool, connect, tmp_path
):
    encoder = tiny_checkpoint()
    settings = ['--encoder', encoder, '--sparse', 'none']
    corpus = corpus_file(70)
    assert call('sync', '--corpus', corpus, '--index', tmp_path / 'here', *settings)[0] == 0
    workers = local_pool(2, loses=(1,))
    asked = connect(workers)
    many = tmp_path / 'many'
    status, printed, error = call(
        'sync', '--corpus', corpus, '--index', many, *settings, '--ray', 'auto', '--threads', 1
    )
    assert (status, error) == (0, '')
    assert printed.endswith('encoded 70 passages into generation 1 of the index\n')
    assert asked == [('auto', 1, False)]
    # Three groups of passages, one of them twice.
    assert len(workers.asked) == 4
    here = vectors_of(tmp_path / 'here')
    there = vectors_of(many)
    assert here.keys() == there.keys()
    for passage, vector in here.items():
        np.testing.assert_allclose(there[passage], vector, rtol=0, atol=1e-5)

    more = tmp_path / 'more.jsonl'
    more.write_text(json.dumps({'id': 'new', 'text': 'a new word'}) + '\n')
    workers.asked.clear()
    assert call('add', '--corpus', more, '--index', many, '--ray', 'auto')[0] == 0
    assert len(workers.asked) == 1
    # What does not change needs no worker.
    workers.asked.clear()
    assert call('sync', '--corpus', corpus, '--index', many, '--ray', 'auto')[0] == 0
    assert not workers.asked


def test_what_the_workers_cannot_do_leaves_the_collection_as_it_was(
    tiny_checkpoint, corpus_file, call, local_pool, connect, tmp_path
):
    settings = ['--encoder', tiny_checkpoint(), '--sparse', 'none']
    folder = tmp_path / 'mine'
    connect(local_pool(1, loses=range(100)))
    asked = ['sync', '--corpus', corpus_file(5), '--index', folder, *settings]
    status, printed, error = call(*asked, '--ray', 'auto')
    assert (status, printed) == (2, '')
    assert error.startswith('error: group 0 of passages was tried 5 times')
    connect(local_pool(1))
    assert call(*asked, '--ray', 'auto')[0] == 0


def test_workers_of_another_checkpoint_are_refused(tiny_checkpoint, local_pool):
    encoder = document_encoder(str(tiny_checkpoint()))
    vectors = ClusterEmbedding(local_pool(1))(encoder, ['a word'])
    np.testing.assert_allclose(vectors, encoder.embed(['a word']), rtol=0, atol=1e-5)
    other = EncodeTexts(encoder.name, encoder.dimension, 'float32', ('0' * 64, None, None))
    with pytest.raises(MismatchError, match='give every machine the same checkpoint'):
        other.open(1)


def test_vectors_are_cut_as_the_collection_says(tiny_checkpoint, local_pool):
    encoder = document_encoder(str(tiny_checkpoint())).truncated(8)
    vectors = ClusterEmbedding(local_pool(1))(encoder, ['a word', 'another'])
    assert vectors.shape == (2, 8)
    np.testing.assert_allclose(vectors, encoder.embed(['a word', 'another']), rtol=0, atol=1e-5)
