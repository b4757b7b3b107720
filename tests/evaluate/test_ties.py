"""Intervals over all tie-breaks, computed by hand."""

import pytest

from pyserini_repbert.commands.evaluate import main
from pyserini_repbert.commands.fusion import main as fusion
from pyserini_repbert.data.runs import reciprocal_scores, strictly_decreasing, write_run
from pyserini_repbert.evaluate.measures import parse_measures
from pyserini_repbert.evaluate.ties import tie_intervals, tied_share, ties_as_scored
from pyserini_repbert.ranking import Ranking

RUN = {'1': Ranking(['a', 'b', 'c', 'd'], [3.0, 2.0, 2.0, 2.0])}


def test_the_interval_of_a_tie_of_three():
    found = tie_intervals(RUN, {'1': {'c': 1}}, parse_measures(['RR', 'P@2']))
    assert found['RR'] == pytest.approx((1 / 4, 1 / 3, 1 / 2))
    assert found['P@2'] == pytest.approx((0, 0, 0.5))


def test_without_ties_nothing_moves():
    run = {'1': Ranking(['a', 'b'], [2.0, 1.0])}
    assert tie_intervals(run, {'1': {'b': 1}, '2': {'b': 1}}, parse_measures(['RR']))['RR'] == (
        0.25,
        0.25,
        0.25,
    )
    assert (tied_share(run), tied_share(RUN), tied_share({})) == (0, 0.75, 0)


def tied_hits(capsys, run, *more):
    """The share of tied hits that the command prints for a run."""
    qrels = run.with_name('qrels.txt')
    qrels.write_text('q 0 b 1\n', encoding='utf-8')
    main(['ties', str(run), '--qrels', str(qrels), '--measures', 'RR', *more])
    return capsys.readouterr().out.splitlines()[-1].split('|')[2].strip()


def test_ties_of_a_run_written_here_are_put_back(tmp_path, capsys):
    run = tmp_path / 'run.txt'
    write_run(run, {'q': Ranking(['a', 'b', 'c'], [1.0, 1.0, 0.5])})
    assert tied_hits(capsys, run) == '0.0%'
    assert tied_hits(capsys, run, '--written-here') == '66.7%'


def test_the_record_of_a_run_says_that_it_was_written_here(tmp_path, capsys):
    for name, best, other in (('first.txt', 'a', 'b'), ('second.txt', 'b', 'a')):
        (tmp_path / name).write_text(f'q Q0 {best} 1 2 t\nq Q0 {other} 2 1 t\n', encoding='utf-8')
    run = tmp_path / 'run.txt'
    sources = [str(tmp_path / 'first.txt'), str(tmp_path / 'second.txt')]
    fusion(['--runs', *sources, '--method', 'rrf', '--output', str(run)])
    assert tied_hits(capsys, run) == '100.0%'
    run.write_bytes(
        run.read_bytes() + b'q Q0 c 3 0.001 t\n'
    )  # the record is that of another run now
    assert tied_hits(capsys, run) == '0.0%'


def test_an_order_without_scores_has_no_ties():
    """1/1200 and 1/1201 are less than a written step apart."""
    docids = [str(number) for number in range(1500)]
    order = Ranking(docids, strictly_decreasing(reciprocal_scores(len(docids))))
    assert tied_share(ties_as_scored({'1': order})) == 0


def test_the_command(tmp_path, capsys):
    (tmp_path / 'run.txt').write_text('1 Q0 a 1 2 r\n1 Q0 b 2 2 r\n', encoding='utf-8')
    (tmp_path / 'qrels.txt').write_text('1 0 b 1\n', encoding='utf-8')
    main(
        [
            'ties',
            '--qrels',
            str(tmp_path / 'qrels.txt'),
            str(tmp_path / 'run.txt'),
            '--measures',
            'RR',
            '--quiet',
        ]
    )
    row = capsys.readouterr().out.splitlines()[-1]
    assert [cell.strip() for cell in row.strip('|').split('|')] == [
        'run',
        '100.0%',
        'RR',
        '0.5000',
        '0.5000',
        '1.0000',
    ]
