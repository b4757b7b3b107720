"""The runner: green on what agrees, red on what does not, and never a score where there is none."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from pyserini_repbert.regression.jobs import Job
from pyserini_repbert.regression.runner import Status, judge, run_condition
from pyserini_repbert.regression.schema import Expected, ScoreSource, Tolerance

Make = Callable[..., Path]


def run(workspace, number=0, heavy_too=False):
    job = Job(workspace.regression.conditions[number], workspace)
    return run_condition(job, heavy_too)


def expected(text, tolerance=0.0):
    return Expected(
        measure='AP',
        text=text,
        source=ScoreSource(text='this project', commit='1'),
        tolerance=Tolerance(value=str(tolerance), reason='for the test'),
    )


@pytest.mark.parametrize(
    ('text', 'tolerance', 'measured', 'status'),
    [
        ('0.304', 0, 0.30353, Status.PASS),  # rounds to the published digits
        ('0.304', 0, 0.3035, Status.PASS),
        ('0.304', 0, 0.3034, Status.FAIL),
        ('0.304', 0.002, 0.3021, Status.WITHIN),
        ('0.304', 0.002, 0.3015, Status.FAIL),
        ('0.304', 0.002, 0.31, Status.FAIL),  # a gain beyond the tolerance, too
        ('0.3040', 0, 0.3041, Status.FAIL),
        ('1.0000', 0, 1.0, Status.PASS),
        ('0.30387', 0, float('nan'), Status.FAIL),
    ],
)
def test_judging(text, tolerance, measured, status):
    assert judge(expected(text, tolerance), measured) is status


def test_conditions_pass(regression_file, workspace):
    place = workspace(regression_file())
    outcomes = [run(place, 0), run(place, 1)]
    assert [one.condition.name for one in outcomes] == ['a+b', 'b+a']
    assert [one.status for one in outcomes] == [Status.PASS, Status.PASS]
    assert outcomes[0].scores[0].measured == pytest.approx(1 / 3)


@pytest.mark.usefixtures('commands_here')
def test_a_missing_score_is_red(regression_file, workspace):
    path = regression_file()
    head = path.read_text(encoding='utf-8').partition('conditions:')[0]
    command = (
        'python -m pyserini_repbert.evaluate fusion-table --runs A={a} B={b} --qrels {qrels} '
        '--measures RR@10 '
        '--csv {out}/table.csv'
    )
    where = '{measure: RR@10, first: A, second: SECOND}'
    body = (
        f'conditions:\n  - name: pair\n    commands: ["{command}"]\n    table: '
        f'"{{out}}/table.csv"\n    expected:\n'
        f'      - {{measure: RR@10, where: {where}, value: 0.3333, source: here, tolerance: '
        f'none}}\n'
    )
    path.write_text(head + body.replace('SECOND', 'B'), encoding='utf-8')
    assert run(workspace(path)).status is Status.PASS
    path.write_text(head + body.replace('SECOND', 'C'), encoding='utf-8')
    outcome = run(workspace(path))
    assert (outcome.status, outcome.scores[0].measured) == (Status.FAIL, None)
    assert outcome.why == 'no score was measured'


def test_a_failed_command_is_red_with_its_last_lines(regression_file, workspace, data):
    (data / 'a.txt').write_text('1 Q0 x one 9 a\n', encoding='utf-8')
    outcome = run(workspace(regression_file()))
    assert outcome.status is Status.FAIL
    assert outcome.scores[0].measured is None
    assert 'a.txt:1' in outcome.why and 'status 2' in outcome.why


def test_what_is_missing_is_named_with_size_and_command(regression_file, workspace, data):
    (data / 'a.txt').unlink()
    outcome = run(workspace(regression_file()))
    assert outcome.status is Status.NOT_RUN
    assert [(one.resource.name, one.size) for one in outcome.missing] == [('a', '60 B')]
    assert (
        outcome.missing[0].get
        == f"curl -L --create-dirs -o {data / 'a.txt'} 'https://example.org/a.txt'"
    )


@pytest.mark.usefixtures('commands_here')
def test_a_damaged_resource_is_red(regression_file, workspace, data):
    right = hashlib.md5((data / 'a.txt').read_bytes()).hexdigest()
    assert run(workspace(regression_file('size: 60 B', f'md5: {right}'))).status is Status.PASS
    outcome = run(workspace(regression_file('size: 60 B', f'md5: {right[::-1]}')))
    assert outcome.status is Status.FAIL and 'expected' in outcome.why


@pytest.mark.usefixtures('commands_here')
def test_results_are_remembered_for_the_same_commands_code_and_resources(
    regression_file, workspace, data
):
    path = regression_file()
    assert not run(workspace(path)).remembered
    assert run(workspace(path)).remembered
    assert not run(workspace(path, version='2')).remembered
    (data / 'b.txt').write_text('1 Q0 w 1 9 b\n1 Q0 y 2 8 b\n', encoding='utf-8')
    outcome = run(workspace(path, version='2'))
    assert not outcome.remembered and outcome.status is Status.PASS
    path.write_text(
        path.read_text(encoding='utf-8').replace('--output', '--depth 1 --output'), encoding='utf-8'
    )
    assert run(workspace(path, version='2')).status is Status.FAIL


@pytest.mark.usefixtures('commands_here')
def test_heavy_conditions_wait_until_asked_for(regression_file, workspace):
    place = workspace(
        regression_file('    only: different\n', '    only: different\n    heavy: an hour of CPU\n')
    )
    outcome = run(place)
    assert (outcome.status, outcome.why) == (Status.NOT_RUN, 'takes an hour of CPU: --all runs it')
    assert run(place, heavy_too=True).status is Status.PASS
