"""The way of a query through the floors: a lower floor calls a higher one only as `Ranker` and
`Trace` declare.
"""

import configparser
import re
import sys
from pathlib import Path

import pytest

import pyserini_repbert
from pyserini_repbert.commands import search
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Ranker
from pyserini_repbert.trace import Trace

PACKAGE = Path(pyserini_repbert.__file__).parent


@pytest.fixture
def floor_of():
    """The number of the floor, from the ground, that a file of the package stands on."""
    contracts = configparser.ConfigParser()
    contracts.read(PACKAGE.parent / '.importlinter')
    layers = contracts['importlinter:contract:floors']['layers'].split('\n')
    floors = {
        name.strip(): number
        for number, row in enumerate(reversed(layers))
        for name in re.split('[|:]', row)
    }
    floors['__init__'] = 0  # of the package: its attributes are imported when they are used
    return lambda file: floors[Path(file).relative_to(PACKAGE).parts[0].removesuffix('.py')]


def room_of(file):
    parts = Path(file).relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else 'ground'


@pytest.fixture
def way():
    """way(function): the calls from one room to another while it runs, also through other
    packages.
    """

    def ours(frame):
        while frame is not None and not frame.f_code.co_filename.startswith(f'{PACKAGE}/'):
            frame = frame.f_back
        return frame

    def traced(function):
        calls = []

        def note(frame, event, argument):
            below = ours(frame.f_back)
            if event != 'call' or below is None or ours(frame) is not frame:
                return
            names = below.f_code.co_name, frame.f_code.co_name
            files = below.f_code.co_filename, frame.f_code.co_filename
            if '<module>' not in names and room_of(files[0]) != room_of(files[1]):
                calls.append((*files, *names))

        sys.setprofile(note)
        try:
            function()
        finally:
            sys.setprofile(None)
        return calls

    return traced


@pytest.fixture
def climbs(way, floor_of):
    """climbs(function): (caller, called) of the calls from a lower floor to a higher one."""
    return lambda function: [
        (caller, called)
        for below, above, caller, called in way(function)
        if floor_of(above) > floor_of(below)
    ]


@pytest.fixture
def index(corpus_file, tiny_checkpoint, tmp_path):
    encode_corpus(
        open_corpus(corpus_file(9)),
        RepBertDocumentEncoder(tiny_checkpoint()),
        tmp_path / 'b',
        store_text=True,
    )
    return str(tmp_path / 'b')


def test_a_dense_query_takes_eight_rooms_and_four_climbs(way, climbs, index):
    asked = ['--index', index, '--query', 'red cat']
    rooms = {room_of(file) for call in way(lambda: search.main(asked)) for file in call[:2]} - {
        'ground'
    }
    assert rooms == {'commands', 'data', 'encode', 'index', 'models', 'names', 'pipeline', 'search'}
    of_contract = [
        ('rank', '_rank'),
        ('run_pipeline', 'begins'),
        ('rank', '_rank'),
        ('run_pipeline', 'advance'),
    ]
    assert climbs(lambda: search.main(asked)) == of_contract


def test_only_declared_methods_climb(climbs, index, cross_encoder_folder):
    asked = [
        '--index',
        index,
        '--query',
        'red cat',
        '--rerank',
        f'{cross_encoder_folder("monobert")}@2',
    ]
    declared = {*vars(Ranker), *vars(Trace)}
    others = {
        (caller, called)
        for caller, called in set(climbs(lambda: search.main([*asked, '--explain'])))
        - {
            ('making', '_batches'),  # batches are made when they are taken
            ('making', '<genexpr>'),
            ('<dictcomp>', 'without_texts'),  # notes keep no texts
        }
        if called not in declared
    }
    assert others == set()
