"""Run files as they are written."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pyserini_repbert.data.runs import (
    RunFormat,
    default_tag,
    read_run,
    reciprocal_scores,
    strictly_decreasing,
    write_run,
)
from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import Ranking

names = st.text('abz019é文-', min_size=1, max_size=20)


def test_write_trec(tmp_path):
    run = {'b': Ranking(['x', 'y', 'z'], [2.0, 2.0, 0.5]), 'none': Ranking([], [])}
    run['a'] = Ranking(['x'], [-1e-9])
    write_run(tmp_path / 'out', run, tag='100%')
    expected = (
        'b Q0 x 1 2.000000 100%\nb Q0 y 2 1.999999 100%\nb Q0 z 3 0.500000 100%\na Q0 x 1 '
        '0.000000 100%\n'
    )
    assert (tmp_path / 'out').read_text() == expected


def test_write_msmarco_gz(tmp_path):
    run = {'b': Ranking(['x', 'y'], [2.0, 2.0]), 'none': Ranking([], [])}
    write_run(tmp_path / 'out.gz', iter(run.items()), RunFormat.MSMARCO)
    assert gzip.decompress((tmp_path / 'out.gz').read_bytes()) == b'b\tx\t1\nb\ty\t2\n'


@pytest.mark.parametrize(
    'run',
    [
        {'q': Ranking(['a'], [1.0]), 'r': Ranking(['b'], [float('nan')])},
        {'q': Ranking(['a'], [1.0]), 'r': Ranking(['b'], [float('inf')])},
        {'q': Ranking(['a', 'b'], [1.0])},
        {'q': Ranking(['a', 'b c'], [2.0, 1.0])},
        {'q': Ranking(['a', ''], [2.0, 1.0])},
        {'q 1': Ranking(['a'], [2.0])},
    ],
)
def test_a_run_that_cannot_be_written_leaves_the_old_file(tmp_path, run):
    (tmp_path / 'out').write_text('old')
    with pytest.raises(InputError):
        write_run(tmp_path / 'out', run)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [('out', 'old')]


@pytest.mark.parametrize('fmt', list(RunFormat))
@given(ranks=st.lists(names, unique=True, min_size=1), scores=st.data())
@settings(max_examples=50)
def test_round_trip_keeps_the_order(tmp_path_factory, fmt, ranks, scores):
    values = scores.draw(st.lists(st.floats(-1e4, 1e4), min_size=len(ranks), max_size=len(ranks)))
    path = tmp_path_factory.mktemp('runs') / 'run'
    write_run(path, {'q': Ranking(ranks, sorted(values, reverse=True))}, fmt)
    assert read_run(path)['q'].docids == tuple(ranks)


@pytest.mark.parametrize(
    ('path', 'tag'), [('a/dl19.bm25.txt.gz', 'dl19.bm25'), ('x y.tsv', 'x_y'), ('.run', 'run')]
)
def test_default_tag(path, tag):
    assert default_tag(path) == tag


@given(
    st.lists(
        st.floats(-20, 20)
        | st.floats(-1e9, 1e9)
        | st.sampled_from([15.999999, 16.0, 30.25, 0.1, 700.0, -700.0]),
        max_size=60,
    )
)
@settings(max_examples=500)
def test_written_scores_strictly_decrease(scores):
    scores = sorted([*scores, *scores[:5]], reverse=True)
    result = [float(f'{score:.6f}') for score in strictly_decreasing(scores)]
    assert result == strictly_decreasing(scores)
    single = np.array(result, dtype=np.float32)
    assert (np.diff(single) < 0).all()
    assert all(
        new <= old + 1e-6 * max(1, abs(old)) for new, old in zip(result, scores, strict=True)
    )


@given(st.lists(st.floats(-10, 10), max_size=30), st.floats(100, 1000))
def test_small_and_large_scores_change_as_little_as_needed(scores, large):
    """Against the plain definition: one value after the other, each just below the last where it
    has to be.
    """
    for values in (sorted(scores, reverse=True), sorted([large, *scores, *scores], reverse=True)):
        expected: list[float] = []
        for value in values:
            rounded = round(value, 6)
            if expected and np.float32(rounded) >= np.float32(expected[-1]):
                below = float(np.nextafter(np.float32(expected[-1]), np.float32('-inf')))
                rounded = round(min(expected[-1] - 1e-6, below), 6)
            expected.append(rounded)
        assert strictly_decreasing(values) == pytest.approx(expected, abs=1e-9)


def test_scores_that_increase_are_lowered():
    assert strictly_decreasing([1.0, 2.0, 0.0]) == [1.0, 0.999999, 0.0]
    assert strictly_decreasing([20.0, 21.0])[1] < 20.0


def test_reciprocal_scores_beyond_a_thousand():
    scores = reciprocal_scores(1500)
    assert scores == tuple(1 / rank for rank in range(1, 1501))
    assert reciprocal_scores(0) == ()
