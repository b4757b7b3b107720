import csv
import json
import os
import threading

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.evaluate import main

A = '1 Q0 x 1 2 t\n1 Q0 r 2 1 t\n2 Q0 s 1 1 t\n'
B = '1\tr\t1\n2\tx\t1\n2\ts\t2\n'


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'a.run').write_text(A)
    (tmp_path / 'b.tsv').write_text(B)
    (tmp_path / 'qrels').write_text('1 0 r 1\n2 0 s 2\n3 0 y 1\n')
    return tmp_path


def evaluate(command):
    return run(main, command.split())


def cells(text):
    """The rows of the tables in a text."""
    rows = []
    for line in text.splitlines():
        if line.startswith('|'):
            rows.append([cell.strip() for cell in line.strip('|').split('|')])
    return rows


def test_default_measures(capsys):
    assert evaluate('--qrels qrels a.run other=b.tsv') == 0
    printed = capsys.readouterr().out
    header, _, first, second = cells(printed)
    assert header == ['run', 'nDCG@10', 'MRR@10', 'R@1000']
    assert first == ['a', '0.5436', '0.5000', '0.6667']
    assert second == ['other', '0.5436', '0.5000', '0.6667']
    assert 'Over 3 judged topics. a has no hits for 1 of them, counted as 0.' in printed


def test_a_run_of_other_topics_is_warned_of(capsys, files):
    hits = [f'{qid} Q0 r 1 1 t\n' for qid in '14567']
    (files / 'c.run').write_text(''.join(hits))
    assert evaluate('--qrels qrels c.run a.run') == 0
    assert capsys.readouterr().err == 'warning: 1 of the 5 topics of c are judged\n'


PER_QUERY = """\
run\tqid\tmeasure\tvalue
a\t1\tMRR@10\t0.500000
a\t2\tMRR@10\t1.000000
a\t3\tMRR@10\t0.000000
"""


def test_a_run_may_have_a_topic_in_two_places_or_come_from_a_pipe(capsys, files):
    (files / 'scattered.run').write_text('1 Q0 x 1 2 t\n2 Q0 s 1 1 t\n1 Q0 r 2 1 t\n')
    os.mkfifo(files / 'pipe')
    thread = threading.Thread(target=(files / 'pipe').write_text, args=(A,))
    thread.start()
    assert evaluate('--qrels qrels a.run scattered.run pipe') == 0
    thread.join()
    _, _, *rows = cells(capsys.readouterr().out)
    assert [row[1:] for row in rows] == [['0.5436', '0.5000', '0.6667']] * 3


def test_values_per_query_are_printed(capsys):
    assert evaluate('--qrels qrels a.run --measures MRR@10 --per-query -') == 0
    assert capsys.readouterr().out == PER_QUERY


def test_values_per_query_are_written(files):
    assert evaluate('--qrels qrels a.run --measures MRR@10 --per-query values.tsv') == 0
    assert (files / 'values.tsv').read_text() == PER_QUERY


def test_judged_documents_only(files, capsys):
    """Unjudged x leads topic 1; without it, r does. Topic 3 has no hits."""
    assert evaluate('--qrels qrels a.run --measures MRR@10') == 0
    assert cells(capsys.readouterr().out)[-1] == ['a', '0.5000']
    assert evaluate('--qrels qrels a.run --measures MRR@10 --judged-only') == 0
    assert cells(capsys.readouterr().out)[-1] == ['a', '0.6667']


def test_compare(capsys):
    assert evaluate('--qrels qrels a.run b.tsv --measures MRR@10 --compare') == 0
    row = cells(capsys.readouterr().out)[-1]
    assert row == ['b', 'MRR@10', '+0.0000', '0.000', '1', '1', '1', '1']


def test_several_comparisons_are_corrected(capsys):
    command = '--qrels qrels a.run b.tsv other=b.tsv --measures MRR@10 --compare --confidence 0.9'
    assert evaluate(f'{command} --test randomization') == 0
    printed = capsys.readouterr().out
    assert "Against a (Fisher's randomisation test, two-sided; 10000 samples, seed 0)" in printed
    header = ['run', 'measure', 'difference', '90% interval', 'p', 'p (Holm)']
    assert cells(printed)[-4] == [*header, 'better', 'equal', 'worse']
    # Differences 1/2, 0, -1/2: of 27 draws, one has the mean -1/2, three have -1/3.
    low_to_high = '-0.3333 to +0.3333'
    assert cells(printed)[-1] == [
        *('other', 'MRR@10', '+0.0000', low_to_high, '1', '1'),
        *('1', '1', '1'),
    ]
    assert evaluate(f'{command} --json') == 0
    found = json.loads(capsys.readouterr().out)['comparisons'][0]
    assert found['p_holm'] == 1.0 and len(found['interval']) == 2


def test_json(capsys):
    assert evaluate('--qrels qrels a.run b.tsv --measures MRR@10 --compare --json') == 0
    found = json.loads(capsys.readouterr().out)
    assert found['judged_topics'] == 3
    assert found['runs'][0] == {
        'run': 'a',
        'path': 'a.run',
        'topics_without_hits': 1,
        'measures': {'MRR@10': 0.5},
    }
    assert found['comparisons'][0]['run'] == 'b'
    assert found['comparisons'][0]['difference'] == 0.0


@pytest.mark.parametrize(
    ('command', 'message'),
    [
        (
            '--qrels qrels a.run --measures nDGC@10',
            "measure 'nDGC@10' is unknown (did you mean 'nDCG'",
        ),
        ('--qrels qrels a.run x/a.run', "two runs have the name 'a'"),
        ('--qrels qrels none.run', 'none.run does not exist'),
        (
            'rerank-depth --qrels qrels --runs a.run b.tsv --reranked a.run',
            '2 runs and 1 reranked ones',
        ),
        (
            'fusion-table --qrels qrels --runs a.run b.tsv --method interpolation',
            'b.tsv has no scores to interpolate',
        ),
        ('--qrels qrels --measures MRR@10 a.run', 'no run files were given'),
    ],
)
def test_errors_are_one_line(capsys, command, message):
    assert evaluate(command) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count('\n') == 1


def test_fusion_table(capsys, figures):
    command = (
        'fusion-table --qrels qrels --runs a.run b.tsv --measures MRR@10 --csv t.csv '
        '--plot t.png --quiet'
    )
    assert evaluate(command) == 0
    header, _, *rows = cells(capsys.readouterr().out)
    assert header == ['MRR@10', '+a', '+b']
    assert rows == [['a', '**0.500**', '**0.500 (+0%)**'], ['b', '**0.500 (+0%)**', '**0.500**']]
    with open('t.csv', encoding='utf-8') as stream:
        lines = list(csv.reader(stream))
    assert lines[0] == ['measure', 'first', 'second', 'value', 'change']
    assert lines[2] == ['MRR@10', 'a', 'b', '0.500000', '0.000000']
    (axis,) = figures[0].axes
    assert axis.get_title() == 'MRR@10'
    assert axis.images[0].get_array().tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_consistency(capsys, figures):
    command = 'consistency --runs a.run --reference b.tsv --depths 1 10'
    assert evaluate(f'{command} --csv c.csv --plot c.png') == 0
    header, _, row = cells(capsys.readouterr().out)
    assert header == ['consistency factor', '@1', '@10']
    assert row == ['a', '0.500', '0.750']
    with open('c.csv', encoding='utf-8') as stream:
        assert stream.read() == 'run,depth,consistency_factor\na,1,0.500000\na,10,0.750000\n'
    (axis,) = figures[0].axes
    assert (axis.get_ylabel(), axis.lines[0].get_label()) == ('consistency factor', 'a')
    assert axis.lines[0].get_xydata().tolist() == [[1, 0.5], [10, 0.75]]


def test_rerank_depth_of_one_run_has_one_best_depth(capsys):
    command = 'rerank-depth --qrels qrels --runs A=a.run --reranked b.tsv --measures MRR@10'
    assert evaluate(command + ' --depths 0 2') == 0
    _, _, *rows = cells(capsys.readouterr().out)
    assert rows == [['0', '0.500'], ['2', '**0.667 (+33%)**']]


def test_rerank_depth(capsys, figures):
    command = (
        'rerank-depth --qrels qrels --runs A=a.run B=b.tsv --reranked b.tsv a.run --measures MRR@10'
    )
    assert evaluate(command + ' --depths 0 2 --csv d.csv --plot d.png') == 0
    printed = capsys.readouterr().out
    table = cells(printed)
    assert table[0] == ['MRR@10 at depth', 'A', 'B']
    assert table[2] == ['0', '**0.500**', '**0.500 (+0%)**']
    assert table[3] == ['2', '**0.667**', '**0.667 (+0%)**']
    assert '1 hits of A have no score in b.tsv' in printed
    with open('d.csv', encoding='utf-8') as stream:
        assert stream.readlines()[-1] == 'MRR@10,B,2,0.666667\n'
    lines = figures[0].axes[0].lines
    assert [line.get_label() for line in lines] == ['A', 'B']
    for line in lines:
        assert line.get_xydata().tolist() == [[0, 0.5], [2, pytest.approx(2 / 3)]]


def test_judgments_of_other_passages_are_warned_of(capsys, files):
    (files / 'd.run').write_text('1 Q0 p1 1 2 t\n2 Q0 p2 1 1 t\n')
    assert evaluate('--qrels qrels d.run a.run') == 0
    warning = 'none of the 3 judged docids is in d: check that both name the same passages'
    assert capsys.readouterr().err == f'warning: {warning}\n'


@pytest.mark.parametrize(
    'command',
    [
        '--qrels qrels a.run --per-query',
        'recall-depth --qrels qrels --runs a.run --depths 1 2 --csv',
        'consistency --runs a.run --reference b.tsv --depths 1 --csv',
        'fusion-table --qrels qrels --runs a.run b.tsv --csv',
    ],
)
def test_a_table_that_exists_is_replaced_only_on_request(command, files, capsys):
    (files / 'table').write_text('mine')
    assert evaluate(f'{command} table') == 2
    refusal = 'error: table exists: choose another output, or overwrite it (--overwrite)\n'
    assert capsys.readouterr().err == refusal
    assert (files / 'table').read_text() == 'mine'
    assert evaluate(f'{command} table --overwrite') == 0
    assert (files / 'table').read_text() != 'mine'
