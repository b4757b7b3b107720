"""Words of this release's extensions, for the error if the extension that knows a word is missing.

A removed extension takes its own words along, so all of them are recorded beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import extensions

# `python tests/test_extension_words.py` records them from what each extension adds.
RECORDED_WORDS = Path(__file__).parent / 'resources' / 'extension_words.json'


def missing_extension(word: str) -> str:
    """What an error about a word ends with, where an extension of this release knows it and is not
    installed; '' for any other word.

    Parameters
    ----------
    word : as a user types it: a command, 'index history'; a flag, 'search --min-confidence'; a
        setting, a stage, an option of stages, an argument of a search; or what a kind of index is
    """
    return _advice(_recorded_words()['words'].get(word))


def missing_extension_of_file(path: str) -> str:
    """As `missing_extension`, of a file or folder by its path in the folder of an index."""
    for pattern, package in _recorded_words()['files'].items():
        if re.fullmatch(pattern, path):
            return _advice(package)
    return ''


def missing_extensions() -> list[str]:
    """The names of this release's extensions that are not installed."""
    installed = {extension.package for extension in extensions().values()}
    packages = set(_recorded_words()['words'].values()) - installed
    return sorted(package.rpartition('.')[2] for package in packages)


def refuse_missing_command(words: str) -> None:
    """Raise InputError for a command of an extension that is not installed: 'index sync'."""
    advice = missing_extension(words)
    if advice:
        raise InputError(f"'{words}' is not a command here{advice}")


@cache
def _recorded_words() -> Mapping[str, Mapping[str, str]]:
    """The packages of this release's extensions, by their words and by patterns of their files."""
    words: Mapping[str, Mapping[str, str]] = json.loads(RECORDED_WORDS.read_text(encoding='utf-8'))
    return words


def _advice(package: str | None) -> str:
    """To install an extension; '' for one that is."""
    installed = {extension.package for extension in extensions().values()}
    if package is None or package in installed:
        return ''
    name = package.rpartition('.')[2]
    folder = package.replace('.', '/')
    return f"; install the extension '{name}' for it, or put back its folder {folder}"
