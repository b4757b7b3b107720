"""What a sync says on a terminal while it encodes."""

from types import SimpleNamespace

import pytest

from pyserini_repbert.collection.commands import encoding_rate, precision_trial
from pyserini_repbert.collection.commands.encoding_rate import EncodingRate
from pyserini_repbert.collection.commands.precision_trial import PrecisionTrial, try_bfloat16
from pyserini_repbert.systems.encoders import document_encoder

PASSAGES = ['cat'] * 32


class Bar(SimpleNamespace):
    def set_postfix_str(self, text):
        self.shown.append(text)

    def write(self, text, file):
        self.written.append(text)


def bar_of(monkeypatch, *, disable=False, offers=True, speed=2.3, n=10, total=100):
    """A bar after three batches of 32 passages, ten and thirty seconds after the first one."""
    clock = iter([0.0, 10.0, 30.0])
    monkeypatch.setattr(encoding_rate.time, 'perf_counter', lambda: next(clock))
    trial = None if speed is None else PrecisionTrial(10, speed, 0.00291)
    monkeypatch.setattr(precision_trial, 'try_bfloat16', lambda *_, **__: trial)
    bar = Bar(disable=disable, shown=[], written=[], n=n, total=total)
    rate = EncodingRate(bar, SimpleNamespace(opened=None) if offers else None)
    for _ in range(3):
        rate.update(PASSAGES)
    return bar


def test_passages_a_second_stand_beside_the_bar(monkeypatch):
    bar = bar_of(monkeypatch)
    assert bar.shown == ['64 passages, 3/s', '96 passages, 2/s']
    (said,) = bar.written
    assert said.startswith(
        '--precision auto encodes 2.3x faster here, and changes scores by at most 0.0029 (tried '
        'with 10 of the passages).'
    )


@pytest.mark.parametrize(
    'settings',
    [
        {'speed': None},  # a CPU without bfloat16
        {'speed': 1.2},
        {'offers': False},
        {'n': 90},  # three seconds before the end
        {'n': 0},  # nobody knows how long it takes
    ],
)
def test_nothing_is_offered_that_does_not_help(monkeypatch, settings):
    assert bar_of(monkeypatch, **settings).written == []


def test_a_trial_that_fails_ends_no_sync(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError('could not create a primitive')

    monkeypatch.setattr(precision_trial, 'gains_by_bfloat16', fail)
    clock = iter([0.0, 10.0, 30.0])
    monkeypatch.setattr(encoding_rate.time, 'perf_counter', lambda: next(clock))
    bar = Bar(disable=False, shown=[], written=[], n=10, total=100)
    rate = EncodingRate(bar, SimpleNamespace(opened=None))
    for _ in range(3):
        rate.update(PASSAGES)
    assert bar.written == []
    assert len(bar.shown) == 2


def test_a_corpus_of_unknown_size_may_be_large(monkeypatch):
    assert len(bar_of(monkeypatch, total=None).written) == 1


def test_a_pipe_shows_nothing(monkeypatch):
    bar = bar_of(monkeypatch, disable=True)
    assert (bar.shown, bar.written) == ([], [])


def test_a_trial_of_bfloat16(monkeypatch, checkpoint):
    encoder = document_encoder(checkpoint)
    passages = ['cat', 'dog', 'cat dog', 'dog cat dog', 'cat cat']
    monkeypatch.setattr(precision_trial, 'gains_by_bfloat16', lambda device: False)
    assert try_bfloat16(encoder, passages, passages_a_second=10, seconds=1) is None
    monkeypatch.setattr(precision_trial, 'gains_by_bfloat16', lambda device: True)
    trial = try_bfloat16(encoder, passages, passages_a_second=10, seconds=1)
    assert trial.passages == 5
    assert trial.speed > 0
    vectors = encoder.embed(passages)
    rounded = document_encoder(encoder.name, precision='bfloat16').embed(passages)
    difference = abs(vectors @ vectors.T - rounded @ rounded.T).max()
    assert trial.difference == pytest.approx(difference, rel=1e-3)
    assert 0 < trial.difference < 0.1 * abs(vectors @ vectors.T).max()
    # As many as the seconds allow.
    assert try_bfloat16(encoder, passages, passages_a_second=1, seconds=1).passages == 4


def test_a_sync_tells_the_passages_that_it_encodes(open_collection):
    encoded = []
    with open_collection() as collection:
        collection.sync([('a', 'cat'), ('b', 'dog')], on_encoded=encoded.extend)
        collection.sync([('a', 'cat'), ('b', 'dog')], on_encoded=encoded.extend)
    assert sorted(encoded) == ['cat', 'dog']
