"""`minilm` is a name for a folder of sentence-transformers, all-MiniLM-L6-v2."""

import json

import numpy as np
import pytest

from pyserini_repbert import catalog
from pyserini_repbert.collection import Collection
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.encode import (
    RepBertDocumentEncoder,
    RepBertQueryEncoder,
    document_encoder,
    query_encoder,
)
from pyserini_repbert.errors import MismatchError
from pyserini_repbert.models.checkpoints.checkpoint import _warn, open_checkpoint
from pyserini_repbert.record import OWN_ENGINE
from pyserini_repbert.train.teachers import BiEncoderTeacher

TEXTS = [
    'why do tomatoes split',
    '',
    'Sün ☃ Größe, naïve café',
    'a question of many words about slugs, lettuce, copper tape and rain ' * 3,
    'watering evenly keeps the fruit whole ' * 60,
]


@pytest.fixture(scope='module')
def folder():
    return str(catalog.package_folder(catalog.get('encoders', 'minilm')))


def test_vectors_are_those_of_sentence_transformers(folder):
    sentence_transformers = pytest.importorskip('sentence_transformers')
    theirs = sentence_transformers.SentenceTransformer(folder, device='cpu', local_files_only=True)
    expected = theirs.encode(TEXTS)
    queries = query_encoder('minilm')
    passages = document_encoder('minilm')
    np.testing.assert_allclose(passages.encode(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(queries.encode_batch(TEXTS), expected, atol=1e-5)
    assert queries.limit == passages.limit == theirs.max_seq_length
    np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1, atol=1e-5)


def test_name_and_folder_are_one_encoder(folder):
    named = document_encoder('minilm')
    opened = document_encoder(folder)
    assert (named.name, opened.name) == ('minilm', folder)
    assert named.engine == opened.engine == OWN_ENGINE
    for attribute in ('weights_sha256', 'pooling', 'limit', 'max_length', 'dimension'):
        assert getattr(named, attribute) == getattr(opened, attribute)
    np.testing.assert_array_equal(named.encode(TEXTS), opened.encode(TEXTS))


def test_indexes_of_the_name_and_of_the_folder_are_interchangeable(
    folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    lines = [
        json.dumps({'id': f'd{n}', 'contents': text or 'rain'}) for n, text in enumerate(TEXTS)
    ]
    (tmp_path / 'corpus.jsonl').write_text('\n'.join(lines) + '\n')
    corpus = ['encode', '--corpus', 'corpus.jsonl', '--quiet']
    assert run(main, [*corpus, '--encoder', 'minilm', '--output', 'named']) == 0
    assert run(main, [*corpus, '--encoder', folder, '--output', 'opened']) == 0
    capsys.readouterr()
    query = ['search', '--query', 'split tomatoes', '--quiet']
    answers = set()
    for index, encoder in (('named', folder), ('opened', 'minilm'), ('named', 'minilm')):
        assert run(main, [*query, '--index', index, '--encoder', encoder]) == 0
        answers.add(capsys.readouterr().out)
    assert len(answers) == 1


def test_a_collection_of_the_name_takes_the_folder(folder, tmp_path):
    first = {'id': 'a', 'text': 'Snails eat lettuce.'}
    second = {'id': 'b', 'text': 'Rain splits tomatoes.'}
    with Collection.open(tmp_path / 'notes', encoder='minilm', sparse='none') as collection:
        collection.add([first])
    with Collection.open(tmp_path / 'notes', encoder=folder) as collection:
        collection.add([second])
        hits = collection.search('why do tomatoes split')
    assert [hit.docid for hit in hits] == ['b', 'a']


def test_it_teaches_as_what_it_is():
    teacher = BiEncoderTeacher(open_checkpoint('minilm'))
    (score,) = teacher.scores('q', TEXTS[0], ['d'], [TEXTS[4]])
    query = query_encoder('minilm').encode(TEXTS[0])
    passage = document_encoder('minilm').encode(TEXTS[4])[0]
    assert score == pytest.approx(float(query @ passage), abs=1e-5)


def test_repbert_refuses_it():
    expected = "'minilm' is for the system 'sentence-transformers', 'repbert' was expected"
    with pytest.raises(MismatchError, match=expected):
        RepBertQueryEncoder('minilm')


def test_minilm_dot_is_another_encoder_and_warns_once(caplog):
    _warn.cache_clear()
    with caplog.at_level('WARNING'):
        dot = RepBertQueryEncoder('minilm-dot')
        RepBertDocumentEncoder('minilm-dot')
    assert caplog.text.count('minilm is the model as published') == 1
    assert (dot.limit, dot.pooling) == (20, 'mean')
    assert dot.weights_sha256 != query_encoder('minilm').weights_sha256
    assert np.linalg.norm(dot.encode('why do tomatoes split')) > 2
