"""Checkpoints with the same weights and another tokenizer: its files are read in another way."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.checksums import CHECKSUMS
from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.files import atomic_folder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint

_READ = ('normalizer', 'pre_tokenizer', 'model', 'added_tokens')  # the parts that shape token ids
_FILES = ('config.json', 'tokenizer.json', 'vocab.txt', 'tokenizer_config.json', CHECKSUMS)


class SameTokenizerError(PyseriniRepbertError):
    """The other reading gives the same tokenizer."""


def other_case(checkpoint: Checkpoint) -> Tokenizer:
    """A tokenizer that lowercases if the checkpoint's own does not, and the other way round; accents as before."""
    normalizer = _normalizer(checkpoint)
    accents = _strips_accents(normalizer)
    return _normalized(checkpoint, normalizer | {'lowercase': not normalizer['lowercase'], 'strip_accents': accents})


def other_accents(checkpoint: Checkpoint) -> Tokenizer:
    """A tokenizer that strips accents if the checkpoint's own does not, and the other way round."""
    normalizer = _normalizer(checkpoint)
    return _normalized(checkpoint, normalizer | {'strip_accents': not _strips_accents(normalizer)})


def from_vocabulary(checkpoint: Checkpoint) -> Tokenizer:
    """The tokenizer by vocab.txt, for a checkpoint that is otherwise read by tokenizer.json.

    Raises InputError for a checkpoint that lacks one of the two files.
    """
    from pyserini_repbert.models.tokenizer import WordPieceTokenizer

    folder = checkpoint.tokenizer_folder
    if not ((folder / 'tokenizer.json').is_file() and (folder / 'vocab.txt').is_file()):
        raise InputError(f"checkpoint '{checkpoint.name}' has not both tokenizer.json and vocab.txt")
    settings = folder / 'tokenizer_config.json'
    options = json.loads(settings.read_text(encoding='utf-8')) if settings.is_file() else {}
    return WordPieceTokenizer.from_vocabulary(folder / 'vocab.txt', options.get('do_lower_case', True)).backend


def of_transformers(checkpoint: Checkpoint) -> Tokenizer:
    """The tokenizer that transformers' AutoTokenizer reads from the folder. Raises InputError if it cannot."""
    from transformers import AutoTokenizer

    from pyserini_repbert.models.tokenizer import WordPieceTokenizer

    folder = checkpoint.tokenizer_folder
    try:
        return WordPieceTokenizer(
            AutoTokenizer.from_pretrained(str(folder), local_files_only=True).backend_tokenizer
        ).backend
    except (OSError, ValueError, AttributeError, KeyError) as error:
        raise InputError(f'transformers cannot read the tokenizer in {folder}: {error}') from error


READINGS: dict[str, Callable[[Checkpoint], Any]] = {
    'other case': other_case,
    'other accents': other_accents,
    'vocab.txt': from_vocabulary,
    'transformers': of_transformers,
}


def retokenized(checkpoint: Checkpoint, reading: str, folder: Path) -> None:
    """Make a checkpoint folder with links to the checkpoint's files and the tokenizer of a reading.

    Parameters
    ----------
    reading : a name of `READINGS`
    folder : to make; one that exists is left as it is

    Raises
    ------
    SameTokenizerError
        where the reading changes nothing
    InputError
        where the tokenizer cannot be read that way
    """
    other = READINGS[reading](checkpoint)
    if _parts(other) == _parts(checkpoint.tokenizer().backend):
        raise SameTokenizerError(f"'{checkpoint.name}' has the same tokenizer by it")
    if folder.exists():
        return
    with atomic_folder(folder) as made:
        for path in checkpoint.folder.iterdir():
            if path.is_file() and path.name not in _FILES:
                _link(path.resolve(), made / path.name)
        (made / 'config.json').write_text(json.dumps(checkpoint.config), encoding='utf-8')
        other.save(str(made / 'tokenizer.json'))


def _parts(tokenizer: Tokenizer) -> dict[str, Any]:
    whole = json.loads(tokenizer.to_str())
    return {name: whole[name] for name in _READ}


def _normalizer(checkpoint: Checkpoint) -> dict[str, Any]:
    found = _parts(checkpoint.tokenizer().backend)['normalizer'] or {'type': 'none'}
    if found['type'] != 'BertNormalizer':
        raise InputError(f"the normalizer of '{checkpoint.name}' is {found['type']}, BertNormalizer was expected")
    return dict(found)


def _strips_accents(normalizer: dict[str, Any]) -> bool:
    """Whether accents are stripped: `strip_accents`, or `lowercase` if that is null (BertNormalizer's rule)."""
    said = normalizer['strip_accents']
    return bool(normalizer['lowercase'] if said is None else said)


def _normalized(checkpoint: Checkpoint, normalizer: dict[str, Any]) -> Tokenizer:
    from tokenizers import normalizers

    made = checkpoint.tokenizer().backend
    made.normalizer = normalizers.BertNormalizer(**{key: value for key, value in normalizer.items() if key != 'type'})
    return made


def _link(source: Path, target: Path) -> None:
    with contextlib.suppress(OSError):
        target.symlink_to(source)
        return
    shutil.copyfile(source, target)  # a file system without links
