"""Another encoder is tried beside the live one: nothing is encoded twice, and nothing is lost."""

import contextlib

import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.encoding import PassageEncoder
from pyserini_repbert.collection.judgments import Judgment
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.extensions.trials import compare_trial, encode_trial, go_back, use_trial
from pyserini_repbert.extensions.trials.side_folders import Side, read_side
from pyserini_repbert.extensions.trials.trying import open_trial

DOCUMENTS = [
    (
        f'd{number}',
        f'{first} {second} and {first} sat on the {second}. The {first} ate it in the sun.',
    )
    for number, (first, second) in enumerate(
        zip('cat dog fish bird sea sun'.split(), 'mat hat moon tree leaf root'.split(), strict=True)
    )
]


@pytest.fixture
def other(tiny_checkpoint):
    """The folder of another tiny encoder."""
    return str(tiny_checkpoint('other', seed=7))


@pytest.fixture
def folder(open_collection):
    with open_collection() as collection:
        collection.sync(DOCUMENTS, source='one')
        return collection.folder


@pytest.fixture
def encoded(monkeypatch):
    """The inputs that were encoded, in order."""
    inputs = []
    encode = PassageEncoder.encode

    def noted(self, texts):
        inputs.extend(texts)
        return encode(self, texts)

    monkeypatch.setattr(PassageEncoder, 'encode', noted)
    return inputs


def hits(folder, question='cat on the moon'):
    with Collection.open(folder) as collection:
        found = collection.search(question)
    return [(hit.docid, round(hit.score, 3)) for hit in found]


def test_a_trial_is_used_and_left_without_encoding(folder, other, encoded):
    before = hits(folder)
    with Collection.open(folder, encoder=other) as collection:
        trial = encode_trial(collection)
        assert len(encoded) == trial.passages > len(DOCUMENTS)
        assert encode_trial(collection) == trial
    assert hits(folder) == before
    assert 'trial: intact' in check_collection(folder).splitlines()[1]
    encoded.clear()
    with Collection.open(folder) as collection:
        assert use_trial(collection).number == 2
    assert encoded == []
    assert read_side(folder, Side.TRIAL) is None
    after = hits(folder)
    assert after != before
    check_collection(folder)
    with Collection.open(folder) as collection:
        assert go_back(collection).settings.encoder != other
        assert use_trial(collection).settings.encoder == other
        assert go_back(collection).number == 5
    assert encoded == []
    assert hits(folder) == before
    with Collection.open(folder) as collection:
        collection.compact()
    assert read_side(folder, Side.TRIAL) is read_side(folder, Side.BEFORE) is None
    assert not list(folder.glob('*trial*'))
    assert hits(folder) == before


def test_a_trial_ranks_as_the_collection_then_does(folder, other):
    with Collection.open(folder, encoder=other) as collection:
        encode_trial(collection)
    judgments_of(folder).add([Judgment('cat on the moon', 'd1', 2), Judgment('sea', 'd4', 1)])
    compared = compare_trial(folder)
    assert compared.n_questions == 2
    with contextlib.closing(open_trial(folder)) as generation:
        assert [len(live.shard) for live in generation.shards] == [generation.manifest.passages]
    with Collection.open(folder) as collection:
        use_trial(collection)
    with Collection.open(folder, encoder=read_side(folder, Side.BEFORE).settings.encoder) as live:
        encode_trial(live)
    again = compare_trial(folder)
    assert again.condensed.now == compared.condensed.trial
    assert again.ndcg.trial == compared.ndcg.now
    assert again.in_common == compared.in_common


def test_only_what_is_new_since_the_trial_is_encoded(folder, other, encoded):
    with Collection.open(folder, encoder=other) as collection:
        encode_trial(collection)
    with Collection.open(folder) as collection:
        collection.add([('new', 'red fish')])
        encoded.clear()
        with pytest.raises(InputError, match='has changed since it was tried'):
            open_trial(folder)
        assert 'as of generation 1' in check_collection(folder)
        use_trial(collection)
    assert encoded == ['red fish']
    with Collection.open(folder) as collection:
        encoded.clear()
        assert go_back(collection).documents == len(DOCUMENTS) + 1
    assert encoded == []


def test_another_language_has_words_of_its_own_and_the_same_vectors(folder, encoded):
    with Collection.open(folder, passage_tokens=5, overlap=1) as collection:
        assert encode_trial(collection).settings.passage_tokens == 5
    encoded.clear()
    with Collection.open(folder, language='de') as collection:
        trial = encode_trial(collection)
    assert encoded == []
    assert [shard.name for shard in trial.shards] == [
        shard.name for shard in Collection.open(folder).generation.manifest.shards
    ]
    assert not list((folder / 'trial' / 'shards').iterdir())


def test_what_cannot_be_tried(folder, open_collection):
    with pytest.raises(InputError, match='is searched by these settings already'):
        encode_trial(Collection.open(folder))
    with pytest.raises(InputError, match='has no trial: name what to try'):
        use_trial(Collection.open(folder))
    with pytest.raises(InputError, match='has nothing to go back to'):
        go_back(Collection.open(folder))
    with pytest.raises(InputError, match='holds no collection'):
        encode_trial(open_collection('none'))


def test_a_damaged_trial_is_found_and_encoded_again(folder, other, encoded):
    with Collection.open(folder, encoder=other) as collection:
        trial = encode_trial(collection)
    vectors = folder / 'trial' / 'shards' / trial.shards[0].name / 'vectors.npy'
    content = bytearray(vectors.read_bytes())
    content[-1] ^= 1
    vectors.write_bytes(content)
    with pytest.raises(DamagedFileError, match='vectors.npy'):
        check_collection(folder)
    encoded.clear()
    with Collection.open(folder) as collection:
        use_trial(collection)
    assert len(encoded) == trial.passages
    check_collection(folder)
    manifest = folder / 'before' / 'generation.json'
    manifest.write_text('{}', encoding='utf-8')
    with pytest.raises(DamagedFileError, match='is not the manifest of a trial'):
        go_back(Collection.open(folder))


@pytest.fixture
def tried(folder, capsys):
    """tried(*flags) -> (status, output, errors) of `index try`."""

    def act(*flags):
        status = run(main, ['index', 'try', '--index', str(folder), '--quiet', *flags])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return act


def test_the_command(tried, folder, other, capsys):
    assert tried()[2].startswith('error: collection ')
    assert tried('--use', '--encoder', other)[0] == 2
    assert tried('--use', '--go-back')[0] == 2
    status, printed, _ = tried('--encoder', other)
    assert status == 0
    assert 'nothing is compared: no question has a relevant document yet' in printed
    judgments_of(folder).add([Judgment('cat on the moon', 'd1', 2)])
    _, printed, said = tried()
    assert '1 judged question, now -> tried:' in printed
    assert 'best ten in common        100%' in printed
    assert '1 judged question says little about others' in said
    run(main, ['index', 'status', '--index', str(folder)])
    assert f"trial: encoder '{other}', 10 wordpieces a passage" in capsys.readouterr().out
    assert 'searched as tried, generation 2' in tried('--use')[1]
    assert 'searched as before, generation 3' in tried('--go-back')[1]
