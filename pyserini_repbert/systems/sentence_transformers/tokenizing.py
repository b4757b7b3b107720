"""The tokenizer of a folder of sentence-transformers, and the form of its inputs.

An input is `[CLS] text [SEP]`, or `[CLS] query [SEP] text [SEP]`. RoBERTa has two separators in
between, and one token type.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.data.values import parse_json
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.models.tokenizer import (
    SpecialTokens,
    WordPieceTokenizer,
    read_tokenizer,
)
from pyserini_repbert.systems.sentence_transformers.folder import (
    Body,
    Unsupported,
    read_values_if_there,
)
from pyserini_repbert.systems.sentence_transformers.rebuilt import check_as_rebuilt

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# The key of the model in a tokenizer.json, and the keys before it.
_MODEL = b'"model"'
_BEFORE_MODEL = frozenset({'truncation', 'padding', 'added_tokens'})
# Text of a few tokens in any vocabulary.
_PROBE = 'a 1 .'
_BERT_CLASS = 'BertTokenizer'
# The class of each body's tokenizer, where the folder names none.
_USUAL_CLASSES = {'bert': _BERT_CLASS, 'roberta': 'RobertaTokenizer'}


@dataclass(frozen=True)
class FolderTokenizer:
    """A tokenizer, and what its folder says of inputs.

    Attributes
    ----------
    tokenizer : of the body
    max_length : tokens of the longest input, special tokens included; at most what the body reads
    separators : how many are between the two texts of a pair
    second_type : the token type of a pair's second text and its separator; None: it depends on the
        release of transformers
    """

    tokenizer: WordPieceTokenizer
    max_length: int
    separators: int
    second_type: int | None


def open_tokenizer(body: Body, prompt: str = '') -> FolderTokenizer:
    """The tokenizer of a body.

    Parameters
    ----------
    body : the BERT of a folder
    prompt : put before each text

    Raises Unsupported for a tokenizer whose inputs have another form, or which has no file of the
    package tokenizers.
    """
    folder = body.checkpoint.folder
    settings = read_values_if_there(folder / 'tokenizer_config.json')
    for key in ('truncation_side', 'padding_side'):
        if settings.get(key, 'right') != 'right':
            raise Unsupported(f'its {key} is {settings[key]}')
    tokenizer_class = _class_of(body, settings)
    backend = _backend(folder, tokenizer_class)
    file = _read_beside_model(folder / 'tokenizer.json')
    check_as_rebuilt(backend, folder, file, name=tokenizer_class, settings=settings)
    if body.lowercase:
        _put_into_lower_case(backend)
    form = _form_of(backend)
    pad = _name_of(backend, body.config.pad_token_id)
    largest = _largest_number(backend)
    if largest >= body.config.vocab_size:
        raise DamagedFileError(
            f'{folder}: the tokenizer has a wordpiece {largest}, the model has '
            f'{body.config.vocab_size}: take the tokenizer that the model was trained with'
        )
    special = SpecialTokens(form.cls, form.sep, pad)
    return FolderTokenizer(
        WordPieceTokenizer(backend, special, prompt),
        _longest(body, settings),
        form.separators,
        _second_type(body, settings, tokenizer_class, form.second_type),
    )


@dataclass(frozen=True)
class _Form:
    """The form of inputs: special tokens by name, separators in a pair, the second text's type."""

    cls: str
    sep: str
    separators: int
    second_type: int


def _read_beside_model(path: Path) -> Mapping[str, Any]:
    """The content of a tokenizer.json without its model; empty if there is no such file.

    The vocabulary of a model takes longer to read than anything else, and the tokenizer has it. The
    package tokenizers writes the model last. A file in another order is read whole. Raises
    Unsupported for a file that is not a JSON object.
    """
    if not path.is_file():
        return {}
    before, found, _ = path.read_bytes().partition(_MODEL)
    if found:
        with contextlib.suppress(ValueError):
            values = parse_json(before.rstrip().rstrip(b',') + b'}')
            if values.keys() >= _BEFORE_MODEL:
                return dict(values)
    return read_values_if_there(path)


def _largest_number(backend: Tokenizer) -> int:
    """The largest number of a wordpiece."""
    from tokenizers import models

    if isinstance(backend.model, models.Unigram):
        # Its wordpieces are numbered from 0 on. To ask for all of them takes long.
        n_wordpieces = backend.get_vocab_size(with_added_tokens=False)
        return int(max([n_wordpieces - 1, *backend.get_added_tokens_decoder()]))
    return int(max(backend.get_vocab().values()))


def _class_of(body: Body, settings: Mapping[str, Any]) -> str:
    """The tokenizer's class in transformers."""
    config = body.checkpoint.config
    named = settings.get('tokenizer_class') or config.get('tokenizer_class')
    if named is None:
        named = _USUAL_CLASSES.get(config['model_type'], 'XLMRobertaTokenizer')
    return str(named)


def _backend(folder: Path, tokenizer_class: str) -> Tokenizer:
    """The tokenizer of a folder's files."""
    path = folder / 'tokenizer.json'
    if not path.is_file():
        return _from_vocabulary(folder, tokenizer_class.startswith(_BERT_CLASS))
    try:
        backend = read_tokenizer(path)
    except DamagedFileError as error:
        raise Unsupported(str(error)) from error
    backend.no_truncation()
    backend.no_padding()
    return backend


def _from_vocabulary(folder: Path, is_bert: bool) -> Tokenizer:
    """A BERT tokenizer of vocab.txt, with BERT's form of inputs."""
    from tokenizers.processors import BertProcessing

    if not is_bert or not (folder / 'vocab.txt').is_file():
        raise Unsupported('it has no tokenizer.json')
    try:
        tokenizer = WordPieceTokenizer.from_folder(folder)
    except InputError as error:
        raise Unsupported(str(error)) from error
    tokenizer.backend.post_processor = BertProcessing(
        ('[SEP]', tokenizer.sep), ('[CLS]', tokenizer.cls)
    )
    return tokenizer.backend


def _put_into_lower_case(backend: Tokenizer) -> None:
    """Put texts into lower case first, as sentence-transformers does."""
    from tokenizers.normalizers import Lowercase, Sequence

    state = json.loads(backend.to_str())['normalizer']
    parts = (state or {}).get('normalizers', [state])
    for part in parts:
        if part and part.get('type') == 'Lowercase':
            return
    first: list[Any] = [Lowercase()]
    if backend.normalizer is not None:
        first.append(backend.normalizer)
    backend.normalizer = Sequence(first)


def _form_of(backend: Tokenizer) -> _Form:
    """The form of inputs that a tokenizer makes."""
    single = backend.encode(_PROBE)
    pair = backend.encode(_PROBE, _PROBE)
    length = len(backend.encode(_PROBE, add_special_tokens=False).ids)
    if length == 0 or [*single.special_tokens_mask] != [1, *[0] * length, 1]:
        raise Unsupported('its inputs are not a text between two special tokens')
    cls = single.ids[0]
    sep = single.ids[-1]
    text = single.ids[1:-1]
    separators = len(pair.ids) - 2 * length - 2
    if separators not in (1, 2) or pair.ids != [cls, *text, *[sep] * separators, *text, sep]:
        raise Unsupported('its pairs are not two texts between special tokens')
    first_types = pair.type_ids[: 1 + length + separators]
    second_types = pair.type_ids[1 + length + separators :]
    if any(single.type_ids) or any(first_types) or len(set(second_types)) != 1:
        raise Unsupported("its token types are not BERT's")
    return _Form(
        cls=_name_of(backend, cls),
        sep=_name_of(backend, sep),
        separators=separators,
        second_type=second_types[0],
    )


def _name_of(backend: Tokenizer, number: int) -> str:
    """The name of a token. Raises Unsupported if it has none, or another token's."""
    name = backend.id_to_token(number)
    if name is None or backend.token_to_id(name) != number:
        raise Unsupported(f'its special token {number} is named {name}')
    return str(name)


def _longest(body: Body, settings: Mapping[str, Any]) -> int:
    """The tokens of the longest input."""
    longest = body.config.longest_input
    if body.max_length is not None:
        return min(body.max_length, longest)
    given = settings.get('model_max_length')
    if isinstance(given, (int, float)) and given >= 1:
        return int(min(given, longest))
    return longest


def _second_type(
    body: Body, settings: Mapping[str, Any], tokenizer_class: str, second_type: int
) -> int | None:
    """The token type of a pair's second text, as the model gets it."""
    if second_type == 0 or body.config.type_vocab_size == 1:
        return 0
    names = settings.get('model_input_names')
    if isinstance(names, list):
        return second_type if 'token_type_ids' in names else 0
    if tokenizer_class.startswith(('Roberta', 'XLMRoberta')):
        return 0
    if tokenizer_class.startswith(_BERT_CLASS):
        return second_type
    return None
