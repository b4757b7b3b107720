"""What plots show: read back from the figures that were saved."""

from __future__ import annotations

import numpy as np
import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.evaluate import main
from pyserini_repbert.evaluate.plots import plot_lines, plot_matrices, plot_points


@pytest.fixture
def saved(figures, tmp_path):
    """saved(plot, …) -> the panels of the one figure that it saves, a PNG in one piece."""

    def call(plot, *given, **settings):
        from matplotlib import image

        plot(tmp_path / 'plot.png', *given, **settings)
        (figure,) = figures
        picture = image.imread(tmp_path / 'plot.png')
        width, height = figure.get_size_inches() * 120
        assert picture.shape[:2] == (round(height), round(width))
        assert picture.std() > 0.02  # not blank
        return figure.axes

    return call


def lines(axis):
    return {line.get_label(): line.get_xydata().tolist() for line in axis.lines}


def ticks(axis):
    return [label.get_text() for label in axis.get_xticklabels()]


def names(axis):
    return {text.get_text(): text.xy for text in axis.texts}


def test_lines(saved):
    panels = {'recall': {'a': {0: 0.1, 10: 0.5}, 'b': {10: 0.4}}, 'MRR': {'a': {5: 1.0}}}
    left, right = saved(plot_lines, panels, 'depth')
    assert lines(left) == {'a': [[0, 0.1], [10, 0.5]], 'b': [[10, 0.4]]}
    assert lines(right) == {'a': [[5, 1.0]]}
    assert names(left) == {'10: 0.500': (10, 0.5), '10: 0.400': (10, 0.4)} and names(right) == {'5: 1.000': (5, 1.0)}
    assert [axis.get_ylabel() for axis in (left, right)] == ['recall', 'MRR']
    assert {axis.get_xlabel() for axis in (left, right)} == {'depth'}
    assert left.get_xscale() == 'symlog' and ticks(left) == ['0', '10']
    assert [text.get_text() for text in left.get_legend().get_texts()] == ['a', 'b']


def test_points_and_their_front(saved):
    series = {'sum': [(10, 0.2), (100, 0.3)], 'min': [(50, 0.1)]}
    (axis,) = saved(
        plot_points, {'MRR@10': series}, {'MRR@10': [('k0=10', 10, 0.2), ('k0=90', 100, 0.3)]}, 'inferences'
    )
    ((_, front),) = lines(axis).items()
    assert front == [[10, 0.2], [100, 0.3]]
    assert names(axis) == {'k0=10': (10, 0.2), 'k0=90': (100, 0.3)}
    shown = {points.get_label(): points.get_offsets().tolist() for points in axis.collections}
    assert shown == {'Pareto front': front, 'sum': [[10, 0.2], [100, 0.3]], 'min': [[50, 0.1]]}
    assert (axis.get_xscale(), axis.get_xlabel(), axis.get_ylabel()) == ('log', 'inferences', 'MRR@10')


def test_matrices(saved):
    rows = {'bm25': {'bm25': 0.25, 'dense': 0.75}, 'dense': {'bm25': 0.5, 'dense': 1.0}}
    (axis,) = saved(plot_matrices, {'MRR@10': rows})
    np.testing.assert_array_equal(axis.images[0].get_array(), [[0.25, 0.75], [0.5, 1.0]])
    cells = {text.get_position(): (text.get_text(), text.get_color()) for text in axis.texts}
    assert cells == {
        (0, 0): ('0.250', 'white'),
        (1, 0): ('0.750', 'black'),
        (0, 1): ('0.500', 'white'),
        (1, 1): ('1.000', 'black'),
    }
    assert ticks(axis) == ['+bm25', '+dense']
    assert [label.get_text() for label in axis.get_yticklabels()] == ['bm25', 'dense']
    assert axis.get_title() == 'MRR@10'


@pytest.mark.parametrize(('name', 'start'), [('a.pdf', b'%PDF'), ('a.SVG', b'<?xml'), ('a', b'\x89PNG')])
def test_a_plot_has_the_format_of_its_name_and_the_same_bytes_again(tmp_path, name, start):
    contents = []
    for _ in range(2):
        plot_lines(tmp_path / name, {'recall': {'a': {0: 0.1, 10: 0.5}}}, 'depth')
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1] and contents[0].startswith(start)


def test_a_plot_in_another_format_is_refused_before_anything_is_read(tmp_path, capsys):
    command = ['rerank-depth', '--runs', 'a', '--reranked', 'b', '--qrels', 'c', '--plot', str(tmp_path / 'x.jpg')]
    assert run(main, command) == 2
    assert "x.jpg: '.jpg' is not a format that is drawn here" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
