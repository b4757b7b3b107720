"""Run files as they are written."""

import gzip

import pytest
from hypothesis import given, settings, strategies as st

from pyserini_repbert.data.runs import (
    RunFormat,
    check_format,
    default_tag,
    read_run,
    write_run,
)
from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import Ranking

names = st.text('abz019é文-', min_size=1, max_size=20)


def test_write_trec(tmp_path):
    run = {'b': Ranking(['x', 'y', 'z'], [2.0, 2.0, 0.5]), 'none': Ranking([], [])}
    run['a'] = Ranking(['x'], [-1e-9])
    write_run(tmp_path / 'out', run, tag='100%')
    expected = 'b Q0 x 1 2.000000 100%\nb Q0 y 2 1.999999 100%\nb Q0 z 3 0.500000 100%\na Q0 x 1 0.000000 100%\n'
    assert (tmp_path / 'out').read_text() == expected


def test_write_msmarco_gz(tmp_path):
    run = {'b': Ranking(['x', 'y'], [2.0, 2.0]), 'none': Ranking([], [])}
    write_run(tmp_path / 'out.gz', run, RunFormat.MSMARCO)
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


def test_check_format():
    check_format('trec', 'tag')
    with pytest.raises(InputError, match="'json' is unknown: expected one of trec, msmarco"):
        check_format('json', 'tag')
    for tag in ('two words', ''):
        with pytest.raises(InputError, match='must be one word'):
            check_format('trec', tag)


@pytest.mark.parametrize(('path', 'tag'), [('a/dl19.bm25.txt.gz', 'dl19.bm25'), ('x y.tsv', 'x_y'), ('.run', 'run')])
def test_default_tag(path, tag):
    assert default_tag(path) == tag
