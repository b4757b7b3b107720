"""Prompts: text files with places such as `{query}`, which anyone can read and replace."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert.errors import InputError
from pyserini_repbert.files import existing_file

_SHIPPED = Path(__file__).parent / 'shipped_prompts'
_MOST_BYTES = 1 << 16  # of a file


@dataclass(frozen=True)
class Prompt:
    """A prompt with places for values.

    Attributes
    ----------
    text : of the file, without white space at its end
    places : the names between braces that get values
    """

    text: str
    places: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Checksum of the text, as records have it."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def fill(self, values: Mapping[str, str]) -> str:
        """The prompt with values in its places. Braces within a value are kept."""
        names = '|'.join(map(re.escape, self.places))
        return re.sub(rf'{{({names})}}', lambda match: values[match[1]], self.text)


def read_prompt(shipped: str, file: str | None, places: Sequence[str]) -> Prompt:
    """The prompt of a file, or the one that the package ships.

    Parameters
    ----------
    shipped : the name of the shipped prompt, in the folder `shipped_prompts`
    file : the user's file; None: the shipped one
    places : names that the prompt has to have between braces

    Raises InputError for a file that does not exist, is too large, is not UTF-8 or lacks a place.
    """
    path = _SHIPPED / f'{shipped}.txt'
    if file is not None:
        path = existing_file(file, 'prompt')
    content = _read(path)
    for place in places:
        if f'{{{place}}}' not in content:
            raise InputError(
                f'prompt {path} has no {{{place}}}: expected '
                f'{", ".join(f"{{{name}}}" for name in places)}'
            )
    return Prompt(content.rstrip(), tuple(places))


def _read(path: Path) -> str:
    if path.stat().st_size > _MOST_BYTES:
        raise InputError(f'prompt {path} has more than {_MOST_BYTES:,} bytes: give a shorter one')
    try:
        return path.read_text(encoding='utf-8-sig')
    except UnicodeDecodeError as error:
        raise InputError(f'prompt {path} is not UTF-8: save it as UTF-8') from error


def cut_words(text: str, most: int) -> str:
    """The first words of a text, with single spaces between them."""
    return ' '.join(text.split(maxsplit=most)[:most])


def is_cut(text: str, most: int) -> bool:
    """Whether a text has more words than `cut_words` keeps."""
    return len(text.split(maxsplit=most)) > most
