import gzip

# Where it is imported, small blocks are read at once, too.
import pyarrow  # noqa: F401
import pytest
from hypothesis import given, settings, strategies as st

from pyserini_repbert.data import run_parser as run_blocks
from pyserini_repbert.data.runs import (
    RunFormat,
    ScatteredQueryError,
    iter_run,
    read_run,
    run_format,
    write_run,
)
from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import Ranking

TREC = 'q1 Q0 d1 1 3.5 t\nq1 Q0 d2 2 2.5 t\nq2 Q0 d9 1 -1e-3 t\n'
MSMARCO = 'q1\td1\t1\nq1\td2\t2\nq2\td9\t1\n'


def written(tmp_path, content, name='run.txt'):
    path = tmp_path / name
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith('.gz') else data)
    return path


@pytest.mark.parametrize('name', ['run.txt', 'run.txt.gz'])
def test_trec_run(tmp_path, name):
    run = read_run(written(tmp_path, TREC, name))
    assert run == {'q1': Ranking(['d1', 'd2'], [3.5, 2.5]), 'q2': Ranking(['d9'], [-0.001])}


@pytest.mark.parametrize('name', ['run.tsv', 'run.tsv.gz'])
@pytest.mark.parametrize('base', [0, 1])
def test_msmarco_run_gets_reciprocal_scores(tmp_path, name, base):
    content = ''.join(f'q\td{rank}\t{rank + base}\n' for rank in range(4))
    assert read_run(written(tmp_path, content, name)) == {
        'q': Ranking(['d0', 'd1', 'd2', 'd3'], [1, 1 / 2, 1 / 3, 1 / 4])
    }


@pytest.mark.parametrize(
    ('content', 'expected'), [(TREC, RunFormat.TREC), ('\n' + MSMARCO, RunFormat.MSMARCO)]
)
def test_format_of_a_file(tmp_path, content, expected):
    assert run_format(written(tmp_path, content)) is expected


def test_lines_in_any_order(tmp_path):
    run = read_run(written(tmp_path, 'b x 2\na y 1\nb z 1\na w 3\na v 2\n'))
    assert list(run) == ['b', 'a']
    assert run['b'].docids == ('z', 'x')
    assert run['a'].docids == ('y', 'v', 'w')


def test_score_counts_not_rank_and_ties_go_by_docid(tmp_path):
    run = read_run(
        written(tmp_path, 'q Q0 d1 1 1.0 t\nq Q0 d3 2 2.0 t\nq Q0 d2 3 2.0 t\nq Q0 d10 4 2.0 t\n')
    )
    assert run == {'q': Ranking(['d10', 'd2', 'd3', 'd1'], [2.0, 2.0, 2.0, 1.0])}


def test_equal_ranks_go_by_docid(tmp_path):
    assert read_run(written(tmp_path, 'q b 1\nq a 1\nq c 0\n'))['q'].docids == ('c', 'a', 'b')


@pytest.mark.parametrize('content', [MSMARCO, TREC])
def test_depth(tmp_path, content):
    run = read_run(written(tmp_path, content), depth=1)
    assert {qid: ranked.docids for qid, ranked in run.items()} == {'q1': ('d1',), 'q2': ('d9',)}
    assert all(len(ranked.scores) == 1 for ranked in run.values())


@pytest.mark.parametrize('size', [20, 1 << 20])
@pytest.mark.parametrize('content', [MSMARCO, TREC, 'q b 2\nq a 1\nr x 1\n', '\n\n' + TREC])
def test_queries_one_at_a_time(tmp_path, monkeypatch, content, size):
    path = written(tmp_path, content)
    monkeypatch.setattr(run_blocks.line_blocks, '__defaults__', (size,))
    for depth in (None, 1):
        assert list(iter_run(path, depth)) == list(read_run(path, depth).items())


def test_scattered_queries_cannot_come_one_at_a_time(tmp_path):
    with pytest.raises(ScatteredQueryError, match="query 'q' in two places"):
        list(iter_run(written(tmp_path, 'q a 1\nr b 1\nq c 2\n')))


def test_a_document_twice_is_refused_one_query_at_a_time_too(tmp_path):
    with pytest.raises(InputError, match="document 'a' occurs twice for query 'q'"):
        list(iter_run(written(tmp_path, 'p a 1\nq a 1\nq a 2\n')))


def test_odd_spacing_is_read_alike(tmp_path):
    plain = read_run(written(tmp_path, TREC))
    for odd in (
        TREC.replace('\n', '\r\n'),
        TREC.replace('\n', '\n\n'),
        TREC.replace(' ', '\t'),
        TREC.replace(' ', '  \t'),
        '  ' + TREC.replace('\n', ' \n'),
        TREC.removesuffix('\n'),
        '\ufeff' + TREC,
        '\n \n' + TREC,
    ):
        assert read_run(written(tmp_path, odd)) == plain


def test_unicode_names(tmp_path):
    content = 'ü Q0 文書\u00a01 1 2.0 t\nü Q0 é 2 1.0 t\nz\u2028 Q0 x\x1cy 1 1.0 t\n'
    run = read_run(written(tmp_path, content))
    assert run == {
        'ü': Ranking(['文書\u00a01', 'é'], [2.0, 1.0]),
        'z\u2028': Ranking(['x\x1cy'], [1.0]),
    }
    write_run(tmp_path / 'again', run)
    assert read_run(tmp_path / 'again') == run


def test_queries_across_blocks(tmp_path, monkeypatch):
    lines = []
    for qid in ('1', '12'):
        lines += [f'{qid}\t{"d" * (rank % 5 + 1)}{rank}\t{rank}\n' for rank in range(1, 60)]
    path = written(tmp_path, ''.join(lines))
    whole = read_run(path)
    monkeypatch.setattr(run_blocks.line_blocks, '__defaults__', (50,))
    assert read_run(path) == whole
    assert [len(ranked.docids) for ranked in whole.values()] == [59, 59]


names = st.text('abz019é文-', min_size=1, max_size=20)
spaces = st.sampled_from([' ', '\t', ' ', '\t', '  ', '\t '])


@settings(max_examples=200)
@given(st.data(), st.booleans())
def test_both_ways_of_reading_a_block_agree(data, trec):
    lines = []
    qids = st.sampled_from(['1', '2', 'q' * 9, 'q' * 8 + 'r'])
    for qid, docid in data.draw(st.lists(st.tuples(qids, names), min_size=1)):
        rank = str(data.draw(st.integers(0, 10**10)))
        score = repr(data.draw(st.floats(allow_nan=False, allow_infinity=False)))
        values = [qid, 'Q0', docid, rank, score, 'tag'] if trec else [qid, docid, rank]
        lines.append(
            ''.join(value + data.draw(spaces) for value in values[:-1]) + values[-1] + '\n'
        )
    block = ''.join(lines).encode()
    columns = 6 if trec else 3
    fast = run_blocks.parse_block('x', 1, block, columns)
    slow = run_blocks._line_by_line('x', 1, block, columns)
    assert fast[:2] == slow[:2]
    assert fast.keys.tolist() == slow.keys.tolist()


GOOD = {3: 'q\tdoc{}\t{}\n', 6: 'q Q0 doc{} {} 0.{:03d} t\n'}


@pytest.mark.parametrize(
    ('columns', 'line'),
    [
        (3, 'q d'),
        (3, 'q d 1 2'),
        (3, 'q d one'),
        (3, 'q d 1_0'),
        (3, 'q d \u0663'),
        (6, 'q d 1'),
        (6, 'q Q0 d 1 1.0 my tag'),
        (6, 'q Q0 d 1 high t'),
        (6, 'q Q0 d 1 nan t'),
        (6, 'q Q0 d 1 1e999 t'),
    ],
)
@pytest.mark.parametrize('place', [1, 2, 700])
def test_malformed_line_is_named(tmp_path, columns, line, place, monkeypatch):
    monkeypatch.setattr(run_blocks.line_blocks, '__defaults__', (4096,))
    lines = [GOOD[columns].format(i, i, 999 - i) for i in range(900)]
    lines.insert(place, line + '\n')
    with pytest.raises(InputError, match=rf'run\.txt:{place + 1}: (expected|score)'):
        read_run(written(tmp_path, ''.join(lines)))


@pytest.mark.parametrize('content', ['a b\n', 'a b c d\n', '\n\nonly\n'])
def test_a_first_line_in_neither_format(tmp_path, content):
    with pytest.raises(
        InputError, match=r"expected 'qid Q0 docid rank score tag' or 'qid docid rank'"
    ):
        read_run(written(tmp_path, content))


@pytest.mark.parametrize(
    'content', [MSMARCO + 'q2 x 2\nq1 d1 7\n', TREC + 'q2 Q0 x 2 -3 t\nq1 Q0 d1 9 0.1 t\n']
)
def test_duplicate_is_named(tmp_path, content):
    with pytest.raises(InputError, match=r"run\.txt: document 'd1' occurs twice for query 'q1'"):
        read_run(written(tmp_path, content))


@pytest.mark.parametrize('content', ['', '\n \n'])
def test_an_empty_file_is_a_run_without_hits(tmp_path, content, caplog):
    path = written(tmp_path, content)
    assert run_format(path) is RunFormat.TREC
    for read in (read_run, iter_run):
        assert dict(read(path)) == {}
    expected = f'run file {path} is empty: it counts as a run without hits'
    assert [record.message for record in caplog.records] == [expected] * 2
