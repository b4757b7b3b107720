"""Docs and code agree on every name: environment variables, flags, and keys of settings,
regressions, recipes and the catalog.
"""

import argparse
import dataclasses
import re

import yaml
from command_parsers import all_parsers
from doc_runner import ROOT

from pyserini_repbert import catalog
from pyserini_repbert.regression import schema
from pyserini_repbert.tasks import recipe
from pyserini_repbert.train.recipe_files import RECIPES

CODE = sorted((ROOT / 'pyserini_repbert').rglob('*.py'))
DOCS = [
    ROOT / 'README.md',
    ROOT / 'CONTRIBUTING.md',
    ROOT / 'AGENTS.md',
    *sorted((ROOT / 'docs').rglob('*.md')),
]
_VARIABLE = re.compile(r'\bPYSERINI_REPBERT_[A-Z_]+\b')
_READ = re.compile(r"""(?:environ(?:\.get|\.setdefault)?[\[(]|getenv\()\s*['"]([A-Z][A-Z_0-9]+)""")
_FLAG = re.compile(r'(?<![\w-])--[a-z][a-z0-9-]*')
# Of the system and of launchers: nobody sets them for this package.
_OF_OTHERS = {'PATH', 'PROGRAMFILES', 'PYTHONPATH', 'RANK', 'TOKENIZERS_PARALLELISM', 'WORLD_SIZE'}
# Of .ci/run, the Makefile, benchmarks, Pyserini, torchrun and ray
_FLAGS_OF_OTHERS = {
    '--exhaustive',
    # Of benchmarks/hybrid.py
    '--most',
    '--if-changed',
    '--rewrite-outputs',
    '--write',
    '--rounds',
    '--rrf',
    '--nproc-per-node',
    '--address',
    '--head',
    # Of tools/convert_checkpoint.py
    '--words',
}
_KINDS_OF_PACKING = {'gzip', 'join', 'member', 'members', 'candidates', 'paragraphs'}
# Of files outside of this repository
_KEYS_OF_NO_REGRESSION = {'file', 'page'}
# A recipe of a paper is named by what it trains, on what, and by whose settings.
_PAPERS_RECIPE = re.compile(
    r'(?<![\w/-])[a-z]+(?:-[a-z]+)?-(?:msmarco|car|robust04|webtrack)(?:-paper|-code)?(?![\w*-])'
)
# Two checkpoints of Hugging Face, and the first word of two regression files
_NO_RECIPES = {'monobert-large-msmarco', 'duobert-large-msmarco', 'trec-car'}
_OWN_COMMAND = re.compile(r'-m pyserini_repbert\.(\w+)')


def text_of(paths):
    return '\n'.join(path.read_text('utf-8') for path in paths)


def test_environment_variables():
    code = text_of(CODE)
    read = {*_READ.findall(code), *_VARIABLE.findall(code)} - _OF_OTHERS
    table = (ROOT / 'docs' / 'environment.md').read_text('utf-8')
    assert read - set(re.findall(r'`([A-Z][A-Z_0-9]+)`', table)) == set()
    assert set(_VARIABLE.findall(text_of(DOCS))) - read == set()


def known_flags():
    """The flags of each command and its actions, by the command's first word."""
    flags = {}
    for program, parser in all_parsers().items():
        own = flags.setdefault(program.split()[0], set())
        for action in parser._actions:
            own.update(action.option_strings)
    return flags


def commands_in(text):
    """(command, its words) of each line that runs one of our commands."""
    for line in text.replace('\\\n', ' ').splitlines():
        for part in re.split(r'[|;&]|\$\(', line):
            found = _OWN_COMMAND.search(part)
            if found and found[1] != 'NAME':
                yield found[1], part[found.end() :].partition(' #')[0]


def test_flags_of_commands_in_docs_are_in_the_code():
    flags = known_flags()
    wrong = []
    for path in DOCS:
        for name, words in commands_in(path.read_text('utf-8')):
            unknown = set(_FLAG.findall(words)) - flags.get(name, set())
            wrong += [f'{path.name}: {name} {flag}' for flag in sorted(unknown)]
    assert wrong == []


def test_keys_of_settings_are_in_docs():
    """Those of a service, of an index in it, and of its limits."""
    from pyserini_repbert.serve.settings import IndexSettings, Limits, ServeSettings

    docs = text_of(DOCS)
    for settings in (ServeSettings, IndexSettings, Limits):
        missing = {name for name in settings.model_fields if not re.search(rf'\b{name}\b', docs)}
        assert missing == set(), settings.__name__


def test_keys_of_a_service_in_docs_are_in_the_code():
    from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

    n_keys = 0
    for path in DOCS:
        for block in re.findall(r'```yaml[^\n]*\n(.*?)```', path.read_text('utf-8'), re.DOTALL):
            values = yaml.safe_load(block)
            if not isinstance(values, dict) or 'indexes' not in values:
                continue
            assert values.keys() <= ServeSettings.model_fields.keys() | {'server'}, path.name
            for index in values['indexes'].values():
                n_keys += len(index)
                assert index.keys() <= IndexSettings.model_fields.keys(), path.name
    assert n_keys > 5


def test_flags_of_the_code_are_in_docs():
    named = set(_FLAG.findall(text_of(DOCS)))
    for program, parser in all_parsers().items():
        for action in parser._actions:
            is_hidden = action.help == argparse.SUPPRESS
            if action.option_strings and not is_hidden:
                assert named & set(action.option_strings), f'{program} {action.option_strings}'


def test_flags_in_prose_are_in_the_code():
    known = set().union(*known_flags().values())
    unknown = set()
    for path in DOCS:
        prose = re.sub(r'```.*?```', '', path.read_text('utf-8'), flags=re.DOTALL)
        unknown |= set(_FLAG.findall(prose)) - known
    assert unknown == _FLAGS_OF_OTHERS


def keys_in_tables(page):
    """The first words of what stands as code in the columns of keys of a page's tables."""
    keys = set()
    column = None
    for line in page.read_text('utf-8').splitlines():
        cells = [cell.strip() for cell in line.split('|')[1:-1]]
        if not cells:
            column = None
        elif column is None:
            column = {'key': 0, 'of': 1}.get(cells[0], -1)
        elif column >= 0:
            keys.update(re.findall(r'`([a-z]\w*)', cells[column]))
    return keys


def test_keys_of_regressions():
    classes = {schema.RegressionFile, *schema.FileEntry.__subclasses__()}
    keys = set().union(*(kind.model_fields for kind in classes))
    named = keys_in_tables(ROOT / 'docs' / 'formats' / 'regressions.md')
    assert named - keys == _KINDS_OF_PACKING
    assert keys - named == set()
    written = set()
    for path in (ROOT / 'regressions').glob('*.yaml'):
        written |= keys_of(yaml.safe_load(path.read_text('utf-8')), depth=6)
    assert keys - written - _KEYS_OF_NO_REGRESSION == set()


def test_keys_of_recipes():
    parts = (recipe.Source, recipe.Validation, recipe.Teacher, recipe.Adapter, recipe.Training)
    keys = {field.name for kind in (*parts, recipe.Recipe) for field in dataclasses.fields(kind)}
    named = keys_in_tables(ROOT / 'docs' / 'formats' / 'recipes.md')
    # Variables and another recipe's values are put in before, and the text is of the whole file.
    assert named - keys == {'variables', 'extends', 'changes'}
    assert keys - named == {'text'}


def test_keys_of_the_catalog():
    code = text_of(CODE)
    entries = []
    for kind in catalog.KINDS:
        entries += [entry.values for entry in catalog.entries(kind).values()]
    keys = set().union(*entries)
    for values in entries:
        for part in ('hub', 'download', 'package', 'build'):
            keys |= keys_of(values.get(part), depth=1)
    assert {key for key in keys if f"'{key}'" not in code} == set()
    read = set(re.findall(r"\.values(?:\.get\(|\[)'(\w+)'", code))
    assert len(read) > 15
    assert read - keys == set()


def keys_of(value, depth):
    """The keys of a mapping, of the mappings in it, and so on."""
    if depth == 0:
        return set()
    keys = set(value) if isinstance(value, dict) else set()
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        keys |= keys_of(part, depth - 1)
    return keys


def test_recipes_of_the_papers():
    pages = [*DOCS, *sorted((ROOT / 'regressions').rglob('*.yaml'))]
    named = set(_PAPERS_RECIPE.findall(text_of(pages))) - _NO_RECIPES
    assert len(named) > 15
    assert named - {path.stem for path in RECIPES.glob('*.yaml')} == set()
