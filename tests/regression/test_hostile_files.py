"""Regression files of strangers: no path leaves its folder, no word becomes a command, and no file
decides how long reading it takes.
"""

import shlex
from pathlib import Path

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.regression import main
from pyserini_repbert.errors import InputError
from pyserini_repbert.regression.jobs import ConditionJob
from pyserini_repbert.regression.regression_files import read_regression
from pyserini_repbert.regression.resources import find_missing
from pyserini_repbert.regression.workspace import Workspace, write_note

TEXT = """\
name: strange
title: A file of somebody
resources:
  a: {what: a run, path: '{downloads}/a.txt', address: 'https://a.example/a.txt'}
  qrels: {what: judgments, path: '{data}/qrels.txt', get: write them}
builds:
  made: {path: '{out}/made.txt', commands: ['python -m pyserini_repbert.fusion --output {made}']}
sources:
  here: {text: this project, commit: '0123456'}
tolerances:
  none: {value: 0, reason: nothing can differ}
conditions:
  - name: one
    run: '{a}'
    qrels: '{qrels}'
    expected: [{measure: RR@10, source: here, tolerance: none, value: 0.5}]
"""


@pytest.fixture
def strange(tmp_path):
    """make(old, new) -> the file, with a text in it replaced."""

    def make(old='', new='', name='strange'):
        assert old in TEXT
        path = tmp_path / f'{name}.yaml'
        path.write_text(TEXT.replace(old, new) if old else TEXT, encoding='utf-8')
        return path

    return make


def refusal(path):
    """The one line with which a file is refused."""
    with pytest.raises(InputError) as raised:
        read_regression(path)
    message = str(raised.value)
    assert message.startswith(f'{path}:') and '\n' not in message
    return message


@pytest.mark.parametrize(
    'path',
    [
        '/tmp/a.txt',
        '{downloads}/../a.txt',
        '{downloads}/x/../../a.txt',
        '{downloads}',
        '{downloads}/',
        '{downloads}//a.txt',
        '{downloads}x/a.txt',
        '~/a.txt',
        'a.txt',
        '{out}/a.txt',
        '{here}/a.txt',
    ],
)
def test_a_download_goes_below_its_folder(strange, path):
    message = refusal(strange("'{downloads}/a.txt'", f"'{path}'"))
    assert 'is not a path here: expected one below {data}/ or {downloads}/' in message


@pytest.mark.parametrize('path', ['/etc/passwd', '{data}/../../etc/passwd', '{data}/./a'])
def test_what_a_user_brings_is_below_a_folder(strange, path):
    assert 'is not a path here' in refusal(strange('{data}/qrels.txt', path))


@pytest.mark.parametrize('name', ['../a.txt', '/tmp/a.txt', '..', 'x/a.txt', r'a\x1b.txt'])
def test_the_name_of_a_download_has_no_folders(strange, name):
    changed = strange("address: 'https", f'unpack: gzip, file: "{name}", address: \'https')
    assert 'is not a name of a file' in refusal(changed)


@pytest.mark.parametrize(
    'path', ['{out}/../data', '{shared}/..', '{data}/made.txt', '/tmp/made', '{out}']
)
def test_a_build_is_made_below_its_folder(strange, path):
    message = refusal(strange('{out}/made.txt', path))
    assert "expected one below {out}/ or {shared}/, without '..'" in message


def test_a_label_does_not_lead_out_of_a_folder(strange):
    changed = strange(
        "made: {path: '{out}/made.txt',", "made: {grid: {n: ['../../x']}, path: '{out}/{n}',"
    )
    assert 'is not a path here' in refusal(changed)


def test_the_name_of_a_build_is_no_path(strange):
    assert 'is not a name of a file' in refusal(
        strange('  made: {', '  ../../made: {').parent / 'strange.yaml'
    )


@pytest.mark.parametrize('name', ['..', 'shared', '.hidden'])
def test_a_file_is_not_named_after_a_folder_of_others(strange, name):
    message = refusal(strange('name: strange', f"name: '{name}'", name=name))
    assert 'cannot be the name of a folder' in message


@pytest.mark.parametrize('shared', ['/etc/passwd', '../other.yaml'])
def test_a_shared_file_lies_below_the_folder(strange, shared):
    assert 'is not a path here' in refusal(strange('title:', f'shared: {shared}\ntitle:'))


@pytest.mark.parametrize('run_file', ['--per-query', '{out}/../../x.txt'])
def test_a_run_is_a_file(strange, run_file):
    assert 'is not a file' in refusal(strange("run: '{a}'", f"run: '{run_file}'"))


@pytest.mark.parametrize(
    'address',
    [
        'a.example/a.txt',
        'file:///etc/passwd',
        'ftp://a.example/a.txt',
        'https:///a.txt',
        'https://a.example/a b',
        'https://a.example:x/a',
        'https://[a/a',
        'https://a.example/é',
        'data:,x',
    ],
)
def test_an_address_is_one_of_the_web(strange, address):
    assert 'is not an address: expected https://' in refusal(
        strange('https://a.example/a.txt', address)
    )


def test_several_addresses_are_joined_or_refused(strange):
    two = "address: ['https://a.example/1', 'https://a.example/2']"
    assert 'expected `unpack: join`' in refusal(strange("address: 'https://a.example/a.txt'", two))
    assert 'no address' in refusal(strange("address: 'https://a.example/a.txt'", 'address: []'))


def test_words_of_a_printed_command_are_quoted(strange, tmp_path, capsys):
    address = "https://a.example/';touch${IFS}X;'"
    path = strange('https://a.example/a.txt', address.replace("'", "''"))
    regression = read_regression(path)
    workspace = Workspace(regression, tmp_path / 'results', str(tmp_path), '1')
    missing = find_missing(regression.resources['a'], workspace.paths)
    assert shlex.split(missing.get)[-1] == address
    assert run(main, [str(path), '--dry-run', '--data', str(tmp_path)]) == 0
    assert address not in capsys.readouterr().out


def test_a_file_name_is_one_word_of_the_evaluation(strange, tmp_path):
    path = strange("run: '{a}'", "run: '{out}/a b; touch X'")
    workspace = Workspace(read_regression(path), tmp_path / 'results', 'data', '1')
    job = ConditionJob(workspace.regression.conditions[0], workspace)
    words = workspace.words(job.evaluation()[0])
    assert f'{tmp_path}/results/strange/a b; touch X' in words


def test_a_build_is_not_made_through_a_link_that_leads_out(strange, tmp_path, commands_here):
    path = strange('{out}/made.txt', '{out}/below/made')
    workspace = Workspace(read_regression(path), tmp_path / 'results', 'data', '1')
    mine = tmp_path / 'mine'
    (mine / 'made').mkdir(parents=True)
    workspace.folder.mkdir(parents=True)
    (workspace.folder / 'below').symlink_to(mine)
    with pytest.raises(InputError, match='remove the link'):
        workspace.build(workspace.regression.builds['made'])
    assert [item.name for item in mine.iterdir()] == ['made']


def test_what_no_build_made_is_not_removed(strange, tmp_path, commands_here):
    workspace = Workspace(read_regression(strange()), tmp_path, 'data', '1')
    made = workspace.folder / 'made.txt'
    made.mkdir(parents=True)
    (made / 'thesis.txt').write_text('mine')
    with pytest.raises(InputError, match=r"made\.txt is in the place of build 'made'"):
        workspace.build(workspace.regression.builds['made'])
    assert (made / 'thesis.txt').read_text() == 'mine'


def test_what_an_interrupted_build_left_is_replaced(strange, tmp_path, monkeypatch):
    workspace = Workspace(read_regression(strange()), tmp_path, 'data', '1')
    build = workspace.regression.builds['made']
    made = workspace.folder / 'made.txt'

    def killed(workspace, command):
        made.write_text('half')
        raise KeyboardInterrupt

    monkeypatch.setattr(Workspace, 'run', killed)
    with pytest.raises(KeyboardInterrupt):
        workspace.build(build)
    monkeypatch.setattr(Workspace, 'run', lambda self, command: made.write_text('made'))
    workspace.build(build)
    assert made.read_text() == 'made'


def test_of_a_build_that_is_a_link_only_the_link_is_removed(strange, tmp_path, monkeypatch):
    workspace = Workspace(read_regression(strange()), tmp_path / 'results', 'data', '1')
    mine = tmp_path / 'mine'
    mine.mkdir()
    (mine / 'thesis.txt').write_text('mine')
    workspace.folder.mkdir(parents=True)
    made = workspace.folder / 'made.txt'
    made.symlink_to(mine)
    write_note(workspace.folder / '.builds' / 'made.json', {})
    monkeypatch.setattr(Workspace, 'run', lambda self, command: made.write_text('made'))
    workspace.build(workspace.regression.builds['made'])
    assert made.read_text() == 'made' and (mine / 'thesis.txt').read_text() == 'mine'


def chained(n_builds):
    """Builds of which each needs all that are before it."""
    lines = []
    for number in range(n_builds):
        needs = ', '.join(f'b{earlier}' for earlier in range(number))
        lines.append(
            f"  b{number}: {{path: '{{out}}/{number}', needs: [{needs}], "
            f'commands: [python -m pyserini_repbert.fusion]}}\n'
        )
    return ''.join(lines)


def test_builds_that_need_each_other_are_walked_once(strange, tmp_path):
    path = strange('\nsources:', f'\n{chained(60)}sources:')
    path.write_text(path.read_text().replace('    run:', '    needs: [b59]\n    run:'))
    workspace = Workspace(read_regression(path), tmp_path / 'results', 'data', '1')
    builds = workspace.builds(['b59'])
    assert [build.name for build in builds] == [f'b{number}' for number in range(60)]
    assert len(workspace.key([], ['b59'])) == 64
    assert workspace.needed(['b59', 'a']) == [workspace.regression.resources['a']]


def test_a_cycle_of_builds_is_one_line(strange):
    rest = 'commands: [python -m pyserini_repbert.fusion]'
    builds = f"  x: {{path: '{{out}}/x', needs: [y], {rest}}}\n"
    builds += f"  y: {{path: '{{out}}/y', needs: [x], {rest}}}\n"
    message = refusal(strange('\nsources:', f'\n{builds}sources:'))
    assert "'y' is neither a resource nor a build" in message


def test_a_grid_is_capped_before_it_is_expanded(strange):
    labels = [f'l{number}' for number in range(100)]
    grid = dict.fromkeys('abcde', labels)
    message = refusal(strange('name: one\n', f'name: one\n    grid: {grid}\n'))
    assert 'the grid has 10,000,000,000 cells: expected 1,000 at most' in message


def test_cells_of_all_grids_count_together(strange):
    grid = f'grid: {{n: {[str(number) for number in range(600)]}}}'
    builds = ''
    for name in 'xy':
        builds += (
            f"  '{name}{{n}}': {{{grid}, path: '{{out}}/{name}{{n}}', "
            'commands: [python -m pyserini_repbert.fusion]}\n'
        )
    assert 'expected 1,000 at most' in refusal(strange('\nsources:', f'\n{builds}sources:'))


def test_texts_of_cells_are_capped(strange):
    long_grid = f'grid: {{n: [{"x" * 501}]}}'
    assert 'a label of more than 500' in refusal(
        strange('name: one\n', f'name: one\n    {long_grid}\n')
    )
    repeated = f'grid: {{n: [{"x" * 400}]}}\n    heavy: "{"{n}" * 30}"'
    assert 'a text of more than 10,000' in refusal(
        strange('name: one\n', f'name: one\n    {repeated}\n')
    )
    many = f'grid: {{n: {[str(number) for number in range(900)]}}}\n    heavy: {"x" * 9000}'
    assert 'split the grid' in refusal(strange('name: one\n', f"name: '{{n}}'\n    {many}\n"))


def test_nothing_beside_the_folder_is_written_or_removed(strange, tmp_path, capsys):
    beside = tmp_path / 'results' / 'data'
    beside.mkdir(parents=True)
    (beside / 'thesis.txt').write_text('mine')
    path = strange('{out}/made.txt', '{out}/../data')
    assert run(main, [str(path), '--work', str(tmp_path / 'results'), '--data', str(tmp_path)]) == 2
    assert (beside / 'thesis.txt').read_text() == 'mine'
    assert capsys.readouterr().err.count('\n') == 1


def test_the_files_here_hold_to_these_rules():
    folder = Path(__file__).parents[2] / 'regressions'
    for path in folder.glob('*.yaml'):
        assert read_regression(path).conditions
