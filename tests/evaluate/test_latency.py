"""`evaluate latency`: which topics warm up, which are timed, and what is said of each stage."""

import csv

import pytest

from pyserini_repbert.commands import command
from pyserini_repbert.commands.encode import main as encode
from pyserini_repbert.commands.evaluate import main
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.studies.latency import StageLatency, measure_latency
from pyserini_repbert.ranking import Query, Ranker, Ranking

TOPICS = [Query(str(number), f'question {number}') for number in range(5)]


class Recorder(Ranker):
    """Ranks nothing, and keeps which topics were asked together."""

    name = 'recorder'

    def __init__(self):
        self.asked = []

    def _rank(self, topics, run, k, trace):
        self.asked.append([topic.qid for topic in topics])
        return {topic.qid: Ranking([], []) for topic in topics}

    def identity(self):
        return {}


def test_topics_are_asked_one_at_a_time_and_the_first_are_not_timed():
    recorder = Recorder()
    steps = []
    latencies = measure_latency(
        recorder, TOPICS, n_warmup=2, n_timed=2, k=10, on_progress=steps.append
    )
    assert recorder.asked == [['0'], ['1'], ['2'], ['3']]
    assert steps == [1, 1, 1, 1]
    assert [stage.stage for stage in latencies] == ['total']
    assert len(latencies[0].milliseconds) == 2


def test_too_few_topics_are_refused():
    with pytest.raises(InputError, match='5 topics were given, and 3 that warm up with 4'):
        measure_latency(Recorder(), TOPICS, n_warmup=3, n_timed=4, k=10)


def test_means_and_percentiles_are_of_the_timed_queries():
    stage = StageLatency('bm25', [1.0, 2.0, 3.0, 10.0])
    assert stage.mean == 4.0
    assert stage.percentile(50) == 2.5
    assert stage.percentile(100) == 10.0


@pytest.fixture
def timed(tiny_checkpoint, tiny_epic, corpus_file, tmp_path):
    """run(*flags) -> the exit status of the command on a tiny dense index, reranked by EPIC."""
    corpus = corpus_file(20)
    index = tmp_path / 'dense'
    checkpoint = str(tiny_checkpoint())
    flags = ['--corpus', str(corpus), '--encoder', checkpoint, '--output', str(index)]
    assert command.run(encode, [*flags, '--store-text', '--quiet']) == 0
    (tmp_path / 'topics.tsv').write_text('1\tblue fish\n2\tthe old moon\n3\tcold mat\n')
    given = ['latency', '--index', str(index), '--encoder', checkpoint, '--hits', '10']
    given += ['--topics', str(tmp_path / 'topics.tsv'), '--rerank', f'{tiny_epic()}@5']

    def run(*more):
        return command.run(main, [*given, '--quiet', *more])

    return run


def test_each_stage_has_a_row_and_the_total_is_the_last(timed, tmp_path, capsys):
    table = tmp_path / 'times.csv'
    assert timed('--warm-up', '1', '--queries', '2', '--csv', str(table)) == 0
    printed = capsys.readouterr().out
    assert '2 queries after 1 to warm up, one at a time, 10 hits.' in printed
    assert 'On this machine: ' in printed
    rows = list(csv.DictReader(table.read_text(encoding='utf-8').splitlines()))
    assert [row['stage'].rpartition('/')[2] for row in rows] == ['tiny', 'epic@5', 'total']
    means = [float(row['mean ms']) for row in rows]
    assert means[-1] >= max(means[:-1])


def test_the_protocol_of_the_paper_needs_2000_topics(timed, capsys):
    assert timed() == 2
    error = capsys.readouterr().err
    assert '3 topics were given' in error
    assert '--warm-up' in error and '--queries' in error


def test_without_an_index_there_is_nothing_to_time(tmp_path, capsys):
    (tmp_path / 'topics.tsv').write_text('1\tblue fish\n')
    assert command.run(main, ['latency', '--topics', str(tmp_path / 'topics.tsv')]) == 2
    assert 'nothing to search' in capsys.readouterr().err
