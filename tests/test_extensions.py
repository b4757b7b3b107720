"""Extensions: found by folder and entry point, imported on first use."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pyserini_repbert import extension
from pyserini_repbert.commands.dispatcher import help_texts, main
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import extensions
from pyserini_repbert.names.corpora import open_corpus

ROOT = Path(__file__).parents[1]

SONGS = """
from pyserini_repbert.extension import Command, Extension

EXTENSION = Extension(
    name='songs',
    package=__name__,
    openers={'corpus': 'files:open_corpus'},
    commands={
        'sing': Command('sing a song', 'singing:main'),
        'index songs': Command('count the songs', 'singing:count', 'singing:add_flags'),
    },
)
"""
SINGING = """
def main(arguments):
    print('la', *arguments)

def add_flags(parser):
    parser.add_argument('--verses', type=int, default=1)

def count(options):
    print(options.verses, 'verses')
    return 3
"""
FILES = """
from pyserini_repbert.data.passages import Corpus, Passage

class Songs(Corpus):
    def _read(self):
        yield 'line 1', Passage('a', 'la la')

def open_corpus(source, fmt, fields, on_error, keep_empty, selection):
    if fmt == 'song':
        return Songs(str(source), on_error, keep_empty)
"""


def write_package(folder, name='songs'):
    """A package of others, with the metadata by which Python finds its entry point."""
    package = folder / name
    package.mkdir(parents=True)
    for module, text in {'__init__': SONGS, 'singing': SINGING, 'files': FILES}.items():
        (package / f'{module}.py').write_text(text)
    add_metadata(folder, name)


def add_metadata(folder, name):
    """What the installation of a package writes beside it."""
    metadata = folder / f'{name}-1.dist-info'
    metadata.mkdir()
    (metadata / 'METADATA').write_text(f'Metadata-Version: 2.1\nName: {name}\nVersion: 1\n')
    (metadata / 'entry_points.txt').write_text(
        f'[{extension.ENTRY_POINTS}]\n{name} = {name}:EXTENSION\n'
    )


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Whatever packages are written to this folder are installed."""
    monkeypatch.syspath_prepend(tmp_path)
    extensions.cache_clear()
    extension.all_entry_points.cache_clear()
    yield tmp_path
    extensions.cache_clear()
    extension.all_entry_points.cache_clear()
    for name in [
        name for name in sys.modules if name.partition('.')[0] in ('songs', 'more', 'votes')
    ]:
        del sys.modules[name]


def test_an_installed_package_brings_commands(installed, capsys):
    write_package(installed)
    assert help_texts()['sing'] == 'sing a song'
    assert 'songs.singing' not in sys.modules
    assert main(['sing', 'la']) == 0
    assert main(['index', 'songs', '--verses', '2']) == 3
    assert capsys.readouterr().out == 'la la\n2 verses\n'


def test_an_installed_package_opens_a_corpus(installed, tmp_path):
    write_package(installed)
    (tmp_path / 'one.txt').write_text('a line')
    corpus = open_corpus(tmp_path / 'one.txt', 'song')
    assert [passage.text for passage in corpus] == ['la la']
    assert [passage.text for passage in open_corpus(tmp_path / 'one.txt')] == ['a line']


def test_two_packages_of_one_name_are_refused(installed):
    write_package(installed)
    write_package(installed, 'more')
    with pytest.raises(InputError, match="two packages define the extension 'songs'"):
        extensions()


def test_finding_extensions_imports_none_of_their_work():
    code = (
        'import sys; from pyserini_repbert.extension import extensions; extensions()\n'
        "print(*sorted(name for name in sys.modules if name.startswith('pyserini_repbert')))"
    )
    shown = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    ours = {f'pyserini_repbert.{name}' for name in ('errors', 'extension')} | {'pyserini_repbert'}
    packages = {found.package for found in extensions().values()}
    parents = {package.rpartition('.')[0] for package in packages}
    assert set(shown.stdout.split()) <= ours | packages | parents


def test_the_extension_of_the_guide(installed, monkeypatch, capsys):
    """`docs/extending.md` builds it; its files and its entry point are installed."""
    page = (ROOT / 'docs' / 'extending.md').read_text(encoding='utf-8')
    (installed / 'votes').mkdir()
    for name, text in re.findall(r'```py title="(votes/\w+\.py)"\n(.*?)```', page, re.DOTALL):
        (installed / name).write_text(text, encoding='utf-8')
    add_metadata(installed, 'votes')
    (installed / 'docs.jsonl').write_text(
        '{"id": "a", "contents": "tomatoes split"}\n{"id": "b", "contents": "beans"}\n'
    )
    (installed / 'votes.tsv').write_text('a\t7\n')
    monkeypatch.syspath_prepend(ROOT / 'examples')
    monkeypatch.chdir(installed)
    question = ['search', '--sparse', 'own_rankers:SharedWords@docs.jsonl', '--query', 'tomatoes']
    assert main(question) == 0
    assert 'votes' not in capsys.readouterr().out
    assert 'votes.options' in sys.modules
    assert main([*question, '--votes', 'votes.tsv']) == 0
    assert 'a  (1.0000, votes: 7)' in capsys.readouterr().out
