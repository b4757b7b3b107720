"""Collections whose vectors are stored in int8 or float16."""

import json

import numpy as np
import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.copying import copy_collection
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.index.quantized import quantize
from pyserini_repbert.systems.encoders import term_weights_encoder

TEXTS = {'a': 'the cat sat', 'b': 'red fish', 'c': 'the dog on the mat', 'd': 'a cat', 'e': 'fish'}


def open_in_int8(folder, checkpoint, **settings):
    return Collection.open(folder, encoder=str(checkpoint), sparse='none', dtype='int8', **settings)


def stored_bytes(collection):
    """The numbers and scales of each live passage, by its document."""
    stored = {}
    docids = collection.generation.docids
    for live in collection.generation.shards:
        rows = range(len(live.shard)) if live.live is None else np.flatnonzero(live.live)
        for row in rows:
            vectors = live.shard.vectors
            docid = docids([live.shard.documents[row]])[0]
            stored[docid] = (vectors.numbers[row].tobytes(), vectors.scales[row].tobytes())
    return stored


def test_vectors_stay_the_same_bytes_wherever_they_go(checkpoint, tmp_path, monkeypatch):
    with open_in_int8(tmp_path / 'mine', checkpoint) as collection:
        collection.sync(TEXTS.items())
        first = stored_bytes(collection)
        collection.add([('f', 'the red cat')])
        collection.delete('b')
        collection.compact()
        assert len(collection.generation.shards) == 1
        compacted = stored_bytes(collection)
        assert {docid: compacted[docid] for docid in 'acde'} == {
            docid: first[docid] for docid in 'acde'
        }
        # a renamed document takes its vector from the shard
        changes = collection.add([('renamed', TEXTS['a'])])
        assert changes.encoded == 0
        assert stored_bytes(collection)['renamed'] == first['a']
        hits = collection.search('cat', 9)
    assert check_collection(tmp_path / 'mine').startswith(f'{tmp_path / "mine"}: intact')
    copy_collection(tmp_path / 'mine', tmp_path / 'copy')
    with Collection.open(tmp_path / 'copy') as copy:
        assert copy.generation.settings.dtype == 'int8'
        assert copy.search('cat', 9) == hits

    with open_in_int8(tmp_path / 'anew', checkpoint) as anew:
        now = {docid: text for docid, text in TEXTS.items() if docid != 'b'}
        anew.sync([*now.items(), ('f', 'the red cat'), ('renamed', TEXTS['a'])])
        again = anew.search('cat', 9)
    assert {hit.docid for hit in hits} == {hit.docid for hit in again}
    scores = {hit.docid: hit.score for hit in again}
    for hit in hits:
        # a vector depends on its batch by so little that few whole numbers differ, by 1
        assert hit.score == pytest.approx(scores[hit.docid], abs=0.05)


def test_scores_are_those_of_the_stored_values(checkpoint, tmp_path):
    vectors = quantize(RepBertDocumentEncoder(checkpoint).encode(list(TEXTS.values())))
    query = RepBertQueryEncoder(checkpoint).encode('cat')
    scores = dict(zip(TEXTS, np.asarray(vectors) @ query, strict=True))
    with open_in_int8(tmp_path / 'mine', checkpoint) as collection:
        collection.sync(TEXTS.items())
        for hit in collection.search('cat', 9):
            assert hit.score == pytest.approx(scores[hit.docid], rel=1e-5)
        assert len(collection.more_like('a', 9)) == 4


def test_another_type_is_refused_or_rebuilt(checkpoint, tmp_path):
    with Collection.open(tmp_path / 'mine', str(checkpoint), sparse='none') as collection:
        collection.sync(TEXTS.items())
        key = collection.generation.settings.model_key()
    manifest = (tmp_path / 'mine' / 'generations' / '000001.json').read_text()
    assert 'dtype' not in json.loads(manifest)['settings']
    with open_in_int8(tmp_path / 'mine', checkpoint) as collection:
        with pytest.raises(MismatchError, match="has dtype 'float32', 'int8' was given"):
            collection.sync(TEXTS.items())
        assert collection.sync(TEXTS.items(), rebuild=True).encoded == len(TEXTS)
        assert {live.shard.record.dtype for live in collection.generation.shards} == {'int8'}
        assert collection.generation.settings.model_key() != key
    # said once, it is stored
    with Collection.open(tmp_path / 'mine') as collection:
        collection.add([('f', 'the red cat')])
        assert {live.shard.record.dtype for live in collection.generation.shards} == {'int8'}
    with pytest.raises(InputError, match='float32, float16 or int8'):
        Collection.open(tmp_path / 'other', dtype='int4')


def test_the_command_stores_what_it_is_told(checkpoint, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({'id': docid, 'text': text}) for docid, text in TEXTS.items()]
    (tmp_path / 'corpus.jsonl').write_text('\n'.join(lines) + '\n')
    for dtype in ('float16', 'int8'):
        arguments = ['index', 'sync', '--corpus', 'corpus.jsonl', '--index', dtype]
        arguments += ['--encoder', str(checkpoint), '--sparse', 'none', '--store', dtype]
        assert run(main, [*arguments, '--quiet']) == 0
        with Collection.open(dtype) as collection:
            (live,) = collection.generation.shards
            assert live.shard.vectors.dtype == dtype
            assert len(collection.search('cat', 9)) == len(TEXTS)
        assert run(main, ['index', 'check', '--index', dtype]) == 0
    assert capsys.readouterr().err == ''


def test_weights_of_terms_lie_beside_vectors_in_int8(checkpoint, tiny_epic, tmp_path):
    settings = {'encoder': checkpoint, 'dtype': 'int8'}
    with Collection.open(
        tmp_path / 'mine', **settings, sparse=term_weights_encoder(str(tiny_epic()))
    ) as collection:
        collection.sync(TEXTS.items())
        first = stored_bytes(collection)
        collection.delete('b')
        collection.compact()
        assert stored_bytes(collection) == {docid: first[docid] for docid in 'acde'}
        assert len(collection.search('cat', 9)) == 4
    check_collection(tmp_path / 'mine')
