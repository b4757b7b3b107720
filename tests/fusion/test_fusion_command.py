import json

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.fusion import main
from pyserini_repbert.data.runs import read_run, unique_names
from pyserini_repbert.fusion import fuse
from pyserini_repbert.ranking import Ranking

DENSE = '1 Q0 c 1 1 t\n1 Q0 a 2 3 t\n1 Q0 b 3 2 t\n3 Q0 z 1 1 t\n'
BM25 = '1\tc\t0\n1\td\t1\n2\tx\t0\n'


def fusion(command):
    return run(main, command.split())


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'dense.run').write_text(DENSE)
    (tmp_path / 'bm25.tsv').write_text(BM25)
    return tmp_path


def test_interleave(runs):
    assert fusion('--runs dense.run bm25.tsv --output out/fused.txt') == 0
    assert (runs / 'out' / 'fused.txt').read_text().splitlines() == [
        '1 Q0 a 1 1.000000 fused',
        '1 Q0 c 2 0.500000 fused',
        '1 Q0 b 3 0.333333 fused',
        '1 Q0 d 4 0.250000 fused',
        '3 Q0 z 1 1.000000 fused',
        '2 Q0 x 1 1.000000 fused',
    ]


def test_msmarco_output_depth_and_hits(runs):
    command = '--runs bm25.tsv dense.run --depth 1 --hits 1 --output o --output-format msmarco'
    assert fusion(command) == 0
    assert (runs / 'o').read_text() == '1\tc\t1\n2\tx\t1\n3\tz\t1\n'


def test_runs_of_passages_become_runs_of_documents(runs):
    passages = '1 Q0 a#0 1 5 t\n1 Q0 b#2 2 4 t\n1 Q0 a#1 3 1 t\n'
    (runs / 'passages.run').write_text(passages)
    assert fusion('--runs passages.run --documents max --method rrf --output o') == 0
    assert read_run('o')['1'].docids == ('a', 'b')
    assert fusion('--runs passages.run --documents mean --method rrf --output p') == 0
    assert read_run('p')['1'].docids == ('b', 'a')


def test_passages_without_scores_become_no_documents(runs, capsys):
    assert fusion('--runs bm25.tsv --documents max --output o') == 2
    assert 'bm25.tsv has no scores' in capsys.readouterr().err


@pytest.fixture
def many(runs):
    """A run of 1500 documents, none of which is in the others."""
    lines = [f'1\ta{rank}\t{rank}\n' for rank in range(1500)]
    (runs / 'many').write_text(''.join(lines))


def test_no_truncation(many):
    assert fusion('--runs many bm25.tsv --hits 0 --output o') == 0
    assert len(read_run('o')['1']) == 1502


def test_a_thousand_hits_by_default(many):
    assert fusion('--runs many bm25.tsv --output o') == 0
    assert len(read_run('o')['1']) == 1000


def test_an_output_is_overwritten_when_asked_for(runs):
    (runs / 'o').write_text('')
    assert fusion('--runs dense.run bm25.tsv --output o') == 2
    assert fusion('--runs dense.run bm25.tsv --output o --overwrite') == 0
    assert list(read_run('o')) == ['1', '3', '2']


def test_rrf_and_tag(runs):
    assert fusion('--runs dense.run bm25.tsv --method rrf --rrf-k 1 --tag mine --output o') == 0
    assert (runs / 'o').read_text().splitlines()[0] == '1 Q0 c 1 0.750000 mine'


def test_interpolation(runs):
    settings = '--method interpolation --alpha 0.1 --normalize none'
    assert fusion(f'--runs dense.run dense.run {settings} --output o') == 0
    assert read_run('o')['1'] == Ranking(['a', 'b', 'c'], [3.0, 2.0, 1.0])


def test_interpolation_of_three_normalised_runs(runs):
    """dense is a 3, b 2, c 1."""
    assert (
        fusion(
            '--runs dense.run dense.run dense.run --fusion interpolation --weights 1 1 2 '
            '--normalize minmax --output o'
        )
        == 0
    )
    assert read_run('o')['1'] == Ranking(['a', 'b', 'c'], [4.0, 2.0, 0.0])


def test_provenance_tsv(runs):
    assert fusion('--runs dense.run bm25.tsv --output o --provenance p.tsv') == 0
    assert (runs / 'p.tsv').read_text().splitlines() == [
        'qid\tdocid\trank\tdense\tbm25',
        '1\ta\t1\t1\t',
        '1\tc\t2\t3\t1',
        '1\tb\t3\t2\t',
        '1\td\t4\t\t2',
        '3\tz\t1\t1\t',
        '2\tx\t1\t\t1',
    ]


def test_provenance_jsonl_quotes_names(runs):
    (runs / 'a"b.tsv').write_text('1\té"\\\t1\n')
    assert fusion('--runs a"b.tsv --output o --provenance p.jsonl') == 0
    assert (runs / 'p.jsonl').read_text(encoding='utf-8').startswith('{"qid": "1", "docid": "é')
    hit = json.loads((runs / 'p.jsonl').read_text())
    assert hit == {'qid': '1', 'docid': 'é"\\', 'rank': 1, 'ranks': {'a"b': 1}}


@pytest.mark.parametrize(
    ('command', 'message'),
    [
        (
            '--runs dense.run bm25.tsv --method interpolation --output o',
            'bm25.tsv has no scores to interpolate',
        ),
        (
            '--runs dense.run dense.run --method rrf --alpha 0.5 --output o',
            "alpha is for fusion by 'interpolation'",
        ),
        ('--runs dense.run dense.run --rrf-k 5 --output o', "rrf_k is for fusion by 'rrf'"),
        ('--runs dense.run --output o --provenance p.csv', 'ends in .tsv or .jsonl'),
        ('--runs dense.run --output o --hits -1', "'-1' is not an integer"),
        ('--runs dense.run --output .', 'is a folder'),
        (
            '--runs dense.run dense.run --method interpolation --normalize background --output o',
            "a ranking's background is not known",
        ),
    ],
)
def test_errors_are_one_line(runs, capsys, command, message):
    assert fusion(command) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith('error: ') and error.count('\n') == 1
    assert not (runs / 'o').exists()


def test_files_in_step_are_fused_while_reading(runs, monkeypatch):
    """The same answer on both ways: with equal queries in equal order, and otherwise."""
    import pyserini_repbert.data.runs

    (runs / 'step.tsv').write_text('1\tc\t1\n1\td\t2\n3\tx\t1\n')
    (runs / 'scattered.tsv').write_text('1\tc\t1\n3\tx\t1\n1\td\t2\n')
    assert fusion('--runs dense.run scattered.tsv --output o --tag t') == 0
    monkeypatch.setattr(pyserini_repbert.data.runs, 'read_run', None)
    assert fusion('--runs dense.run step.tsv --output p --tag t') == 0
    assert (runs / 'o').read_bytes() == (runs / 'p').read_bytes()
    assert (runs / 'p').read_text().splitlines()[-1] == '3 Q0 x 2 0.500000 t'


@pytest.mark.parametrize(
    'lines',
    [
        '1 c 1\n',
        '1 c 1\n2 x 1\n',
        '3 x 1\n1 c 1\n',
        '1 c 1\n3 x 1\n4 y 1\n',
        '1 c 1\n3 x 1\n1 d 2\n3 z 2\n',
    ],
)
def test_files_out_of_step(runs, lines):
    """The command stops reading query by query, and fuses whole runs."""
    (runs / 'other').write_text(lines)
    assert fusion('--runs dense.run other --output o --tag t') == 0
    expected = fuse([read_run('dense.run'), read_run('other')])
    fused = read_run('o')
    assert list(fused) == list(expected)
    for qid, ranking in expected.items():
        assert fused[qid].docids == ranking.docids


def test_equal_names_are_told_apart():
    assert unique_names(['a/bm25.txt', 'b/bm25.txt', 'c']) == ['bm25', 'bm25#2', 'c']
