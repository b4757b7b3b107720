"""The command: lists, reports, exit status; the committed report is that of the files beside it."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.regression import main
from pyserini_repbert.regression.regression_files import read_regression
from pyserini_repbert.regression.report import evaluator_text, measure_text, source_text

ROOT = Path(__file__).parents[2]


def command(path, data, *flags):
    return run(main, [str(path), '--data', str(data), '--work', str(data / 'work'), *flags])


def test_outcomes_are_printed(regression_file, data, capsys):
    assert command(regression_file(), data, '--jobs', '2') == 0
    printed = capsys.readouterr().out
    assert 'PASS small a+b' in printed
    assert '  PASS RR@10: 0.3333, expected 0.3333' in printed
    assert 'conditions: 2 PASS\nguards against change: 2 PASS\n' in printed


@pytest.fixture
def report(regression_file, data, tmp_path):
    """write(suffix) -> the text of a report."""

    def write(suffix):
        path = tmp_path / f'report{suffix}'
        assert command(regression_file(), data, '--report', str(path)) == 0
        return path.read_text(encoding='utf-8')

    return write


@pytest.mark.usefixtures('commands_here')
def test_a_report_as_json(report, data, tmp_path):
    content = json.loads(report('.json'))
    totals = {status: count for status, count in content['totals'].items() if count}
    assert totals == {'PASS': 2}
    assert content['environment']['pyserini']
    last_command = content['files'][0]['conditions'][0]['commands'][-1]
    assert str(tmp_path) not in last_command.replace(str(data / 'work'), '')


@pytest.mark.usefixtures('commands_here')
def test_a_report_as_markdown(report):
    row = '| a+b | RR@10 | 0.3333 | 0.3333 | PASS | this project, commit 0123456 | this project |'
    assert row in report('.md')


@pytest.mark.usefixtures('commands_here')
def test_a_report_as_html(report):
    assert '<tr class="pass">' in report('.html')


@pytest.mark.usefixtures('commands_here')
def test_a_failure_is_status_1(regression_file, data, capsys):
    assert command(regression_file('0.3333', '0.3111'), data, '--condition', 'a+b', '--quiet') == 1
    assert 'FAIL RR@10: 0.3333, expected 0.3111' in capsys.readouterr().out


def test_an_absent_data_folder_is_loud(regression_file, tmp_path, capsys):
    assert command(regression_file(), tmp_path / 'nowhere') == 0
    captured = capsys.readouterr()
    assert 'WARNING: the data folder' in captured.err
    assert 'NOT RUN small a+b' in captured.out and '2 NOT RUN' in captured.out


def test_the_list_shows_scores_and_runs_nothing(regression_file, data, capsys):
    assert command(regression_file(), data, '--list') == 0
    assert '  a+b: RR@10 0.3333' in capsys.readouterr().out
    assert not (data / 'work').exists()


@pytest.mark.parametrize('flag', ['--list', '--dry-run'])
def test_without_a_file_all_of_regressions_are_shown(
    flag, regression_file, tmp_path, monkeypatch, capsys
):
    (tmp_path / 'regressions').mkdir()
    Path(regression_file()).rename(tmp_path / 'regressions' / 'small.yaml')
    monkeypatch.chdir(tmp_path)
    assert run(main, [flag]) == 0
    assert 'a+b' in capsys.readouterr().out


def test_a_folder_without_regressions_is_said_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(main, ['--list']) == 2
    assert 'run this in the folder that has regressions/' in capsys.readouterr().err


def test_a_dry_run_shows_commands_and_runs_nothing(regression_file, data, capsys):
    assert command(regression_file(), data, '--dry-run') == 0
    runs = f'{data / "a.txt"} {data / "b.txt"}'
    shown = f'python -m pyserini_repbert.fusion --runs {runs} --output'
    assert shown in capsys.readouterr().out
    assert not (data / 'work').exists()


@pytest.mark.parametrize('flag', ['--list', '--dry-run'])
def test_what_runs_nothing_has_no_report(flag, regression_file, data, capsys):
    assert command(regression_file(), data, flag, '--report', str(data / 'r.md')) == 2
    assert '--report is for a run' in capsys.readouterr().err
    assert not (data / 'r.md').exists()


@pytest.mark.parametrize(
    ('old', 'new', 'line', 'message'),
    [
        ('title: Two', 'titel: Two', 2, "'titel' is not a field here (did you mean 'title'?)"),
        ('name: small', 'name: large', 1, "'large' is not the name of the file"),
        ('--runs {{first}}', '--runs {c}', 17, "'{c}' is neither a resource, a build nor an axis"),
        ('python -m pyserini_repbert.fusion', 'rm -r', 17, "begins with 'python -m MODULE'"),
        ('b: {a: 0.25}', 'b: {a: high}', 24, "'high' is not a number"),
        ("    qrels: '{qrels}'\n", '', 13, 'expected run and qrels, or table'),
        ('grid: {', 'grid: [', 14, 'not YAML'),
        (
            'second: [a, b]}\n    only: different',
            'second: [c]}\n    only: equal',
            14,
            'the grid has no cells',
        ),
    ],
)
def test_a_wrong_file_is_refused_with_file_and_line(
    regression_file, data, capsys, old, new, line, message
):
    path = regression_file(old, new)
    assert command(path, data) == 2
    error = capsys.readouterr().err
    assert f'error: {path}:{line}: ' in error
    assert message in error


class Entry(NamedTuple):
    """A score, as the report shows it."""

    file: str
    condition: str
    measure: str
    expected: str
    source: str
    evaluator: str


def entries_of(path):
    """The entries of a regression file."""
    entries = []
    for condition in read_regression(path).conditions:
        for score in (*condition.expected, *condition.recorded):
            of_source = (source_text(score), evaluator_text(score))
            shown = (measure_text(score), score.text, *of_source)
            entries.append(Entry(path.name, condition.name, *shown))
    return entries


def entries_in(report):
    """The entries that a report in Markdown shows below the headings of the files."""
    entries = []
    file = ''
    for line in report.splitlines():
        if line.startswith('## '):
            file = line.removeprefix('## ')
        elif file.endswith('.yaml') and line.startswith('| '):
            cells = line.strip('| ').split(' | ')
            if len(cells) == 7 and cells[0] not in ('condition', '---'):
                condition, measure, expected, _, _, source, evaluator = cells
                entries.append(Entry(file, condition, measure, expected, source, evaluator))
    return entries


@pytest.fixture(scope='module')
def committed_report():
    return (ROOT / 'regressions' / 'REPORT.md').read_text(encoding='utf-8')


def test_the_committed_report_has_the_entries_of_the_files(committed_report):
    expected = []
    for path in sorted((ROOT / 'regressions').glob('*.yaml')):
        expected += entries_of(path)
    assert entries_in(committed_report) == expected


def test_the_committed_report_has_no_failure(committed_report):
    assert '| FAIL |' not in committed_report


def test_the_committed_report_names_no_path_of_the_machine_that_made_it(committed_report):
    assert not re.search(r'(?<![^\s`|\'"=(])/\w+/', committed_report)


def test_a_score_says_how_its_source_computed_it(regression_file):
    path = regression_file('  here: {text: this project,', '  HERE')
    text = (
        Path(path)
        .read_text(encoding='utf-8')
        .replace(
            "  HERE commit: '0123456'}",
            '  here: {text: a paper, cells: paper, evaluators: {RR@10: script}}\n'
            'evaluators:\n'
            '  script: {program: a script, gain: from grade 1, cut: 10 hits, ties: by rank}',
        )
    )
    text = text.replace('source: here', 'source: here\n        cell: one')
    Path(path).write_text(text, encoding='utf-8')
    first, *_ = read_regression(path).conditions
    assert evaluator_text(first.expected[0]) == 'a script; from grade 1; 10 hits; by rank'
    Path(path).write_text(text.replace('{RR@10: ', '{AP: '), encoding='utf-8')
    first, *_ = read_regression(path).conditions
    assert evaluator_text(first.expected[0]) == 'not stated'


def test_an_evaluator_that_is_not_declared_is_refused(regression_file, data, capsys):
    path = regression_file("commit: '0123456'}", "commit: '0123456', evaluators: {RR@10: scrip}}")
    assert command(path, data) == 2
    assert "evaluator 'scrip' is not declared in this file" in capsys.readouterr().err


def count_passed(report, title, row):
    """The scores of a row of a section that pass, within tolerance or not."""
    section = report.partition(f'## {title}\n')[2].partition('\n## ')[0]
    for line in section.splitlines():
        cells = [cell.strip(' *') for cell in line.strip('|').split('|')]
        if cells[0] == row:
            return int(cells[1]) + int(cells[2])
    raise AssertionError(f'{title} has no row {row}')


def test_the_pages_count_what_the_committed_report_counts(committed_report):
    others = "Agrees with others' published figures"
    n_others = count_passed(committed_report, others, 'all')
    n_made = count_passed(committed_report, others, 'rankings made here')
    n_evaluated = count_passed(committed_report, others, 'published runs evaluated here')
    n_guards = count_passed(committed_report, 'Guards against change', 'all')
    readme = ' '.join((ROOT / 'README.md').read_text(encoding='utf-8').split())
    guide = (ROOT / 'docs' / 'guides' / 'reproducing.md').read_text(encoding='utf-8')
    assert f'{n_others} scores agree with figures that others published' in readme
    assert f'Another {n_guards} scores only guard against change' in readme
    assert f'**{n_others} scores agree with figures that others published**: {n_made} for' in guide
    assert f'{n_evaluated} for published runs evaluated here' in guide
    assert f'**{n_guards} scores guard against change**' in guide
