"""Extensions: found by folder and entry point, imported on first use."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from folders import write_files
from ready_services import ready_client

from pyserini_repbert import extension
from pyserini_repbert.collection.layout import collection_form
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import help_texts, main
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import extensions
from pyserini_repbert.index.bundle_form import bundle_form
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
    write_files(
        folder / f'{name}-1.dist-info',
        {
            'METADATA': f'Metadata-Version: 2.1\nName: {name}\nVersion: 1\n',
            'entry_points.txt': f'[{extension.ENTRY_POINTS}]\n{name} = {name}:EXTENSION\n',
        },
    )


def forget_extensions():
    """Look for extensions again, and for the files that they keep in folders of indexes."""
    for known in (extensions, extension.all_entry_points, collection_form, bundle_form):
        known.cache_clear()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Whatever packages are written to this folder are installed."""
    monkeypatch.syspath_prepend(tmp_path)
    forget_extensions()
    yield tmp_path
    forget_extensions()
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


def test_the_extension_of_the_guide(installed, tiny_checkpoint, monkeypatch, capsys):
    """`docs/extending.md` builds it; its files and its entry point are installed."""
    page = (ROOT / 'docs' / 'extending.md').read_text(encoding='utf-8')
    (installed / 'votes').mkdir()
    for name, text in re.findall(r'```py title="(votes/\w+\.py)"\n(.*?)```', page, re.DOTALL):
        (installed / name).write_text(text, encoding='utf-8')
    add_metadata(installed, 'votes')
    write_files(
        installed,
        {
            'docs.jsonl': '{"id": "a", "contents": "tomatoes split"}\n'
            '{"id": "b", "contents": "beans"}\n',
            'votes.tsv': 'a\t7\n',
        },
    )
    monkeypatch.syspath_prepend(ROOT / 'examples')
    monkeypatch.chdir(installed)
    question = ['search', '--sparse', 'own_rankers:SharedWords@docs.jsonl', '--query', 'tomatoes']
    assert main(question) == 0
    assert 'votes' not in capsys.readouterr().out
    assert 'votes.options' in sys.modules
    assert main([*question, '--votes', 'votes.tsv']) == 0
    assert 'a  (1.0000, votes: 7)' in capsys.readouterr().out
    assert (
        run(main, ['search', '--votes', 'v', '--topics', 't', '--index', 'i', '--output', 'o']) == 2
    )
    assert '--votes is for questions' in capsys.readouterr().err
    checkpoint = tiny_checkpoint()
    for text in ('red', 'red', 'blue'):
        assert sync(installed, checkpoint, text=text) == 0
    # As of a collection from before the package was installed.
    shutil.copytree(installed / 'mine', installed / 'older')
    (installed / 'older' / 'generations.txt').unlink()
    pytest.importorskip('starlette.testclient')
    settings = pytest.importorskip('pyserini_repbert.serve.settings')

    served = {
        name: settings.IndexSettings(path=str(installed / name)) for name in ('mine', 'older')
    }
    with ready_client(settings.ServeSettings(indexes=served)) as client:
        assert client.get('/v1/mine/generations').json() == {'noted': 2}
        assert client.get('/v1/older/generations').json() == {'noted': 0}
        assert client.get('/v1/mine/generations?k=1').status_code == 400
        assert client.get('/v1/other/generations').status_code == 404


# A part of two commands, which refuses a word, and follows a sync with a status.
PART = """
from pyserini_repbert.collection.commands.parts import WritePart
from pyserini_repbert.errors import InputError

class Saying(WritePart):
    def add_flags(self, parser):
        parser.add_argument('--say-{name}', default='')

    def check(self, options):
        if options.say_{name} == 'no':
            raise InputError('{name} does not say no')

    def begin(self, options):
        return self.follow

    def follow(self, changes):
        print('{name} follows')
        return {status}

PART = Saying()
"""
WITH_PART = """
from pyserini_repbert.extension import Extension

EXTENSION = Extension(
    name='{name}', package=__name__, options={{'{command}': '{part}'}}, routes={routes}
)
"""
ROUTES = """
from fastapi import APIRouter

router = APIRouter()

@router.get('{path}')
def search() -> str:
    return 'stolen'
"""


def write_part(folder, name, status=0, part='parts:PART', says=None, path='', command='index sync'):
    """A package that does something in `index sync`; it is installed as songs, more or votes."""
    package = folder / name
    package.mkdir()
    routes = ('routes:router',) if path else ()
    declared = WITH_PART.format(name=name, part=part, routes=routes, command=command)
    write_files(
        package,
        {
            '__init__.py': declared,
            'parts.py': PART.format(name=says or name, status=status),
            'routes.py': ROUTES.replace('{path}', path),
        },
    )
    add_metadata(folder, name)


def sync(folder, checkpoint, *words, text='red'):
    (folder / 'docs.jsonl').write_text(f'{{"id": "a", "contents": "{text}"}}\n')
    arguments = ['--corpus', str(folder / 'docs.jsonl'), '--index', str(folder / 'mine')]
    arguments += ['--encoder', str(checkpoint), '--sparse', 'none', '--quiet', *words]
    return run(main, ['index', 'sync', *arguments])


def test_every_part_follows_a_sync_and_the_first_failure_is_its_status(
    installed, tiny_checkpoint, capsys
):
    write_part(installed, 'more', status=4)
    write_part(installed, 'votes', status=5)
    assert sync(installed, tiny_checkpoint()) == 4
    shown = capsys.readouterr().out
    assert 'more follows' in shown
    assert 'votes follows' in shown


def test_a_part_checks_its_flags_before_a_sync(installed, tiny_checkpoint, capsys):
    write_part(installed, 'more')
    assert sync(installed, tiny_checkpoint(), '--say-more', 'no') == 2
    assert 'error: more does not say no' in capsys.readouterr().err
    assert not (installed / 'mine').exists()


def test_two_flags_of_one_name_are_refused(installed, capsys):
    write_part(installed, 'more', says='more')
    write_part(installed, 'votes', says='more')
    assert run(main, ['index', 'sync', '--help']) == 2
    said = capsys.readouterr().err
    assert "the extension 'votes' adds a flag that `index sync` has already" in said
    assert '--say-more' in said


def test_two_commands_of_one_name_are_refused(installed, capsys):
    write_package(installed)
    text = SONGS.replace("name='songs'", "name='more'")
    (installed / 'more').mkdir()
    (installed / 'more' / '__init__.py').write_text(text)
    add_metadata(installed, 'more')
    assert run(main, ['sing']) == 2
    assert "'more' and 'songs' both bring the command 'sing'" in capsys.readouterr().err


@pytest.mark.parametrize('path', ['/v1/{index}/search', '/v1/{name}/search', '/v1/{index}/{what}'])
def test_a_route_that_hides_another_is_refused(installed, path):
    write_part(installed, 'more', path=path)
    settings = pytest.importorskip('pyserini_repbert.serve.settings')
    from pyserini_repbert.serve.app import create_app

    with pytest.raises(InputError, match='more.routes and pyserini_repbert.* both answer GET /v1/'):
        create_app(settings.ServeSettings(indexes={'mine': settings.IndexSettings(path='mine')}))


def test_a_part_of_a_command_that_takes_none_is_refused(installed, capsys):
    write_part(installed, 'more', command='serach')
    assert run(main, ['search', '--help']) == 2
    assert "the extension 'more' has options of 'serach'" in capsys.readouterr().err


def test_a_module_that_is_not_installed_names_the_extension_that_imports_it(installed, capsys):
    write_part(installed, 'more')
    (installed / 'more' / 'parts.py').write_text('import nosuchthing')
    assert run(main, ['index', 'sync', '--help']) == 2
    assert "the extension 'more' imports 'nosuchthing'" in capsys.readouterr().err


@pytest.mark.parametrize('part', ['elsewhere:PART', 'parts:OTHER'])
def test_a_name_that_does_not_exist_names_its_extension(installed, part, capsys):
    write_part(installed, 'more', part=part)
    assert run(main, ['index', 'sync', '--help']) == 2
    assert f"the extension 'more' names more.{part}, which does" in capsys.readouterr().err


@pytest.mark.parametrize('fault', ['import nothere', 'EXTENSIONS = 1', 'from x import *'])
def test_an_extension_that_cannot_be_imported_is_named(installed, fault, capsys):
    write_part(installed, 'more')
    (installed / 'more' / '__init__.py').write_text(fault)
    assert run(main, ['index', '--help']) == 2
    assert "error: the extension 'more' (more:EXTENSION) cannot be" in capsys.readouterr().err
