"""The record of the rehearsal: what it claims, and of which commit."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from pyserini_repbert.regression.regression_files import read_regression
from rehearsal.changes import changed_files
from rehearsal.running import Rehearsal

ROOT = Path(__file__).parents[2]
RECORD = json.loads((ROOT / 'regressions' / 'rehearsed.json').read_text(encoding='utf-8'))


def test_what_was_rehearsed_and_is_not_run_is_lost():
    found = Rehearsal(
        rehearsed=['a one'],
        failed={'a two': 'status 2'},
        not_run={'a three': 'never published', 'a four': 'never published'},
        left_out=['a five'],
    )
    assert found.lost(['a one', 'a two', 'a three', 'a five', 'a six']) == ['a three', 'a six']


def test_the_record_claims_conditions_of_the_regressions():
    there = set()
    for path in (ROOT / 'regressions').glob('*.yaml'):
        regression = read_regression(path)
        there |= {f'{regression.name} {condition.name}' for condition in regression.conditions}
    assert RECORD['rehearsed'] and set(RECORD['rehearsed']) <= there


def test_the_record_names_a_commit():
    assert re.fullmatch('[0-9a-f]{40}', RECORD['commit'])
    if not (ROOT / '.git').exists():
        pytest.skip('no history here')
    shallow = subprocess.run(
        ['git', 'rev-parse', '--is-shallow-repository'], cwd=ROOT, capture_output=True, text=True
    )
    if shallow.stdout == 'false\n':
        subprocess.run(
            ['git', 'cat-file', '-e', f'{RECORD["commit"]}^{{commit}}'], cwd=ROOT, check=True
        )


def test_what_has_changed_since_the_commit_of_the_record(tmp_path):
    def git(*arguments):
        identity = ['-c', 'user.name=t', '-c', 'user.email=t@example.org']
        done = subprocess.run(
            ['git', *identity, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    tried = tmp_path / 'regressions' / 'one.yaml'
    record = tried.with_name('rehearsed.json')
    tried.parent.mkdir()
    tried.touch()
    record.touch()
    git('init', '--quiet')
    git('add', '.')
    git('commit', '--quiet', '--message', 'One')
    commit = git('rev-parse', 'HEAD')

    record.write_text('{}')
    assert changed_files(tmp_path, commit) == []
    tried.write_text('name: one\n')
    tried.with_name('two.yaml').touch()
    assert changed_files(tmp_path, commit) == ['regressions/one.yaml', 'regressions/two.yaml']
    assert changed_files(tmp_path, '0' * 40) is None
