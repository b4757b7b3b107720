"""The examples for servers: what the Dockerfile copies and installs, as a script; commands that
name real flags.
"""

import json
from pathlib import Path

import yaml

from pyserini_repbert.commands import search, serve

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / 'examples'


def _instructions():
    """(word, rest) of each line of the Dockerfile."""
    lines = (EXAMPLES / 'Dockerfile').read_text(encoding='utf-8').splitlines()
    return [tuple(line.split(' ', 1)) for line in lines if line and not line.startswith('#')]


def test_the_commands_of_the_image_and_of_the_unit_are_ours():
    instructions = _instructions()
    (command,) = [json.loads(rest) for word, rest in instructions if word == 'CMD']
    assert command[:3] == ['python', '-m', 'pyserini_repbert.serve']
    options = serve.make_parser().parse_args(command[3:])
    assert (options.index, options.host, options.offline) == (['demo'], '0.0.0.0', True)
    (warm,) = [
        rest.split()
        for word, rest in instructions
        if word == 'RUN' and 'pyserini_repbert.search' in rest
    ]
    search.make_parser().parse_args(warm[3:])
    assert ('EXPOSE', str(options.port)) in instructions
    compose = yaml.safe_load((EXAMPLES / 'compose.yaml').read_text(encoding='utf-8'))
    assert compose['services']['search']['ports'] == [f'127.0.0.1:{options.port}:{options.port}']
    unit = (EXAMPLES / 'pyserini-repbert.service').read_text(encoding='utf-8')
    (start,) = [
        line.partition('=')[2].split()
        for line in unit.splitlines()
        if line.startswith('ExecStart=')
    ]
    serve.make_parser().parse_args(start[3:])
