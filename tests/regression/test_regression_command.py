"""The command: lists, reports, exit status; the committed report is that of the files beside it."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.regression import main
from pyserini_repbert.regression.reading import read_regression
from pyserini_repbert.regression.report import measure_text, source_text

ROOT = Path(__file__).parents[2]
Make = Callable[..., Path]


def entry_rows(regression):
    """(condition, measure, expected, source) of every entry, as the report shows them."""
    return [
        (condition.name, measure_text(own), own.text, source_text(own))
        for condition in regression.conditions
        for own in [*condition.expected, *condition.recorded]
    ]


def command(path, data, *flags):
    return run(main, [str(path), '--data', str(data), '--work', str(data / 'work'), *flags])


def test_status_and_reports(regression_file, data, tmp_path, capsys):
    reports = [tmp_path / name for name in ('a.json', 'a.md', 'a.html')]
    for report in reports:
        assert command(regression_file(), data, '--report', str(report), '--jobs', '2') == 0
    assert 'PASS small a+b' in capsys.readouterr().out
    found = json.loads(reports[0].read_text(encoding='utf-8'))
    assert found['totals'] == {
        'PASS': 2,
        'PASS within tolerance': 0,
        'FAIL': 0,
        'REHEARSED': 0,
        'NOT RUN': 0,
        'RECORDED': 0,
    }
    assert found['environment']['pyserini']
    assert str(tmp_path) not in found['files'][0]['conditions'][0]['commands'][-1].replace(
        str(data / 'work'), ''
    )
    source = 'this project, commit 0123456'
    assert f'| a+b | RR@10 | 0.3333 | 0.3333 | PASS | {source} |' in reports[1].read_text(
        encoding='utf-8'
    )
    assert '<tr class="pass">' in reports[2].read_text(encoding='utf-8')


@pytest.mark.usefixtures('commands_here')
def test_a_failure_is_status_1(regression_file, data, capsys):
    assert command(regression_file('0.3333', '0.3111'), data, '--condition', 'a+b', '--quiet') == 1
    assert 'FAIL RR@10: 0.3333, expected 0.3111' in capsys.readouterr().out


def test_an_absent_data_folder_is_loud(regression_file, tmp_path, capsys):
    assert command(regression_file(), tmp_path / 'nowhere') == 0
    captured = capsys.readouterr()
    assert 'WARNING: the data folder' in captured.err
    assert 'NOT RUN small a+b' in captured.out and '2 NOT RUN' in captured.out


def test_list_and_dry_run_run_nothing(regression_file, data, capsys):
    assert command(regression_file(), data, '--list') == 0
    assert command(regression_file(), data, '--dry-run') == 0
    printed = capsys.readouterr().out
    assert '  a+b: RR@10 0.3333' in printed
    assert (
        f'python -m pyserini_repbert.fusion --runs {data / "a.txt"} {data / "b.txt"} --output'
        in printed
    )
    assert not (data / 'work').exists()
    for flag in ('--list', '--dry-run'):
        assert command(regression_file(), data, flag, '--report', str(data / 'r.md')) == 2
        assert '--report is for a run' in capsys.readouterr().err
    assert not (data / 'r.md').exists()


@pytest.mark.parametrize(
    ('old', 'new', 'line', 'message'),
    [
        ('title: Two', 'titel: Two', 2, "'titel' is no field here (did you mean 'title'?)"),
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


def test_the_committed_report_has_the_entries_of_the_files():
    report = (ROOT / 'regressions' / 'REPORT.md').read_text(encoding='utf-8')
    expected = []
    for path in sorted((ROOT / 'regressions').glob('*.yaml')):
        expected += [(path.name, *row) for row in entry_rows(read_regression(path))]
    found = []
    name = ''
    for line in report.splitlines():
        if line.startswith('## '):
            name = line.removeprefix('## ')
        elif name.endswith('.yaml') and line.startswith('| '):
            cells = line.strip('| ').split(' | ')
            if len(cells) == 6 and cells[0] not in ('condition', '---'):
                found.append((name, cells[0], cells[1], cells[2], cells[5]))
    assert found == expected
    assert '| FAIL |' not in report
    assert not re.search(r'(?<![^\s`|\'"=(])/\w+/', report), (
        'a path from the root, of the machine that made it'
    )
