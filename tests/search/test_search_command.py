import gzip
import shlex
import subprocess
import sys

import pytest

from pyserini_repbert.commands import command
from pyserini_repbert.commands.encode import main as encode
from pyserini_repbert.commands.index import main as index_command
from pyserini_repbert.commands.search import main, make_parser
from pyserini_repbert.data.runs import read_run, write_run
from pyserini_repbert.fusion import fuse
from pyserini_repbert.models import question_threads
from pyserini_repbert.ranking import Ranking, Searcher
from pyserini_repbert.search import DenseSearcher


@pytest.fixture
def setting(tiny_checkpoint, corpus_file, tmp_path):
    """(index, checkpoint, topics) made by the commands."""
    checkpoint = tiny_checkpoint()
    index = tmp_path / 'index'
    topics = tmp_path / 'topics.tsv'
    arguments = [
        '--corpus',
        str(corpus_file(30)),
        '--encoder',
        str(checkpoint),
        '--output',
        str(index),
        '--store-text',
    ]
    encode(arguments)
    topics.write_text('q2\tthe cat\nq1\ta dog ran\nq0\t\n')
    return index, checkpoint, topics


def _arguments(setting, output, *more):
    index, checkpoint, topics = setting
    given = [
        '--index',
        str(index),
        '--encoder',
        str(checkpoint),
        '--topics',
        str(topics),
        '--output',
        str(output),
    ]
    return [*given, *more]


def test_topics_become_a_run(setting, tmp_path, capsys):
    output = tmp_path / 'made' / 'mine.run.txt'
    main(_arguments(setting, output, '--hits', '12', '--batch-size', '2'))
    assert '3 topics' in capsys.readouterr().out
    run = read_run(output)
    assert list(run) == ['q2', 'q1', 'q0']
    expected = DenseSearcher(setting[0]).search('a dog ran', 12)
    assert run['q1'].docids == tuple(hit.docid for hit in expected)
    assert output.read_text().splitlines()[0].split()[-1] == 'mine'


def test_msmarco_format_and_more_hits_than_passages(setting, tmp_path):
    output = tmp_path / 'run.tsv.gz'
    main(_arguments(setting, output, '--output-format', 'msmarco'))
    with gzip.open(output, 'rt') as stream:
        lines = [line.rstrip('\n').split('\t') for line in stream]
    assert len(lines) == 90 and lines[29][2] == '30'


def test_a_question_is_answered_with_passages(setting, capsys):
    main(['--index', str(setting[0]), '--query', 'the cat', '--query', 'moon', '--hits', '2'])
    shown = capsys.readouterr().out
    hits = DenseSearcher(setting[0]).search('the cat', 2)
    assert shown.startswith('? the cat\n   1. ' + hits[0].docid)
    assert '? moon' in shown and 'the cat' in shown


def test_export_gives_the_same_run(setting, tmp_path):
    index_command(['export', '--index', str(setting[0]), '--to-faiss', str(tmp_path / 'faiss')])
    index_command(['check', '--index', str(setting[0])])
    main(_arguments(setting, tmp_path / 'ours.txt'))
    main(_arguments((tmp_path / 'faiss', *setting[1:]), tmp_path / 'theirs.txt'))
    ours = read_run(tmp_path / 'ours.txt')
    theirs = read_run(tmp_path / 'theirs.txt')
    assert {qid: ranked.docids for qid, ranked in ours.items()} == {
        qid: list.docids for qid, list in theirs.items()
    }


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'--index': 'demoo'}, "did you mean 'demo'"),
        ({'--topics': 'nowhere.tsv'}, 'nowhere.tsv'),
        ({'--hits': '0'}, 'from 1 to'),
        ({'--device': 'cuda:77'}, 'cuda:77'),
        ({'--sparse': 'bm25'}, 'bm25@FOLDER'),
        ({'--fusion': 'rrf'}, 'two rankings'),
        (
            {'--alpha': '0.3'},
            "alpha is for fusion by 'interpolation', and this fusion is by 'interleave' (--alpha)",
        ),
        ({'--sparse': 'bm25@x', '--fusion': 'rrf', '--rrf-k': '-1'}, 'rrf_k is -1.0'),
        (
            {'--topics': None, '--output': None, '--query': 'a \udcff b'},
            "'a \\udcff b' is not valid UTF-8",
        ),
    ],
)
def test_wrong_input_is_one_line_and_leaves_nothing(setting, tmp_path, capsys, change, message):
    given = _arguments(setting, tmp_path / 'out' / 'run.txt')
    flags = dict(zip(given[::2], given[1::2], strict=True)) | change
    status = command.run(
        main, [part for flag, value in flags.items() if value is not None for part in (flag, value)]
    )
    captured = capsys.readouterr()
    assert status == 2 and captured.out == ''
    assert captured.err.startswith('error: ') and captured.err.count('\n') == 1
    assert message in captured.err
    assert not (tmp_path / 'out').exists()


class Other(Searcher):
    """A sparse searcher: d0, d1, … d29 with the scores 30, 29, …, for every query; notes how
    many were asked for.
    """

    index = ''

    def __init__(self):
        self.asked = set()

    def _rank(self, topics, run, k, trace):
        self.asked.add(k)
        ranking = Ranking([f'd{rank}' for rank in range(30)], [30.0 - rank for rank in range(30)])
        return {topic.qid: ranking[:k] for topic in topics}


@pytest.fixture
def other(monkeypatch):
    searcher = Other()
    monkeypatch.setattr('pyserini_repbert.names.sparse.open_sparse', lambda *_: searcher)
    return searcher


@pytest.mark.parametrize(
    ('flags', 'method', 'settings', 'asked'),
    [
        ('', 'interleave', {}, 6),
        ('--fusion interleave --depth 2', 'interleave', {}, 2),
        ('--fusion rrf', 'rrf', {}, 1000),
        ('--fusion rrf --rrf-k 1 --depth 7', 'rrf', {'rrf_k': 1}, 7),
        ('--fusion interpolation --alpha 0.2 --depth 9', 'interpolation', {'alpha': 0.2}, 9),
        (
            '--fusion interpolation --alpha 0.2 --sparse-first',
            'interpolation',
            {'alpha': 0.2},
            1000,
        ),
    ],
)
def test_search_fuses_as_the_fusion_command_does(
    setting, other, tmp_path, flags, method, settings, asked
):
    output = tmp_path / 'run.txt'
    expected = tmp_path / 'expected.txt'
    given = ['--hits', '6', *flags.split(), '--tag', 't']
    main(_arguments(setting, output, '--sparse', 'any@where', *given))
    assert other.asked == {asked}

    dense = DenseSearcher(*setting[:2]).batch_search(
        ['the cat', 'a dog ran', ''], ['q2', 'q1', 'q0'], asked
    )
    runs = [
        {
            qid: Ranking([hit.docid for hit in own], [hit.score for hit in own])
            for qid, own in found.items()
        }
        for found in (dense, other.batch_search(list(dense), list(dense), asked))
    ]
    fused = fuse(runs[::-1] if '--sparse-first' in given else runs, method, 6, **settings)
    write_run(expected, fused, tag='t')
    assert output.read_text() == expected.read_text()


def test_provenance_knows_ranks_below_the_hits(setting, other, tmp_path):
    """d9 is 10th of the other searcher, whatever --hits says."""
    ranks = tmp_path / 'ranks.tsv'
    given = ['--sparse', 'any@where', '--hits', '3', '--provenance', str(ranks)]
    main(_arguments(setting, tmp_path / 'run.txt', *given))
    rows = [line.split('\t') for line in ranks.read_text().splitlines()[1:]]
    assert rows and all(row[-1] == str(int(row[1][1:]) + 1) for row in rows)


def test_the_length_of_queries_holds_for_the_encoder_that_the_index_names(setting, tmp_path):
    index, checkpoint, topics = setting
    topics.write_text('q\tcat dog fish bird sat ate ran mat\n')
    runs = []
    for encoder in ([], ['--encoder', str(checkpoint)]):
        output = tmp_path / f'{len(runs)}.txt'
        flags = [
            '--index',
            str(index),
            '--topics',
            str(topics),
            '--max-length',
            '5',
            '--tag',
            't',
            *encoder,
        ]
        main([*flags, '--output', str(output), '--quiet'])
        runs.append(output.read_text())
    assert runs[0] == runs[1]


def test_no_traceback_from_the_real_command(setting, tmp_path):
    (setting[0] / 'shard-00000' / 'docids.txt').write_text('d0\n')
    done = subprocess.run(
        [
            sys.executable,
            '-m',
            'pyserini_repbert.search',
            *_arguments(setting, tmp_path / 'run.txt'),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and done.stdout == ''
    assert (
        done.stderr.startswith('error: ')
        and 'damaged' in done.stderr
        and done.stderr.count('\n') == 1
    )


def test_an_encoder_that_has_moved_is_the_one_that_the_index_names(setting, capsys):
    index, checkpoint, _ = setting
    moved = checkpoint.rename(checkpoint.with_name('moved'))
    asked = ['--index', str(index), '--query', 'cat']
    assert command.run(main, asked) == 2
    message = capsys.readouterr().err
    assert f'index {index} names an unavailable encoder: ' in message
    assert message.endswith('(--encoder)\n')
    assert command.run(main, [*asked, '--encoder', str(moved)]) == 0


@pytest.mark.slow
@pytest.mark.jvm
def test_the_examples_of_help_run(demo_cache, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(demo_cache))
    monkeypatch.chdir(tmp_path)
    examples = make_parser().format_help().partition("'demo':\n")[2].replace('\\\n', '')
    commands = [shlex.split(line) for line in examples.strip().splitlines()]
    assert len(commands) == 3
    for words in commands:
        assert words[:3] == ['python', '-m', 'pyserini_repbert.search']
        main([*words[3:], '--quiet'])
    assert len(read_run('run.txt')) == 500
    assert capsys.readouterr().out


def test_a_question_takes_the_threads_that_were_measured(setting, monkeypatch, capsys):
    times = {'1': 4.0, '2': 3.0}
    monkeypatch.setattr(question_threads, 'best_times', lambda *_: times)
    taken = []
    monkeypatch.setattr(command, 'use_threads', taken.append)
    words = ['--index', str(setting[0]), '--query', 'the cat', '--hits', '2', '--threads', 'auto']
    main(words)
    times['2'] = 5.0
    main(words)
    assert taken == [None, 2, None, 1]
    assert capsys.readouterr().out.count('? the cat') == 2


def test_topics_take_a_number_of_threads(setting, tmp_path, capsys):
    words = _arguments(setting, tmp_path / 'run.txt', '--threads', 'auto')
    assert command.run(main, words) == 2
    assert 'topics are ranked together, so give a number' in capsys.readouterr().err
    assert command.run(main, [*words[:-1], 'some']) == 2
    assert not (tmp_path / 'run.txt').exists()
