import json
import shutil

import numpy as np
import pytest
from folders import tree

from pyserini_repbert.commands.encode import main
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.index import DenseBundle
from pyserini_repbert.names.corpora import open_corpus


@pytest.fixture
def encoder(tiny_checkpoint):
    return RepBertDocumentEncoder(tiny_checkpoint())


def test_a_bundle_holds_the_encoders_vectors_in_corpus_order(encoder, corpus_file, tmp_path):
    corpus = open_corpus(corpus_file(23))
    done = []
    manifest = encode_corpus(
        corpus, encoder, tmp_path / 'index', shard_size=10, store_text=True, on_progress=done.append
    )
    assert manifest is not None and manifest.count == 23 and sum(done) == 23
    assert [shard.count for shard in manifest.shards] == [10, 10, 3]
    bundle = DenseBundle(tmp_path / 'index')
    passages = list(corpus)
    assert bundle.docids(np.arange(23)) == [passage.docid for passage in passages]
    stored = np.concatenate([vectors for _, vectors in bundle.blocks(4)])
    np.testing.assert_allclose(
        stored, encoder.encode([passage.text for passage in passages]), atol=1e-5
    )
    assert stored.dtype == np.float32
    assert bundle.texts(['d22', 'nowhere', 'd0']) == [passages[22].text, None, passages[0].text]
    assert list(bundle.passages()) == passages


def test_vectors_can_be_stored_in_half_precision(encoder, corpus_file, tmp_path):
    encode_corpus(open_corpus(corpus_file(5)), encoder, tmp_path / 'half', dtype='float16')
    encode_corpus(open_corpus(corpus_file(5)), encoder, tmp_path / 'whole')
    half, whole = (next(DenseBundle(tmp_path / name).blocks(5))[1] for name in ('half', 'whole'))
    assert half.dtype == np.float16
    np.testing.assert_array_equal(half, whole.astype(np.float16))
    with pytest.raises(InputError, match='int4'):
        encode_corpus([], encoder, tmp_path / 'no', dtype='int4')


def test_a_stopped_run_goes_on_to_the_same_bytes(encoder, corpus_file, tmp_path):
    corpus = open_corpus(corpus_file(30))
    encode_corpus(corpus, encoder, tmp_path / 'at once', shard_size=8, store_text=True)

    def stop_at_17(number):
        stop_at_17.count += number
        if stop_at_17.count > 17:
            raise KeyboardInterrupt

    stop_at_17.count = 0
    options = {'shard_size': 8, 'store_text': True}
    with pytest.raises(KeyboardInterrupt):
        encode_corpus(
            corpus,
            encoder,
            tmp_path / 'stopped',
            **options,
            on_progress=stop_at_17,
            token_budget=40,
        )
    (tmp_path / 'stopped' / '.shard-00002.killed').mkdir()
    assert not (tmp_path / 'stopped' / 'manifest.json').exists()
    with pytest.raises(InputError, match='not finished: resume it') as refused:
        DenseBundle(tmp_path / 'stopped')
    assert refused.value.parameters == ('resume',)
    shutil.rmtree(tmp_path / 'at once')
    encode_corpus(corpus, encoder, tmp_path / 'at once', **options, token_budget=40)
    before = (tmp_path / 'stopped' / 'shard-00000' / 'vectors.npy').stat().st_mtime_ns
    encode_corpus(corpus, encoder, tmp_path / 'stopped', **options, resume=True, token_budget=40)
    assert tree(tmp_path / 'stopped') == tree(tmp_path / 'at once')
    assert (tmp_path / 'stopped' / 'shard-00000' / 'vectors.npy').stat().st_mtime_ns == before


def test_resuming_refuses_what_differs(encoder, tiny_checkpoint, corpus_file, tmp_path):
    output = tmp_path / 'index'
    corpus = corpus_file(12)
    encode_corpus(open_corpus(corpus), encoder, output, shard_size=5)
    before = tree(output)
    with pytest.raises(InputError, match='is not empty: resume it') as refused:
        encode_corpus(open_corpus(corpus), encoder, output, shard_size=5)
    assert refused.value.parameters == ('resume', 'overwrite')
    other = RepBertDocumentEncoder(tiny_checkpoint('other', seed=1))
    with pytest.raises(MismatchError, match='begun with encoder'):
        encode_corpus(open_corpus(corpus), other, output, shard_size=5, resume=True)
    with pytest.raises(MismatchError, match="shard_size '5', now it is '6'"):
        encode_corpus(open_corpus(corpus), encoder, output, shard_size=6, resume=True)
    changed = tmp_path / 'changed.jsonl'
    changed.write_text(corpus.read_text().replace('cat', 'dog', 1))
    with pytest.raises(MismatchError, match='other passages'):
        encode_corpus(open_corpus(changed), encoder, output, shard_size=5, resume=True)
    with pytest.raises(MismatchError, match='beyond the end'):
        encode_corpus(list(open_corpus(corpus))[:5], encoder, output, shard_size=5, resume=True)
    assert tree(output) == before
    encode_corpus(open_corpus(corpus), encoder, output, shard_size=5, resume=True)
    assert tree(output) == before


def test_a_vector_that_is_not_finite_is_an_error_and_nothing_is_written(
    encoder, corpus_file, tmp_path
):
    encoder.model.bert.embeddings.LayerNorm.weight.data[:] = float('nan')
    with pytest.raises(DamagedFileError, match="passage 'd0' is not finite"):
        encode_corpus(open_corpus(corpus_file(3)), encoder, tmp_path / 'index')
    assert not list((tmp_path / 'index').glob('*shard*'))


def test_the_command_encodes_and_reports_bad_lines(tiny_checkpoint, tmp_path, capsys, caplog):
    corpus = tmp_path / 'corpus.tsv'
    corpus.write_bytes(b'1\tthe cat\n2\t\n3 no tab\n4\tb\xffd\n1\tagain\n5\tthe dog\n')
    arguments = [
        '--corpus',
        str(corpus),
        '--encoder',
        str(tiny_checkpoint()),
        '--output',
        str(tmp_path / 'index'),
    ]
    with pytest.raises(InputError, match=r"corpus\.tsv:2: passage '2' has no text"):
        main(arguments)
    main([*arguments, '--on-error', 'skip', '--overwrite', '--vector-dtype', 'float16'])
    assert '2 passages x 16 float16 in 1 shard, 4 skipped' in capsys.readouterr().out
    places = [record.getMessage().split(': ')[0].rsplit(':', 1)[1] for record in caplog.records]
    assert places == ['2', '3', '4', '5']
    assert (tmp_path / 'index' / 'shard-00000' / 'docids.txt').read_text() == '1\n5\n'
    manifest = json.loads((tmp_path / 'index' / 'manifest.json').read_text())
    assert manifest['settings']['dimension'] == 16 and manifest['count'] == 2
