"""kill -9 at file events and SQL statements of a collection's writer: the published generation
answers as before, and the same command again finishes, and encodes nothing twice.

KILLS=50 kills each command at 50 random points, instead of ten. The slow tests take one point in
four, with `--exhaustive` all, and copies of the folder from one run instead of kills: what a kill
leaves. With a further model, they take one in eight of the points at which that model's files are
made, each shard's in the same way, and one in 32 of the others, which are as without it: any file
is removed in one way. A point before which nothing on the disk has changed does not count.
"""

import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import kill_at
import numpy as np
import pytest
import torch
from folders import all_documents, passage_vectors
from tokenizers import Tokenizer, models, pre_tokenizers

from pyserini_repbert.collection import (
    Collection,
    encoding,
    spare_shards,
    staging,
    store,
)
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.generation import open_generation
from pyserini_repbert.encode.sharding import BundleEncoding
from pyserini_repbert.extension import representations
from pyserini_repbert.extensions.token_vectors.encoder import TokenVectors
from pyserini_repbert.extensions.trials import encode_trial, go_back, trying, use_trial
from pyserini_repbert.index.records import TermWeightsSettings
from pyserini_repbert.index.term_weights_writer import TermWeightsShardWriter
from pyserini_repbert.models.term_vectors import TermVector, TermVectors

TERMS, TOKENS = representations()
KILLS = int(os.environ.get('KILLS', '10'))
WORDS = 'cat dog fish bird sat ran mat hat red blue moon sea sky'.split()
DIMENSION = 8


class FakeEncoder:
    """Vectors by the digest of a text; a log says what was encoded together."""

    name = 'fake'
    weights_sha256 = '0' * 64
    config_sha256 = tokenizer_sha256 = None
    pooling = 'mean'
    limit = 12
    dimension = DIMENSION
    precision = 'float32'

    def __init__(self, log):
        self.log = log
        ids = {word: number for number, word in enumerate(['[UNK]', *WORDS])}
        backend = Tokenizer(models.WordPiece(ids, unk_token='[UNK]'))
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        self.tokenizer = SimpleNamespace(backend=backend)

    def embed(self, texts, token_budget=None, on_progress=int):
        with open(self.log, 'a', encoding='utf-8') as stream:
            stream.write(json.dumps(list(texts)) + '\n')
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) for text in texts]
        vectors = [np.random.default_rng(seed).standard_normal(DIMENSION) for seed in seeds]
        return np.array(vectors, np.float32)


class OtherEncoder(FakeEncoder):
    """Another model, whose vectors are shorter."""

    name = 'other'
    weights_sha256 = '3' * 64
    dimension = DIMENSION // 2

    def embed(self, texts, token_budget=None, on_progress=int):
        return super().embed(texts)[:, : self.dimension]


class FakeTerms:
    """Weights of terms by the words of a text; a log says what was weighed together."""

    name = 'fake-terms'
    weights_sha256 = '1' * 64
    config_sha256 = tokenizer_sha256 = None

    def __init__(self, log):
        self.log = log

    def encoding(self):
        settings = TermWeightsSettings(
            encoder=self.name,
            weights_sha256=self.weights_sha256,
            variant='sparse_encoder',
            vocabulary=len(WORDS),
            vocabulary_sha256='2' * 64,
            max_length=12,
            prune=0,
            weights='float32',
            precision='float32',
            shard_size=1,
            texts=False,
            layout='blocks',
        )
        return BundleEncoding(settings, TermWeightsShardWriter, self.encode, 1)

    def encode(self, passages):
        texts = [passage.text for passage in passages]
        with open(self.log, 'a', encoding='utf-8') as stream:
            stream.write(json.dumps(texts) + '\n')
        vectors = []
        for passage in texts:
            words = [WORDS.index(word) for word in passage.split()]
            vectors.append(TermVector.summed(words, [1.5] * len(words)))
        return TermVectors.of(vectors)


class FakeTokens:
    """A vector for each word of a text; a log says what was encoded together."""

    name = 'fake-tokens'
    weights_sha256 = '4' * 64
    dimension = 4
    limit = 12
    is_mean = False
    precision = 'float32'

    def __init__(self, log):
        self.log = log

    def encode_passages(self, passages, use):
        with open(self.log, 'a', encoding='utf-8') as stream:
            stream.write(json.dumps(list(passages)) + '\n')
        for position, passage in enumerate(passages):
            ids = np.array([WORDS.index(word) for word in passage.split()], np.int64)
            vectors = np.stack([np.cos(place * (ids + 1)) for place in range(self.dimension)], 1)
            lengths = np.array([len(ids)])
            found = torch.from_numpy(vectors.astype(np.float32))
            use([position], TokenVectors(found, lengths, np.arange(len(ids)), ids))


def text(number, n_words=20):
    return ' '.join(WORDS[(number * 5 + place * (number + 3)) % 13] for place in range(n_words))


BEFORE = [
    {'id': f'd{number}', 'text': text(number), 'title': 'cat', 'year': number}
    for number in range(8)
]
AFTER = [
    {**BEFORE[0], 'year': 99},
    {**BEFORE[1], 'text': text(50, 30)},
    {**BEFORE[2], 'id': 'renamed'},
    *BEFORE[4:],
    {'id': 'new', 'text': text(60, 40)},
]
COMMANDS = {
    'sync': lambda collection: collection.sync(AFTER, source='one'),
    'add': lambda collection: collection.add([('added', text(70)), ('other', text(80, 30))]),
    'delete': lambda collection: collection.delete(['d1', 'd5', 'd6']),
    'prefix': lambda collection: collection.sync(AFTER, source='two', prefix='two/'),
    'compact': lambda collection: collection.compact(),
    'rebuild': lambda collection: rebuild(collection),
    'try': lambda collection: encode_trial(other_one(collection)),
    'use': lambda collection: use_trial(other_one(collection)),
    'go back': go_back,
}


def other_one(collection):
    """The same collection, opened with another encoder, to be tried."""
    log = collection.source.opened.log
    return Collection.open(
        collection.folder, OtherEncoder(log), passage_tokens=6, **models_of(collection)
    )


def models_of(collection):
    """The settings of a collection's models beside the dense encoder, opened."""
    source = collection.source
    stored = collection.generation.settings
    models = {'sparse': 'none', 'dtype': stored.dtype}
    if TERMS in stored.further_models:
        models['sparse'] = source.further[TERMS].opened
    if TOKENS in stored.further_models:
        models['multi_vector'] = source.further[TOKENS].opened
    return models


def prepare(name, folder, log, further):
    """Make a collection as a command expects it."""
    if name in ('use', 'go back'):
        with open_one(folder, log, further) as collection:
            COMMANDS['try'](collection)
    if name == 'go back':
        with open_one(folder, log, further) as collection:
            COMMANDS['use'](collection)


def rebuild(collection):
    encoder = collection.source.opened
    other = Collection.open(
        collection.folder, encoder, passage_tokens=5, overlap=1, **models_of(collection)
    )
    other.sync(AFTER, source='one', rebuild=True)
    other.close()


def open_one(folder, log, further='none'):
    """A collection; `further`: 'terms' for a learned sparse model, 'tokens' for token vectors."""
    models = {'sparse': 'none'}
    if further == 'terms':
        models['sparse'] = FakeTerms(log.with_name('terms'))
    if further == 'tokens':
        models |= {'multi_vector': FakeTokens(log.with_name('tokens')), 'dtype': 'int8'}
    return Collection.open(folder, FakeEncoder(log), passage_tokens=6, overlap=2, **models)


def answers(folder):
    """All that a reader gets: the vectors of all passages by docid and span, and all documents."""
    generation = open_generation(folder)
    docids = [document.docid for document in all_documents(generation)]
    vectors = {}
    for docid, docno in zip(docids, generation.docnos(docids), strict=True):
        for span in generation.passages([docno])[docno]:
            vector = passage_vectors(generation, [span])[0]
            values = vector.tolist()
            if TERMS in generation.settings.further_models:
                values.append(
                    generation.shards[span.shard].shard.rows_of(TERMS).value(span.row).as_dict()
                )
            if TOKENS in generation.settings.further_models:
                tokens = generation.shards[span.shard].shard.rows_of(TOKENS).value(span.row)
                values += [np.asarray(tokens.vectors).tolist(), tokens.ids.tolist()]
            vectors[docid, span.number, span.start, span.end] = values
    live = sum(shard.n_live for shard in generation.shards)
    assert live == len(vectors) == generation.manifest.passages
    found = (vectors, sorted(map(repr, generation.documents(docids))))
    generation.close()
    return found


def published_files(folder):
    """The bytes of all files that the published generation names."""
    generation = open_generation(folder)
    paths = [folder / f'generations/{generation.number:06d}.json']
    for live in generation.shards:
        paths += sorted(live.shard.folder.iterdir())
    generation.close()
    return {path.name + path.parent.name: path.read_bytes() for path in paths}


def side_entries(folder):
    """The names in a collection's folder, and of what it keeps beside its generation."""
    entries = [path.name for path in folder.iterdir() if not path.name.endswith(('-wal', '-shm'))]
    for side in ('trial', 'before'):
        entries += [path.relative_to(folder).as_posix() for path in (folder / side).rglob('*')]
    return sorted(entries)


def encoded(log):
    return [json.loads(line) for line in log.read_text(encoding='utf-8').splitlines()]


@pytest.fixture
def small_batches(monkeypatch):
    """Shards of two or three passages, and a point at which to kill at every SQL statement."""
    monkeypatch.setenv('TOKENIZERS_PARALLELISM', 'false')
    monkeypatch.setattr(staging, '_PASSAGES_AT_ONCE', 2)
    monkeypatch.setattr(trying, '_SHARD_ROWS', 2)
    connect = sqlite3.connect

    def connect_with_points(path, **options):
        connection = connect(path, **options)

        def meet(statement):
            watch = kill_at._watch
            if watch is not None and not watch.busy:
                watch.point('statement', ' '.join(statement.split())[:40])

        connection.set_trace_callback(meet)
        return connection

    monkeypatch.setattr(store.sqlite3, 'connect', connect_with_points)


def random_points(points):
    """KILLS of a run's points, or all where there are fewer."""
    if len(points) <= KILLS:
        return points
    return sorted(random.Random(KILLS).sample(points, KILLS))


def regular_points(points, tried, every):
    """One in `every` of a run's points, but for those that the quick test takes."""
    return [point for point in points[::every] if point not in tried]


# In the names of files of a shard that a further model adds.
FILES_OF = {'terms': ('/offsets', '/terms', '/weights'), 'tokens': ('token_',)}


def points_of_further(points, whole_points, further, one_in):
    """One in eight of the points at which a further model's files are made, and one in 32 of
    others.
    """

    def is_of_further(point):
        what = whole_points[point]
        return not what.startswith('os.remove') and any(part in what for part in FILES_OF[further])

    of_further = [point for point in points if is_of_further(point)]
    others = [point for point in points if not is_of_further(point)]
    return sorted([*of_further[:: one_in(8)], *others[:: one_in(32)]])


@pytest.mark.parametrize(
    ('further', 'are_random'),
    [
        ('none', True),
        pytest.param('none', False, marks=pytest.mark.slow),
        pytest.param('terms', False, marks=pytest.mark.slow),
        pytest.param('tokens', False, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize('name', COMMANDS)
def test_kills_of_a_writer(name, further, are_random, tmp_path, small_batches, one_in):
    whole_points = []

    def choose(points):
        if further != 'none':
            return points_of_further(points, whole_points, further, one_in)
        tried = random_points(points)
        return tried if are_random else regular_points(points, tried, one_in(4))

    kill_a_writer(name, further, tmp_path, choose, whole_points, are_copied=not are_random)


@pytest.mark.parametrize('name', ['sync', 'compact'])
def test_kills_of_a_writer_of_token_vectors(name, tmp_path, small_batches):
    """The quick points are those about the files of token vectors, and some between them."""

    def choose(points):
        of_tokens = [point for point in points if 'token_' in whole_points[point]]
        return sorted({*of_tokens[:: max(1, len(of_tokens) // KILLS)], *random_points(points)[::4]})

    whole_points = []
    kill_a_writer(name, 'tokens', tmp_path, choose, whole_points)
    assert any('token_scales' in point for point in whole_points)


def kill_a_writer(name, further, tmp_path, choose, whole_points, are_copied=False):
    """Kill a command at some points of its run, and run it again.

    `choose` gets the numbers of points; `whole_points` is filled with what all points are;
    `are_copied`: see `kill_at.after_copies`.
    """
    log = tmp_path / 'log'
    logs = [log] if further == 'none' else [log, tmp_path / further]
    base = tmp_path / 'base'
    with open_one(base, log, further) as collection:
        collection.sync(BEFORE, source='one')
        collection.add([('added', text(90))])
        collection.delete('d7')
    open_one(base, log, further).sync(BEFORE, source='one')
    prepare(name, base, log, further)
    before = (answers(base), published_files(base))
    work = tmp_path / 'work'
    folder = work / 'mine'

    def start():
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(base, folder)
        clear_logs()

    def clear_logs():
        for path in logs:
            path.write_text('', encoding='utf-8')

    def run():
        COMMANDS[name](open_one(folder, log, further))

    start()
    whole = kill_at.run(run, work)
    assert (whole.status, len(whole.points) > 60) == (0, True), whole.output
    after = answers(folder)
    entries = side_entries(folder)
    generation = open_generation(base)
    number = generation.number
    generation.close()
    whole_points += whole.points
    points = choose(whole.telling[3:])
    killed = kill_at.after_kills(run, work, points, start)
    if are_copied:
        killed = kill_at.after_copies(run, work, points, start, tmp_path / 'copies', beside=logs)
    for point in killed:
        where = f'killed at {whole.points[point]}'
        first = [encoded(path) for path in logs]
        found = answers(folder)
        assert found in (before[0], after), where
        files = published_files(folder)
        is_published = f'{number + 1:06d}.jsongenerations' in files
        assert is_published or files == before[1], where
        clear_logs()
        # A switch that was over is no switch again.
        is_over = name in ('use', 'go back') and side_entries(folder) == entries
        if is_over:
            assert found == after, where
        else:
            run()
        assert answers(folder) == after, where
        for path, batches in zip(logs, first, strict=True):
            again = [passage for batch in encoded(path) for passage in batch]
            staged = [passage for batch in batches[:-1] for passage in batch]
            assert not set(again) & set(staged), where
        assert side_entries(folder) == entries, where


def test_kills_while_a_source_is_deleted(tmp_path, small_batches):
    """A source is there with all its documents, or neither is."""
    log = tmp_path / 'log'
    base = tmp_path / 'base'
    with open_one(base, log) as collection:
        collection.sync(BEFORE, source='one', prefix='1/', url_prefix='https://example.org/')
        collection.add([('added', text(90))])
    work = tmp_path / 'work'
    folder = work / 'mine'

    def start():
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(base, folder)

    def delete():
        open_one(folder, log).delete_source('one')

    def found():
        check_collection(folder)
        with closing(open_generation(folder)) as generation:
            names = [row.name for row in generation.source_rows()]
        return names, answers(folder)

    start()
    before = found()
    whole = kill_at.run(delete, work)
    assert (whole.status, len(whole.points) > 60) == (0, True), whole.output
    after = found()
    assert (before[0], after[0]) == (['one', 'add'], ['add'])
    for point in kill_at.after_kills(delete, work, random_points(whole.telling[3:]), start):
        where = f'killed at {whole.points[point]}'
        left = found()
        assert left in (before, after), where
        if left == before:
            delete()
        # The number of the source is free, and nothing of it comes back with another one.
        with open_one(folder, log) as collection:
            collection.sync(AFTER, source='next')
            collection.delete_source('next')
        assert found() == after, where


@pytest.mark.jvm
def test_kills_while_lucene_writes(tmp_path, share_of):
    script = Path(__file__).with_name('collection_with_lucene.py')
    found = kill_at.fresh(script, tmp_path)
    before = {name: found['base'][name] for name in ('dense', 'lucene')}
    whole = found['whole']
    after = {name: whole[name] for name in ('dense', 'lucene')}
    assert whole['before'] == before
    assert whole['steps'] > 15
    # The quick test takes the first, in the middle: Java starts twice for each kill.
    middle = whole['steps'] // 2
    steps = [*range(middle, whole['steps']), *range(2, middle)]
    chosen = share_of(steps, quick=len(steps), slow=5)
    syncs = kill_at.fresh(script, tmp_path, *chosen)
    assert len(syncs) == len(chosen) > 0
    for again in syncs:
        assert again['before'] in (before, after)
        assert {name: again[name] for name in ('dense', 'lucene')} == after
        assert again['check'].replace('mine', 'whole') == whole['check']


@pytest.fixture
def slow_encoder(monkeypatch):
    """slow(folder, log, …) opens a collection with an encoder of four seconds a text, two at once;
    one that is called with `ends` ends its process by a signal at its n-th call.
    """
    monkeypatch.setenv('TOKENIZERS_PARALLELISM', 'false')
    now = [100.0]
    monkeypatch.setattr(spare_shards, 'clock', lambda: now[0])
    monkeypatch.setattr(encoding, '_ON_CPU', 2)

    class Slow(FakeEncoder):
        ends = (0, 0)
        n_calls = 0

        def embed(self, texts, token_budget=None, on_progress=int):
            self.n_calls += 1
            if self.n_calls == self.ends[0]:
                os.kill(os.getpid(), self.ends[1])
            wait(2.0 * len(texts))
            return super().embed(texts)

    def slow(folder, log, ends=(0, 0), sparse='none'):
        encoder = Slow(log)
        encoder.ends = ends
        return Collection.open(folder, encoder, passage_tokens=6, overlap=2, sparse=sparse)

    def wait(seconds):
        now[0] += seconds

    slow.wait = wait
    return slow


@pytest.mark.parametrize('ends', [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_first_sync_keeps_what_was_encoded(ends, tmp_path, slow_encoder):
    """At the latest after ten seconds, four passages in each of which two are encoded."""
    log = tmp_path / 'log'
    folder = tmp_path / 'mine'

    def interrupted():
        slow_encoder(folder, log, ends=(8, ends)).sync(BEFORE, source='one')

    ended = kill_at.run(interrupted, tmp_path)
    assert ended.status != 0
    first = [passage for batch in encoded(log) for passage in batch]
    assert first
    # It was written meanwhile, in shards of its own.
    assert len(list((folder / 'shards').iterdir())) > 1
    log.write_text('', encoding='utf-8')
    with slow_encoder(folder, log) as collection:
        changes = collection.sync(BEFORE, source='one')
    again = {passage for batch in encoded(log) for passage in batch}
    # Two calls of two passages each, of four seconds, were not written yet.
    assert len(again & set(first)) <= 4
    assert (changes.added, changes.encoded) == (len(BEFORE), len(again))
    with slow_encoder(tmp_path / 'anew', tmp_path / 'other') as collection:
        collection.sync(BEFORE, source='one')
    assert answers(folder) == answers(tmp_path / 'anew')
    # What was kept meanwhile is in the one shard of the collection.
    assert len(list((folder / 'shards').iterdir())) == 1


def test_an_interrupted_first_sync_keeps_weights_of_terms(tmp_path, slow_encoder):
    log = tmp_path / 'log'
    log_of_terms = tmp_path / 'terms'
    folder = tmp_path / 'mine'

    class Ending(FakeTerms):
        n_calls = 0

        def encode(self, passages):
            self.n_calls += 1
            if self.n_calls == 8:
                os.kill(os.getpid(), signal.SIGKILL)
            slow_encoder.wait(2.0 * len(passages))
            return super().encode(passages)

    def interrupted():
        slow_encoder(folder, log, sparse=Ending(log_of_terms)).sync(BEFORE, source='one')

    assert kill_at.run(interrupted, tmp_path).killed
    first = [passage for batch in encoded(log_of_terms) for passage in batch]
    assert first
    for path in (log, log_of_terms):
        path.write_text('', encoding='utf-8')
    with slow_encoder(folder, log, sparse=FakeTerms(log_of_terms)) as collection:
        collection.sync(BEFORE, source='one')
    again = {passage for batch in encoded(log_of_terms) for passage in batch}
    assert len(again & set(first)) <= 4
    # All vectors came before the weights of terms.
    assert len(encoded(log)) <= 2


def test_a_fast_encoder_writes_no_shard_that_is_not_needed(tmp_path, monkeypatch):
    written = []
    write = spare_shards.write_shard
    monkeypatch.setattr(
        spare_shards, 'write_shard', lambda *arguments: written.append(1) or write(*arguments)
    )
    with open_one(tmp_path / 'mine', tmp_path / 'log') as collection:
        collection.sync(BEFORE, source='one')
    assert not written
