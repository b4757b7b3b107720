"""The examples for servers: what the Dockerfile copies and installs, as a script; commands that name real flags."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pyserini_repbert.commands import search, serve

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / 'examples'
PYTHON = """#!/bin/sh
# stands for the image's Python: notes what is asked of it, installs without a network, and has no index of CPU wheels
printf '%s\\n' "$*" >> "{notes}"
case "$*" in
*--index-url*) exit 1 ;;
*' torch') exit 0 ;;
*'pip install'*) exec {python} -m pip install -q --no-deps --no-index --no-build-isolation --target "{target}" . ;;
*) cd / && PYTHONPATH="{target}" exec {python} "$@" ;;
esac
"""


def _instructions() -> list[tuple[str, str]]:
    """(word, rest) of each line of the Dockerfile."""
    lines = (EXAMPLES / 'Dockerfile').read_text(encoding='utf-8').splitlines()
    return [tuple(line.split(' ', 1)) for line in lines if line and not line.startswith('#')]


@pytest.mark.slow
def test_what_the_image_installs(tmp_path):
    image, target, notes = tmp_path / 'app', tmp_path / 'site', tmp_path / 'notes.txt'
    image.mkdir()
    for word, rest in _instructions():
        if word == 'COPY':
            *sources, _ = rest.split()
            for source in sources:
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, image / source, ignore=shutil.ignore_patterns('__pycache__'))
                else:
                    shutil.copy(ROOT / source, image)
    python = tmp_path / 'python'
    python.write_text(PYTHON.format(notes=notes, target=target, python=shlex.quote(sys.executable)), encoding='utf-8')
    python.chmod(0o755)
    environment = {**os.environ, 'PYTHON': str(python)}
    environment.pop('PYTHONPATH', None)
    (run,) = [rest for word, rest in _instructions() if word == 'RUN' and rest.startswith('sh ')]
    done = subprocess.run(run.split(), cwd=image, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    asked = notes.read_text(encoding='utf-8').splitlines()
    assert [line.split()[-1] for line in asked] == [
        'https://download.pytorch.org/whl/cpu',
        'torch',
        '.[demo,serve]',
        '--help',
    ]
    assert all('-c constraints.txt' in line for line in asked[:3])
    assert (target / 'pyserini_repbert/serve/page/index.html').is_file()


def test_a_step_that_fails_ends_the_installation(tmp_path):
    script = EXAMPLES / 'docker-install.sh'
    done = subprocess.run(['sh', str(script)], cwd=tmp_path, env={**os.environ, 'PYTHON': 'false'}, capture_output=True)
    assert done.returncode != 0


def test_the_commands_of_the_image_and_of_the_unit_are_ours():
    instructions = _instructions()
    (command,) = [json.loads(rest) for word, rest in instructions if word == 'CMD']
    assert command[:3] == ['python', '-m', 'pyserini_repbert.serve']
    options = serve.make_parser().parse_args(command[3:])
    assert (options.index, options.host, options.offline) == (['demo'], '0.0.0.0', True)
    (warm,) = [rest.split() for word, rest in instructions if word == 'RUN' and 'pyserini_repbert.search' in rest]
    search.make_parser().parse_args(warm[3:])
    assert ('EXPOSE', str(options.port)) in instructions
    compose = yaml.safe_load((EXAMPLES / 'compose.yaml').read_text(encoding='utf-8'))
    assert compose['services']['search']['ports'] == [f'127.0.0.1:{options.port}:{options.port}']
    unit = (EXAMPLES / 'pyserini-repbert.service').read_text(encoding='utf-8')
    (start,) = [line.partition('=')[2].split() for line in unit.splitlines() if line.startswith('ExecStart=')]
    serve.make_parser().parse_args(start[3:])
