"""Intervals over all tie-breaks, computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyserini_repbert.commands.evaluate import main
from pyserini_repbert.data.runs import write_run
from pyserini_repbert.evaluate.measures import parse_measures
from pyserini_repbert.evaluate.ties import tie_intervals, tied_share
from pyserini_repbert.ranking import Ranking

RUN = {'1': Ranking(['a', 'b', 'c', 'd'], [3.0, 2.0, 2.0, 2.0])}


def test_the_interval_of_a_tie_of_three() -> None:
    found = tie_intervals(RUN, {'1': {'c': 1}}, parse_measures(['RR', 'P@2']))
    assert found['RR'] == pytest.approx((1 / 4, 1 / 3, 1 / 2))
    assert found['P@2'] == pytest.approx((0, 0, 0.5))


def test_without_ties_nothing_moves() -> None:
    run = {'1': Ranking(['a', 'b'], [2.0, 1.0])}
    assert tie_intervals(run, {'1': {'b': 1}, '2': {'b': 1}}, parse_measures(['RR']))['RR'] == (0.25, 0.25, 0.25)
    assert (tied_share(run), tied_share(RUN), tied_share({})) == (0, 0.75, 0)


def test_ties_of_a_run_written_here_are_put_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / 'run.txt', {'q': Ranking(['a', 'b', 'c'], [1.0, 1.0, 0.5])})
    (tmp_path / 'qrels.txt').write_text('q 0 b 1\n', encoding='utf-8')
    shown = []
    for more in ([], ['--written-here']):
        main(['ties', str(tmp_path / 'run.txt'), '--qrels', str(tmp_path / 'qrels.txt'), '--measures', 'RR', *more])
        shown.append(capsys.readouterr().out)
    assert '0.0%' in shown[0]
    assert '66.7% | RR' in ' '.join(shown[1].split())
    assert '0.5000 | 0.5000 | 1.0000' in ' '.join(shown[1].split())


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / 'run.txt').write_text('1 Q0 a 1 2 r\n1 Q0 b 2 2 r\n', encoding='utf-8')
    (tmp_path / 'qrels.txt').write_text('1 0 b 1\n', encoding='utf-8')
    main(['ties', '--qrels', str(tmp_path / 'qrels.txt'), str(tmp_path / 'run.txt'), '--measures', 'RR', '--quiet'])
    row = capsys.readouterr().out.splitlines()[-1]
    assert [cell.strip() for cell in row.strip('|').split('|')] == ['run', '100.0%', 'RR', '0.5000', '0.5000', '1.0000']
