"""The examples for servers: what the Dockerfile copies and installs, as a script; commands that
name real flags.
"""

import json
from pathlib import Path

import yaml

from pyserini_repbert.commands import search
from pyserini_repbert.serve import command as serve

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / 'examples'


def _instructions(word):
    """What follows a word in the lines of the Dockerfile that begin with it."""
    lines = (EXAMPLES / 'Dockerfile').read_text(encoding='utf-8').splitlines()
    return [line.removeprefix(f'{word} ') for line in lines if line.startswith(f'{word} ')]


def _image_command():
    (command,) = _instructions('CMD')
    return json.loads(command)


def test_the_image_serves_the_demo_to_the_network():
    words = _image_command()
    assert words[:3] == ['python', '-m', 'pyserini_repbert.serve']
    options = serve.make_parser().parse_args(words[3:])
    assert options.index == ['demo']
    assert options.host == '0.0.0.0'
    assert options.offline


def test_the_image_is_built_with_a_search_by_real_flags():
    (line,) = [line for line in _instructions('RUN') if 'pyserini_repbert.search' in line]
    search.make_parser().parse_args(line.split()[3:])


def test_image_and_compose_file_expose_the_port_of_the_service():
    port = serve.make_parser().parse_args(_image_command()[3:]).port
    assert _instructions('EXPOSE') == [str(port)]
    compose = yaml.safe_load((EXAMPLES / 'compose.yaml').read_text(encoding='utf-8'))
    assert compose['services']['search']['ports'] == [f'127.0.0.1:{port}:{port}']


def test_the_unit_starts_the_service_by_real_flags():
    lines = (EXAMPLES / 'pyserini-repbert.service').read_text(encoding='utf-8').splitlines()
    (start,) = [line for line in lines if line.startswith('ExecStart=')]
    serve.make_parser().parse_args(start.partition('=')[2].split()[3:])
