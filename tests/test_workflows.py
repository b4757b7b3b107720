"""The workflows of .github: as GitHub's schema has them; what they run is there."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / '.github' / 'workflows').glob('*.yml'))


def runs(workflow):
    """The commands of all steps."""
    return [
        step['run'] for job in workflow['jobs'].values() for step in job['steps'] if 'run' in step
    ]


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.name)
def test_targets_and_files_exist(path):
    workflow = yaml.safe_load(path.read_text(encoding='utf-8'))
    targets = set(
        re.findall(r'^([\w-]+):', (ROOT / 'Makefile').read_text(encoding='utf-8'), re.MULTILINE)
    )
    for command in runs(workflow):
        for target in re.findall(r'\bmake ([\w-]+)', command):
            assert target in targets, command
        for name in re.findall(r'\b(?:tests|regressions)/[\w./-]+', command):
            assert (ROOT / name).exists(), command


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.name)
def test_githubs_schema(path, capsys):
    from check_jsonschema import main as check

    with pytest.raises(SystemExit) as ended:
        check(['--builtin-schema', 'vendor.github-workflows', str(path)])
    assert ended.value.code == 0, capsys.readouterr().out
