"""What a sync says on a terminal while it encodes."""

from types import SimpleNamespace

from pyserini_repbert.collection.commands import encoding_rate
from pyserini_repbert.collection.commands.encoding_rate import EncodingRate
from pyserini_repbert.models import precision


class Bar(SimpleNamespace):
    def set_postfix_str(self, text):
        self.shown.append(text)

    def write(self, text, file):
        self.written.append(text)


def rate_of(monkeypatch, *, disable=False, offers=True, gain='2x to 3x'):
    """A bar after three batches of 32 passages, ten and thirty seconds after the first one."""
    clock = iter([0.0, 10.0, 30.0])
    monkeypatch.setattr(encoding_rate.time, 'perf_counter', lambda: next(clock))
    monkeypatch.setattr(precision, 'bfloat16_gain', lambda device: gain)
    bar = Bar(disable=disable, shown=[], written=[])
    rate = EncodingRate(bar, offers_precision=offers)
    for _ in range(3):
        rate.update(32)
    return bar


def test_passages_a_second_stand_beside_the_bar(monkeypatch):
    bar = rate_of(monkeypatch)
    assert bar.shown == ['64 passages, 3/s', '96 passages, 2/s']
    (said,) = bar.written
    assert said.startswith('--precision auto encodes 2x to 3x faster on this machine')


def test_nothing_is_offered_that_does_not_help(monkeypatch):
    assert rate_of(monkeypatch, gain='').written == []
    assert rate_of(monkeypatch, offers=False).written == []


def test_a_pipe_shows_nothing(monkeypatch):
    bar = rate_of(monkeypatch, disable=True)
    assert (bar.shown, bar.written) == ([], [])


def test_a_sync_counts_the_passages_that_it_encodes(open_collection):
    counted = []
    with open_collection() as collection:
        collection.sync([('a', 'cat'), ('b', 'dog')], on_encoded=counted.append)
        collection.sync([('a', 'cat'), ('b', 'dog')], on_encoded=counted.append)
    assert sum(counted) == 2
