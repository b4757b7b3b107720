"""The words of extensions: an error about a word of one that was taken away names it.

`python tests/test_extension_words.py` records them anew.
"""

import argparse
import json

import pytest

from pyserini_repbert import extension as extension_module, extension_words as words_module
from pyserini_repbert.collection import rankings as rankings_module
from pyserini_repbert.collection.model_options import SPARSE
from pyserini_repbert.collection.rankings import CollectionRanking, check_ranking
from pyserini_repbert.commands import doctor
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.extension import Extension, extensions
from pyserini_repbert.extension_words import (
    RECORDED_WORDS,
    missing_extension,
    missing_extension_of_file,
)
from pyserini_repbert.folder_forms import FolderForm
from pyserini_repbert.models.checkpoints.folder import Checkpoint
from pyserini_repbert.names.rerankers import reranking_system
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Searcher
from pyserini_repbert.search.with_arguments import search_of_arguments
from pyserini_repbert.serve.refusals import describe_problem
from pyserini_repbert.systems.registry import systems


def flags_of(extension: Extension):
    """The flags that an extension adds to commands, behind the command, and its judges."""
    for command, part in extension.options.items():
        parser = argparse.ArgumentParser(add_help=False)
        added = extension.load(part)
        added.add_flags(parser)
        for action in parser._actions:
            for flag in action.option_strings:
                yield f'{command} {flag}'
        # The judge of a `JudgmentsPart`.
        if hasattr(added, 'judge'):
            yield added.judge


def stage_options_of(system):
    """The options of stages that a system knows, and none of the plugin."""
    brought = []
    for extension in extensions().values():
        brought += map(extension.load, extension.systems)
    known = set()
    for other in systems().values():
        if other not in brought:
            known.update(option.key for option in other.stage_options)
    for option in (*system.stage_options, system.wrapping_option):
        if option is not None and option.key not in known:
            yield option.key


def files_of(part):
    """The files and folders that a part keeps in the folder of an index, without what is in these
    folders.
    """
    for file in part.files:
        if '/' not in file.removesuffix('/'):
            yield file.removesuffix('/')


def settings_of(part):
    """The settings and limits of a part of a service; some of an index are flags, too."""
    yield from (*part.service_settings, *part.index_settings, *part.limits)
    for name, (_, default) in part.index_settings.items():
        if getattr(default, 'description', None):
            yield f'serve --{name}'


def words_of(extension: Extension):
    """The words of an extension: of its commands, flags, systems, kinds, settings, arguments."""
    yield from extension.commands
    yield from flags_of(extension)
    for system in map(extension.load, extension.systems):
        yield system.name
        yield from stage_options_of(system)
    for kind in map(extension.load, extension.index_kinds):
        yield kind.what
    for kind in extension.representations:
        yield from (kind.setting, kind.name, f'--rankings {kind.ranking}')
        if kind.rescores:
            yield f'--rankings {CollectionRanking.RESCORED}'
        # 'sparse' is an option of any collection.
        if kind.option != SPARSE:
            flag = f'--{kind.option.replace("_", "-")}'
            yield from (f'index {action} {flag}' for action in ('sync', 'add', 'try'))
    for scan in map(extension.load, extension.scans):
        yield from (f'{command} --{scan.name}' for command in ('search', 'evaluate latency'))
    for part in map(extension.load, extension.in_services):
        yield from settings_of(part)
    for part in map(extension.load, extension.in_pipelines):
        yield from part.fields
    for part in map(extension.load, extension.in_answers):
        yield from part.parameters


def recorded():
    """The words and the files of all extensions of this package, as JSON."""
    words = {}
    files = {}
    for extension in extensions().values():
        # Those of other packages are not of this release.
        if extension.package.startswith('pyserini_repbert.'):
            words |= dict.fromkeys(words_of(extension), extension.package)
            for part in (*extension.in_bundles, *extension.in_collections):
                files |= dict.fromkeys(files_of(extension.load(part)), extension.package)
            for kind in extension.representations:
                array_file = rf'shards/[0-9a-f]+/({"|".join(kind.files)})\.npy'
                files[array_file] = extension.package
    return json.dumps({'words': words, 'files': files}, indent=1, sort_keys=True)


def test_the_words_are_the_recorded_ones():
    assert f'{recorded()}\n' == RECORDED_WORDS.read_text(encoding='utf-8')


def test_a_word_of_an_installed_extension_needs_nothing():
    assert missing_extension('index sync') == ''
    assert missing_extension('colour') == ''


@pytest.fixture
def no_extensions(monkeypatch):
    """An installation of the plugin alone."""
    for module in (extension_module, words_module):
        monkeypatch.setattr(module, 'extensions', dict)


def needs(extension):
    """What an error says that names the extension."""
    name = extension.rpartition('/')[2]
    folder = f'pyserini_repbert/{extension}'
    return f"install the extension '{name}' for it, or put back its folder {folder}"


@pytest.mark.usefixtures('no_extensions')
def test_a_word_of_no_extension_needs_none():
    assert missing_extension('colour') == ''
    assert missing_extension_of_file('notes/off_topic.safetensors') == ''


@pytest.mark.usefixtures('no_extensions')
def test_an_argument_of_python_names_its_extension():
    class Nothing(Searcher):
        def _rank(self, topics, run, k, trace):
            return {}

    with pytest.raises(InputError, match=needs('extensions/confidence')):
        search_of_arguments(Nothing(), {'min_confidence': 0.5})


@pytest.mark.usefixtures('no_extensions')
def test_a_field_of_a_pipeline_names_its_extension():
    # The class as it is without extensions.
    plain = PipelineSpec.__base__
    with pytest.raises(InputError, match=needs('extensions/language_models')):
        plain(index='mine', rewrite='hyde')
    assert plain(index='mine').index == 'mine'


@pytest.mark.usefixtures('no_extensions')
def test_a_parameter_of_a_request_names_its_extension():
    problem = {'type': 'extra_forbidden', 'msg': 'unknown', 'input': 1}
    added = describe_problem('it', {**problem, 'loc': ('body', 'min_confidence')})
    assert needs('extensions/confidence') in added
    assert describe_problem('it', {**problem, 'loc': ('body', 'colour')}).endswith('(1 was given)')


def test_a_ranking_of_a_collection_names_its_extension(no_extensions, monkeypatch):
    monkeypatch.setattr(rankings_module, 'representations', tuple)
    for name in ('multi', 'rescored'):
        with pytest.raises(InputError, match=needs('extensions/token_vectors')):
            check_ranking(name)
    with pytest.raises(InputError, match='expected one of dense, bm25$'):
        check_ranking('colour')


@pytest.mark.usefixtures('no_extensions')
def test_doctor_names_the_extensions_that_are_not_installed():
    (finding,) = doctor._extensions()
    assert finding.status == 'ok'
    assert finding.found.startswith('none; not installed: approximate, ')
    assert 'token_vectors' in finding.found


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
    RECORDED_WORDS.write_text(f'{recorded()}\n', encoding='utf-8')
