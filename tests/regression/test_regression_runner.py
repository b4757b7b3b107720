"""The runner: green on what agrees, red on what does not, and never a score where there is none."""

import hashlib

import pytest

from pyserini_repbert.regression.jobs import ConditionJob
from pyserini_repbert.regression.runner import Status, judge, run_condition
from pyserini_repbert.regression.schema import Expected, ScoreSource, Tolerance


def run(workspace, number=0, heavy_too=False):
    job = ConditionJob(workspace.regression.conditions[number], workspace)
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


@pytest.mark.parametrize(('number', 'name', 'score'), [(0, 'a+b', 1 / 3), (1, 'b+a', 1 / 4)])
def test_conditions_pass(number, name, score, regression_file, workspace):
    outcome = run(workspace(regression_file()), number)
    assert outcome.condition.name == name
    assert outcome.status is Status.PASS
    assert outcome.scores[0].measured == pytest.approx(score)


WITH_TABLE = """\
conditions:
  - name: pair
    commands:
      - python -m pyserini_repbert.evaluate fusion-table --runs A={a} B={b} --qrels {qrels} --measures RR@10 --csv {out}/table.csv
    table: '{out}/table.csv'
    expected:
      - {measure: RR@10, where: {first: A, second: SECOND}, value: 0.3333, source: here, tolerance: none}
"""  # noqa: E501


@pytest.fixture
def run_with_table(regression_file, workspace):
    """run(second): the outcome of a condition whose score is in a table, beside this run."""
    path = regression_file()
    head, _, _ = path.read_text(encoding='utf-8').partition('conditions:')

    def run_with(second):
        path.write_text(head + WITH_TABLE.replace('SECOND', second), encoding='utf-8')
        return run(workspace(path))

    return run_with


@pytest.mark.usefixtures('commands_here')
def test_a_score_in_a_table(run_with_table):
    assert run_with_table('B').status is Status.PASS


@pytest.mark.usefixtures('commands_here')
def test_a_missing_score_is_red(run_with_table):
    outcome = run_with_table('C')
    assert (outcome.status, outcome.scores[0].measured) == (Status.FAIL, None)
    assert outcome.why == 'no score was measured'


@pytest.mark.usefixtures('commands_here')
def test_a_cell_that_is_no_number_is_no_score(regression_file, workspace):
    path = regression_file()
    head, _, _ = path.read_text(encoding='utf-8').partition('conditions:')
    names = WITH_TABLE.replace('fusion-table', 'recall-depth --depths 5')
    names = names.replace('B={b} ', '').replace('--measures RR@10 ', '')
    names = names.replace(
        'measure: RR@10, where: {first: A, second: SECOND}', 'measure: run, where: {depth: "5"}'
    )
    path.write_text(head + names, encoding='utf-8')
    outcome = run(workspace(path))
    assert (outcome.status, outcome.why) == (Status.FAIL, 'no score was measured')


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
    (missing,) = outcome.missing
    assert (missing.resource.name, missing.size) == ('a', '60 B')
    path = data / 'a.txt'
    assert missing.get == f"curl -L --create-dirs -o {path} 'https://example.org/a.txt'"


@pytest.mark.usefixtures('commands_here')
def test_a_damaged_resource_is_red(regression_file, workspace, data):
    right = hashlib.md5((data / 'a.txt').read_bytes()).hexdigest()
    assert run(workspace(regression_file('size: 60 B', f'md5: {right}'))).status is Status.PASS
    outcome = run(workspace(regression_file('size: 60 B', f'md5: {right[::-1]}')))
    assert outcome.status is Status.FAIL
    assert 'expected' in outcome.why


@pytest.mark.usefixtures('commands_here')
def test_results_are_remembered_for_the_same_code(regression_file, workspace):
    path = regression_file()
    assert not run(workspace(path)).remembered
    assert run(workspace(path)).remembered
    assert not run(workspace(path, version='2')).remembered


@pytest.mark.usefixtures('commands_here')
def test_results_are_not_remembered_for_another_resource(regression_file, workspace, data):
    path = regression_file()
    assert not run(workspace(path)).remembered
    (data / 'b.txt').write_text('1 Q0 w 1 9 b\n1 Q0 y 2 8 b\n', encoding='utf-8')
    outcome = run(workspace(path))
    assert not outcome.remembered
    assert outcome.status is Status.PASS


@pytest.mark.usefixtures('commands_here')
def test_results_are_not_remembered_for_another_command(regression_file, workspace):
    assert run(workspace(regression_file())).status is Status.PASS
    outcome = run(workspace(regression_file('--output', '--depth 1 --output')))
    assert not outcome.remembered
    assert outcome.status is Status.FAIL


@pytest.mark.usefixtures('commands_here')
def test_heavy_conditions_wait_until_asked_for(regression_file, workspace):
    only = '    only: different\n'
    heavy = workspace(regression_file(only, f'{only}    heavy: an hour of CPU\n'))
    outcome = run(heavy)
    assert (outcome.status, outcome.why) == (Status.NOT_RUN, 'takes an hour of CPU: --all runs it')
    assert run(heavy, heavy_too=True).status is Status.PASS
