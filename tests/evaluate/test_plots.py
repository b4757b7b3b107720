"""What plots show: read back from the figures that were saved."""

import csv

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.evaluate import main
from pyserini_repbert.evaluate.plots import COLUMN_WIDTH, plot_lines


@pytest.mark.parametrize(
    ('name', 'start'), [('a.pdf', b'%PDF'), ('a.SVG', b'<?xml'), ('a', b'\x89PNG')]
)
def test_a_plot_has_the_format_of_its_name_and_the_same_bytes_again(tmp_path, name, start):
    contents = []
    for _ in range(2):
        plot_lines(tmp_path / name, {'recall': {'a': {0: 0.1, 10: 0.5}}}, 'depth')
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1] and contents[0].startswith(start)


def test_panels_stand_below_each_other_in_one_column(tmp_path, figures):
    panels = {name: {'a': {1: 0.1, 10: 0.5}, 'b': {1: 0.2}} for name in ('recall', 'MRR')}
    plot_lines(tmp_path / 'a.pdf', panels, 'depth')
    (figure,) = figures
    assert figure.get_size_inches()[0] == COLUMN_WIDTH
    upper, lower = figure.axes
    assert upper.get_position().y0 > lower.get_position().y1
    # A publisher refuses fonts of Type 3.
    assert b'/Type3' not in (tmp_path / 'a.pdf').read_bytes()


def test_lines_differ_in_more_than_their_colour(tmp_path, figures):
    lines = {name: {1: 0.1, 10: 0.5} for name in 'abcdefg'}
    plot_lines(tmp_path / 'a.svg', {'recall': lines}, 'depth')
    drawn = figures[0].axes[0].lines
    assert len({line.get_color() for line in drawn}) == 7
    assert len({line.get_marker() for line in drawn}) == 7


@pytest.fixture
def two_runs(tmp_path, monkeypatch):
    """Reciprocal ranks of a: 1/2, 1, 0; of b: 1, 1/2, 0."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'qrels').write_text('1 0 r 1\n2 0 s 1\n3 0 y 1\n')
    (tmp_path / 'a.run').write_text('1 Q0 x 1 2 t\n1 Q0 r 2 1 t\n2 Q0 s 1 1 t\n')
    (tmp_path / 'b.run').write_text('1 Q0 r 1 2 t\n2 Q0 x 1 2 t\n2 Q0 s 2 1 t\n')


def test_differences_of_topics(two_runs, figures):
    command = '--qrels qrels a.run b.run --measures RR@10 --compare --plot gains.svg'
    assert run(main, command.split()) == 0
    (axis,) = figures[0].axes
    assert axis.get_title() == 'RR@10: b − a'
    assert [bar.get_height() for bar in axis.patches] == [0.5, 0, -0.5]
    with open('gains.csv', encoding='utf-8') as stream:
        assert list(csv.reader(stream)) == [
            ['measure', 'baseline', 'run', 'qid', 'difference'],
            ['RR@10', 'a', 'b', '1', '0.500000'],
            ['RR@10', 'a', 'b', '2', '-0.500000'],
            ['RR@10', 'a', 'b', '3', '0.000000'],
        ]


def test_the_values_of_a_plot_are_beside_it(two_runs, tmp_path, capsys):
    command = 'recall-depth --qrels qrels --runs a.run --depths 1 2 --quiet --plot recall.pdf'
    assert run(main, command.split()) == 0
    values = (tmp_path / 'recall.csv').read_text()
    assert values == 'run,depth,recall\na,1,0.333333\na,2,0.666667\n'
    # Neither is replaced without being told.
    (tmp_path / 'recall.pdf').unlink()
    assert run(main, command.split()) == 2
    assert 'recall.csv exists' in capsys.readouterr().err
    assert (tmp_path / 'recall.csv').read_text() == values
