"""The words of extensions: an error about a word of one that was taken away names it.

`python tests/test_extension_words.py` records them anew.
"""

import argparse
import json
from itertools import chain

import pytest

from pyserini_repbert import missing_extensions
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.extension import Extension, extensions
from pyserini_repbert.folder_forms import FolderForm
from pyserini_repbert.missing_extensions import RECORDED, WordOf, how_to_get
from pyserini_repbert.models.checkpoints.folder import Checkpoint
from pyserini_repbert.names.rerankers import reranking_system
from pyserini_repbert.ranking import Searcher
from pyserini_repbert.search.with_arguments import search_of_arguments
from pyserini_repbert.serve.refusals import describe_problem


def flags_of(extension: Extension):
    """The flags that an extension adds to commands, behind the command."""
    for command, part in extension.options.items():
        parser = argparse.ArgumentParser(add_help=False)
        extension.load(part).add_flags(parser)
        for action in parser._actions:
            for flag in action.option_strings:
                yield f'{command} {flag}'


def stage_options_of(system):
    """The options of stages that a system knows."""
    for option in (*system.stage_options, system.wrapping_option):
        if option is not None:
            yield option.key


def settings_of(part):
    """What a part of a service adds to its settings file."""
    return [*part.index_settings, *part.limits]


def files_of(part):
    """The files and folders that a part keeps in the folder of an index, without what is in these
    folders.
    """
    for file in part.files:
        if '/' not in file.removesuffix('/'):
            yield file.removesuffix('/')


def words_of(extension: Extension):
    """What an extension brings, and the words for it."""
    load = extension.load
    systems = [load(name) for name in extension.systems]
    services = [load(name) for name in extension.in_services]
    answers = [load(name) for name in extension.in_answers]
    indexes = [load(name) for name in (*extension.in_bundles, *extension.in_collections)]
    return {
        WordOf.COMMAND: extension.commands,
        WordOf.FLAG: flags_of(extension),
        WordOf.SYSTEM: [system.name for system in systems],
        WordOf.STAGE_OPTION: chain.from_iterable(map(stage_options_of, systems)),
        WordOf.INDEX_KIND: [load(name).what for name in extension.index_kinds],
        WordOf.SETTING: chain.from_iterable(map(settings_of, services)),
        WordOf.ARGUMENT: chain.from_iterable(part.parameters for part in answers),
        WordOf.FILE: chain.from_iterable(map(files_of, indexes)),
    }


def recorded():
    """The words of all extensions of this package, as JSON."""
    packages = {brought: {} for brought in WordOf}
    for extension in extensions().values():
        # Packages of others are none of this release.
        if extension.package.startswith('pyserini_repbert.'):
            for brought, words in words_of(extension).items():
                packages[brought] |= dict.fromkeys(words, extension.package)
    return json.dumps(packages, indent=1, sort_keys=True)


def test_the_words_are_the_recorded_ones():
    assert f'{recorded()}\n' == RECORDED.read_text(encoding='utf-8')


def test_a_word_of_an_installed_extension_needs_nothing():
    assert how_to_get(WordOf.COMMAND, 'index sync') == ''
    assert how_to_get(WordOf.SETTING, 'colour') == ''


@pytest.fixture
def no_extensions(monkeypatch):
    """An installation of the plugin alone."""
    monkeypatch.setattr(missing_extensions, 'extensions', dict)


def needs(extension):
    """What an error says that names the extension."""
    return f'it needs the extension in pyserini_repbert/{extension}, which is not installed'


@pytest.mark.usefixtures('no_extensions')
def test_a_word_of_no_extension_needs_none():
    assert how_to_get(WordOf.SETTING, 'colour') == ''
    assert how_to_get(WordOf.FILE, 'notes/off_topic.safetensors') == ''


@pytest.mark.usefixtures('no_extensions')
def test_an_argument_of_python_names_its_extension():
    class Nothing(Searcher):
        def _rank(self, topics, run, k, trace):
            return {}

    with pytest.raises(InputError, match=needs('extensions/confidence')):
        search_of_arguments(Nothing(), {'min_confidence': 0.5})


@pytest.mark.usefixtures('no_extensions')
def test_a_parameter_of_a_request_names_its_extension():
    problem = {'type': 'extra_forbidden', 'msg': 'unknown', 'input': 1}
    added = describe_problem('it', {**problem, 'loc': ('body', 'min_confidence')})
    assert needs('extensions/confidence') in added
    assert describe_problem('it', {**problem, 'loc': ('body', 'colour')}).endswith('(1 was given)')


@pytest.mark.usefixtures('no_extensions')
def test_a_file_of_an_index_names_its_extension(tmp_path):
    (tmp_path / '.neighbours.lock').touch()
    with pytest.raises(InputError, match=needs('extensions/neighbours')):
        FolderForm('index', ('manifest.json',)).check(tmp_path)


@pytest.mark.usefixtures('no_extensions')
def test_a_checkpoint_of_a_system_names_its_extension(tmp_path):
    checkpoint = Checkpoint('mine', tmp_path, {'ranking': {'system': 'gar'}})
    with pytest.raises(MismatchError, match=needs('extensions/neighbours')):
        reranking_system(checkpoint)


if __name__ == '__main__':
    RECORDED.write_text(f'{recorded()}\n', encoding='utf-8')
