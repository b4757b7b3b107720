"""The files in examples/: shells that parse, a Job with the keys of its kind, and hosts that
share the shards.
"""

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from folders import HANGS

EXAMPLES = Path(__file__).parent.parent / 'examples'


@pytest.mark.parametrize('name', ['encode.sbatch', 'encode-ssh.sh'])
def test_scripts_parse(name):
    assert subprocess.run(['bash', '-n', EXAMPLES / name], capture_output=True).stderr == b''


def called(tmp_path, script, **environment):
    """What a script calls `python` and `ssh` with, both of which do nothing here."""
    for name in ('python', 'ssh'):
        program = tmp_path / name
        program.write_text(f'#!/bin/bash\necho "{name} $*" >> "{tmp_path}/calls"\n')
        program.chmod(0o755)
    path = f'{tmp_path}:{os.environ["PATH"]}'
    subprocess.run(
        script, check=True, env={**os.environ, 'PATH': path, **environment}, timeout=HANGS
    )
    file = tmp_path / 'calls'
    return file.read_text().splitlines() if file.exists() else []


def shards(calls):
    words = [call.split() for call in calls if '--shard' in call]
    return [own[own.index('--shard') + 1] for own in words]


def test_hosts_share_the_shards(tmp_path):
    script = [
        'bash',
        str(EXAMPLES / 'encode-ssh.sh'),
        'CORPUS',
        'ENCODER',
        'FOLDER',
        '120',
        'one',
        'two',
        'three',
    ]
    calls = called(tmp_path, script)
    assert sorted(shards(calls)) == sorted(f'{number}/120' for number in range(120))
    assert {call.split()[2] for call in calls[:-1]} == {'one', 'two', 'three'}
    assert calls[-1] == 'python -m pyserini_repbert.encode --output FOLDER --finish'


def test_an_array_and_a_job_cover_all_shards(tmp_path):
    job = yaml.safe_load((EXAMPLES / 'encode-job.yaml').read_text())
    assert (job['apiVersion'], job['kind'], job['spec']['completionMode']) == (
        'batch/v1',
        'Job',
        'Indexed',
    )
    pod = job['spec']['template']['spec']
    assert pod['restartPolicy'] == 'Never'  # backoffLimitPerIndex asks for it
    [container] = pod['containers']
    mounted = {mount['name'] for mount in container['volumeMounts']}
    assert mounted == {volume['name'] for volume in pod['volumes']}
    parts = job['spec']['completions']
    settings = {'CORPUS': 'C', 'ENCODER': 'E', 'OUTPUT': 'FOLDER', 'SLURM_CPUS_PER_TASK': '8'}
    for index in (0, parts - 1):
        array = {'SLURM_ARRAY_TASK_ID': str(index), 'SLURM_ARRAY_TASK_COUNT': str(parts)}
        tasks = called(tmp_path, ['bash', str(EXAMPLES / 'encode.sbatch')], **array, **settings)
        assert shards(tasks)[-1] == f'{index}/{parts}'
        pods = called(
            tmp_path, [*container['command'], *container['args']], JOB_COMPLETION_INDEX=str(index)
        )
        assert shards(pods)[-1] == f'{index}/{parts}'
