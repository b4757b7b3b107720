"""The way of a query through the floors: a lower floor calls a higher one only as `Ranker` and `Trace` declare."""

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
    floors = {name.strip(): number for number, row in enumerate(reversed(layers)) for name in re.split('[|:]', row)}
    floors['__init__'] = 0  # of the package: its attributes are imported when they are used
    return lambda file: floors[Path(file).relative_to(PACKAGE).parts[0].removesuffix('.py')]


@pytest.fixture
def climbs(floor_of):
    """climbs(function): the calls from a lower floor to a higher one while it runs, also through other packages."""

    def ours(frame):
        while frame is not None and not frame.f_code.co_filename.startswith(f'{PACKAGE}/'):
            frame = frame.f_back
        return frame

    def traced(function):
        found = set()

        def note(frame, event, argument):
            below = ours(frame.f_back)
            if event != 'call' or below is None or ours(frame) is not frame:
                return
            names = frame.f_code.co_name, below.f_code.co_name
            files = frame.f_code.co_filename, below.f_code.co_filename
            if '<module>' not in names and floor_of(files[0]) > floor_of(files[1]):
                found.add((names[1], names[0]))

        sys.setprofile(note)
        try:
            function()
        finally:
            sys.setprofile(None)
        return found

    return traced


def test_only_declared_methods_climb(climbs, tiny_checkpoint, corpus_file, cross_encoder_folder, tmp_path):
    encode_corpus(
        open_corpus(corpus_file(9)), RepBertDocumentEncoder(tiny_checkpoint()), tmp_path / 'b', store_text=True
    )
    asked = ['--index', str(tmp_path / 'b'), '--query', 'red cat', '--rerank', f'{cross_encoder_folder("monobert")}@2']
    declared = {*vars(Ranker), *vars(Trace)}
    others = {
        (caller, called)
        for caller, called in climbs(lambda: search.main([*asked, '--explain']))
        - {
            ('making', '_batches'),  # batches are made when they are taken
            ('making', '<genexpr>'),
            ('<dictcomp>', 'without_texts'),  # notes keep no texts
        }
        if called not in declared
    }
    assert others == set()
