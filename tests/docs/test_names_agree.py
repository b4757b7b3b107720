"""Docs and code agree on every name: environment variables, flags, and keys of settings."""

import argparse
import re

import yaml
from command_parsers import all_parsers
from doc_runner import ROOT

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
_OF_OTHERS = {'PATH', 'PROGRAMFILES', 'PYTHONPATH', 'RANK', 'TOKENIZERS_PARALLELISM'}
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
