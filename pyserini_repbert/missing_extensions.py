"""Which extension has a word that this installation does not know: a flag, a stage, a file.

An extension that is taken away takes its words along. `resources/extension_words.json` still has
the words of all extensions of this release, so an error can say which one to put back. They are
data: `python tests/test_extension_words.py` records them from what each extension brings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path

from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import extensions

RECORDED = Path(__file__).parent / 'resources' / 'extension_words.json'


class WordOf(StrEnum):
    """What an extension brings, whose words are recorded."""

    COMMAND = 'commands'
    FLAG = 'flags'
    SYSTEM = 'systems'
    STAGE_OPTION = 'options of stages'
    INDEX_KIND = 'kinds of indexes'
    SETTING = 'settings of a service'
    ARGUMENT = 'arguments of a search'
    FILE = 'files of an index'


@cache
def _recorded() -> Mapping[str, Mapping[str, str]]:
    """The packages of extensions by word, by what the words are of."""
    words: Mapping[str, Mapping[str, str]] = json.loads(RECORDED.read_text(encoding='utf-8'))
    return words


def how_to_get(brought: WordOf, word: str) -> str:
    """What an error about an unknown word ends with: the extension to put back.

    Parameters
    ----------
    brought : what the word is of
    word : as a user types it, 'search --min-confidence'; of a file, its path in the folder of the
        index

    Returns '' for a word of no extension, and of one that is installed.
    """
    package = _package_of(brought, word)
    installed = {extension.package for extension in extensions().values()}
    if package is None or package in installed:
        return ''
    folder = package.replace('.', '/')
    return (
        f'; it needs the extension in {folder}, which is not installed: put that folder back, or '
        'install pyserini_repbert again'
    )


def _package_of(brought: WordOf, word: str) -> str | None:
    """The package of the extension that has a word; None for a word of no extension."""
    words = _recorded()[brought]
    if brought is not WordOf.FILE:
        return words.get(word)
    for pattern, package in words.items():
        if re.fullmatch(pattern, word):
            return package
    return None


def refuse_missing_command(words: str) -> None:
    """Raise InputError for a command of an extension that is not installed: 'index sync'."""
    advice = how_to_get(WordOf.COMMAND, words)
    if advice:
        raise InputError(f"'{words}' is not a command here{advice}")
