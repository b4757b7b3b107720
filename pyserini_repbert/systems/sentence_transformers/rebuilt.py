"""Whether a tokenizer.json is what the named class of transformers builds.

transformers reads only the vocabulary of a tokenizer.json for BERT, RoBERTa and XLM-R. It makes
everything else again, from tokenizer_config.json and the defaults of the class. Where both say the
same, every release of transformers gives the same tokens, and this package's engine reads the file.
If they differ, `Unsupported` says how.

The parts of each class: `models/{bert,roberta,xlm_roberta}/tokenization_*.py` of transformers 5.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.systems.sentence_transformers.folder import (
    Unsupported,
    read_values_if_there,
)

if TYPE_CHECKING:
    from tokenizers import AddedToken, Tokenizer

Settings = Mapping[str, Any]

_SPECIAL_TOKENS = (
    'bos_token',
    'eos_token',
    'unk_token',
    'sep_token',
    'pad_token',
    'cls_token',
    'mask_token',
)
_FLAGS = ('single_word', 'lstrip', 'rstrip', 'normalized', 'special')
# A character that no vocabulary has, and XLM-R's number of it.
_UNKNOWN = '\U0010ffff'
_UNKNOWN_NUMBER = 3
# Keys of tokenizer_config.json that change no token, and those that are read here or by the opener.
_KNOWN_KEYS = frozenset(
    (
        *_SPECIAL_TOKENS,
        'add_bos_token',
        'add_eos_token',
        'add_prefix_space',
        'added_tokens_decoder',
        'additional_special_tokens',
        'backend',
        'chat_template',
        'clean_up_tokenization_spaces',
        'do_basic_tokenize',
        'do_lower_case',
        'errors',
        'extra_special_tokens',
        'from_slow',
        'is_local',
        'local_files_only',
        'max_length',
        'model_input_names',
        'model_max_length',
        'name_or_path',
        'never_split',
        'pad_to_multiple_of',
        'pad_token_type_id',
        'padding_side',
        'processor_class',
        'special_tokens_map_file',
        'split_special_tokens',
        'stride',
        'strip_accents',
        'tokenize_chinese_chars',
        'tokenizer_class',
        'tokenizer_file',
        'trim_offsets',
        'truncation_side',
        'truncation_strategy',
        'unk_id',
        'use_fast',
        'vocab_file',
    )
)


@dataclass(frozen=True)
class TokenizerClass:
    """A class of transformers.

    Attributes
    ----------
    check_parts : raises Unsupported for a normalizer, a pre-tokenizer or a model that this class
        does not build; gets the tokenizer, what tokenizer.json says beside its model, and
        tokenizer_config.json
    specials : its default special tokens, by their keys in tokenizer_config.json
    first, last : the keys of the tokens around a text; None: as in tokenizer.json
    separators : how many of the last token are between the texts of a pair
    second_type : the token type of a pair's second text
    """

    check_parts: Callable[[Tokenizer, Settings, Settings], None]
    specials: Mapping[str, str] = field(default_factory=dict)
    first: str | None = None
    last: str | None = None
    separators: int = 1
    second_type: int = 0


def tokenizer_class(name: str) -> TokenizerClass:
    """The class with this name. Raises Unsupported for one that the engine does not know."""
    kind = _CLASSES.get(name.removesuffix('Fast'))
    if kind is None:
        raise Unsupported(f'its tokenizer is a {name}')
    return kind


def check_as_rebuilt(
    backend: Tokenizer, folder: Path, file: Settings, *, name: str, settings: Settings
) -> None:
    """Check that transformers gives the same tokens as a folder's tokenizer.json.

    Parameters
    ----------
    backend : the tokenizer from tokenizer.json, or from vocab.txt if there is none
    folder : with the files of the tokenizer
    file : the content of tokenizer.json without its model; empty if there is none
    name : of the tokenizer's class
    settings : what tokenizer_config.json says

    Raises Unsupported if it may give others.
    """
    kind = tokenizer_class(name)
    unknown = [key for key in settings if key not in _KNOWN_KEYS]
    if unknown:
        raise Unsupported(f'its tokenizer_config.json has {", ".join(sorted(unknown))}')
    if settings.get('split_special_tokens'):
        raise Unsupported('its tokenizer splits special tokens')
    _check_sides(file)
    specials = _special_tokens(kind, folder, settings)
    kind.check_parts(backend, file, {**settings, **specials})
    _check_added_tokens(backend, file, settings)
    _check_specials(backend, specials)
    _check_form(backend, kind, specials)


def _check_sides(file: Settings) -> None:
    """Texts are cut and padded at their end: transformers takes the sides from tokenizer.json."""
    for key in ('truncation', 'padding'):
        side = (file.get(key) or {}).get('direction', 'Right')
        if side != 'Right':
            raise Unsupported(f'the {key} of its tokenizer.json is {side}')


def _check_bert(backend: Tokenizer, file: Settings, settings: Settings) -> None:
    from tokenizers import models

    if not isinstance(backend.model, models.WordPiece):
        raise Unsupported("its tokenizer is not BERT's")
    model = {
        'unk_token': backend.model.unk_token,
        'continuing_subword_prefix': backend.model.continuing_subword_prefix,
        'max_input_chars_per_word': backend.model.max_input_chars_per_word,
    }
    _check_model(
        model,
        unk_token=settings['unk_token'],
        continuing_subword_prefix='##',
        max_input_chars_per_word=100,
    )
    _check_part('normalizer', backend.normalizer, _bert_normalizer(settings))
    _check_part('pre-tokenizer', backend.pre_tokenizer, {'type': 'BertPreTokenizer'})


def _bert_normalizer(settings: Settings) -> Settings:
    return {
        'type': 'BertNormalizer',
        'clean_text': True,
        'handle_chinese_chars': _flag(settings, 'tokenize_chinese_chars', True),
        'strip_accents': settings.get('strip_accents'),
        'lowercase': _flag(settings, 'do_lower_case', True),
    }


def _check_roberta(backend: Tokenizer, file: Settings, settings: Settings) -> None:
    from tokenizers import models

    if not isinstance(backend.model, models.BPE):
        raise Unsupported("its tokenizer is not RoBERTa's")
    model = {
        'unk_token': backend.model.unk_token,
        'dropout': backend.model.dropout,
        'continuing_subword_prefix': backend.model.continuing_subword_prefix or '',
        'end_of_word_suffix': backend.model.end_of_word_suffix or '',
        'fuse_unk': backend.model.fuse_unk,
        'byte_fallback': backend.model.byte_fallback,
        'ignore_merges': backend.model.ignore_merges,
    }
    _check_model(
        model,
        unk_token=None,
        dropout=None,
        continuing_subword_prefix='',
        end_of_word_suffix='',
        fuse_unk=False,
        byte_fallback=False,
        ignore_merges=False,
    )
    _check_part('normalizer', backend.normalizer, None)
    expected = {
        'type': 'ByteLevel',
        'add_prefix_space': _flag(settings, 'add_prefix_space', False),
        'use_regex': True,
    }
    # Offsets are not used.
    _check_part('pre-tokenizer', backend.pre_tokenizer, expected, ignored='trim_offsets')


def _check_xlm_roberta(backend: Tokenizer, file: Settings, settings: Settings) -> None:
    from tokenizers import models

    if not isinstance(backend.model, models.Unigram):
        raise Unsupported("its tokenizer is not XLM-R's")
    _check_unknown(backend)
    model = {'alpha': backend.model.alpha, 'nbest_size': backend.model.nbest_size}
    _check_model(model, alpha=None, nbest_size=None)
    prepend_scheme = 'never'
    if _flag(settings, 'add_prefix_space', True):
        prepend_scheme = 'always'
    metaspace = {
        'type': 'Metaspace',
        'replacement': '▁',
        'prepend_scheme': prepend_scheme,
        'split': True,
    }
    expected = {'type': 'Sequence', 'pretokenizers': [{'type': 'WhitespaceSplit'}, metaspace]}
    _check_part('pre-tokenizer', backend.pre_tokenizer, expected)
    _check_xlm_normalizer(backend)


def _check_unknown(backend: Tokenizer) -> None:
    """What the vocabulary lacks is its token 3: XLM-R has no tokens of bytes instead."""
    try:
        unknown = [token.id for token in backend.model.tokenize(_UNKNOWN)]
    # tokenizers raises plain Exception for a vocabulary without an unknown token.
    except Exception as error:
        raise Unsupported(f'its tokenizer refuses an unknown character ({error})') from error
    if unknown != [_UNKNOWN_NUMBER]:
        raise Unsupported(f'its tokenizer reads an unknown character as tokens {unknown}')


def _check_xlm_normalizer(backend: Tokenizer) -> None:
    """Only SentencePiece's table of characters; it may be followed by the joining of adjacent
    spaces.

    White space separates words afterwards, so that joining spaces changes nothing.
    """
    steps = _steps(_state(backend.normalizer))
    joins_spaces = {'type': 'Replace', 'pattern': {'Regex': ' {2,}'}, 'content': ' '}
    if steps and steps[-1] == joins_spaces:
        steps = steps[:-1]
    if len(steps) > 1 or any(step.get('type') != 'Precompiled' for step in steps):
        raise Unsupported('its normalizer is another than its class builds')


def _steps(normalizer: Settings | None) -> list[Settings]:
    """The steps of a normalizer, in their order."""
    if normalizer is None:
        return []
    if normalizer.get('type') == 'Sequence':
        return list(normalizer['normalizers'])
    return [normalizer]


def _check_plain(backend: Tokenizer, file: Settings, settings: Settings) -> None:
    """Classes that read tokenizer.json unchanged.

    Releases differ in their treatment of a prefix.
    """
    if 'add_prefix_space' in settings:
        raise Unsupported('its tokenizer_config.json has add_prefix_space')
    if not file:
        raise Unsupported('it has no tokenizer.json')


_BERT_SPECIALS = {
    'unk_token': '[UNK]',
    'sep_token': '[SEP]',
    'pad_token': '[PAD]',
    'cls_token': '[CLS]',
    'mask_token': '[MASK]',
}
_ROBERTA_SPECIALS = {
    'bos_token': '<s>',
    'eos_token': '</s>',
    'sep_token': '</s>',
    'cls_token': '<s>',
    'unk_token': '<unk>',
    'pad_token': '<pad>',
    'mask_token': '<mask>',
}
_BERT = TokenizerClass(
    check_parts=_check_bert,
    specials=_BERT_SPECIALS,
    first='cls_token',
    last='sep_token',
    second_type=1,
)
_ROBERTA = TokenizerClass(
    check_parts=_check_roberta,
    specials=_ROBERTA_SPECIALS,
    first='cls_token',
    last='sep_token',
    separators=2,
)
_XLM_ROBERTA = TokenizerClass(
    check_parts=_check_xlm_roberta,
    specials=_ROBERTA_SPECIALS,
    first='bos_token',
    last='eos_token',
    separators=2,
)
_PLAIN = TokenizerClass(_check_plain)
_CLASSES = {
    'BertTokenizer': _BERT,
    'RobertaTokenizer': _ROBERTA,
    'XLMRobertaTokenizer': _XLM_ROBERTA,
    'PreTrainedTokenizer': _PLAIN,
    'TokenizersBackend': _PLAIN,
}


def _check_model(model: Settings, **expected: Any) -> None:
    for key, value in expected.items():
        if model[key] != value:
            raise Unsupported(f'the model of its tokenizer has {key} {model[key]!r}')


def _check_part(name: str, part: Any, expected: Settings | None, ignored: str = '') -> None:
    state = _state(part)
    if state is not None:
        state = {key: value for key, value in state.items() if key != ignored}
    if state != expected:
        raise Unsupported(f'its {name} is another than its class builds')


def _state(part: Any) -> Settings | None:
    """What a normalizer or a pre-tokenizer says of itself."""
    if part is None:
        return None
    state: Settings = json.loads(part.__getstate__())
    return state


def _flag(settings: Settings, key: str, default: bool) -> bool:
    value = settings.get(key, default)
    if not isinstance(value, bool):
        raise Unsupported(f'its tokenizer_config.json has {key} {value!r}')
    return value


def _content(token: Any) -> str:
    """The text of a token: a string, or an object that has it."""
    if isinstance(token, dict):
        token = token.get('content')
    if not isinstance(token, str):
        raise Unsupported(f'its tokenizer_config.json has a token {token!r}')
    return token


def _special_tokens(kind: TokenizerClass, folder: Path, settings: Settings) -> dict[str, str]:
    """The special tokens that transformers uses, by their keys, and those without a key."""
    given = dict(settings)
    if 'added_tokens_decoder' not in settings:
        given |= read_values_if_there(folder / 'special_tokens_map.json')
        if (folder / 'added_tokens.json').exists():
            raise Unsupported('it has an added_tokens.json')
    specials = dict(kind.specials)
    for key in _SPECIAL_TOKENS:
        if key in given:
            specials[key] = _content(given[key])
    for key in ('extra_special_tokens', 'additional_special_tokens'):
        tokens = given.get(key) or []
        if not isinstance(tokens, list):
            raise Unsupported(f'its tokenizer_config.json has {key} {tokens!r}')
        for number, token in enumerate(tokens):
            specials[f'{key} {number}'] = _content(token)
    return specials


def _check_added_tokens(backend: Tokenizer, file: Settings, settings: Settings) -> None:
    """Tokens beside the vocabulary are the same in both files, with the same numbers."""
    added = backend.get_added_tokens_decoder()
    in_file = file.get('added_tokens', [])
    numbers = [token.get('id') for token in in_file]
    if in_file and sorted(added) != numbers:
        raise Unsupported('the added tokens of its tokenizer.json have other numbers')
    named = settings.get('added_tokens_decoder')
    if named is None:
        return
    if not isinstance(named, dict):
        raise Unsupported(f'its added_tokens_decoder is {named!r}')
    expected = {str(number): _described(token) for number, token in added.items()}
    if {number: _with_defaults(token) for number, token in named.items()} != expected:
        raise Unsupported('its added_tokens_decoder and its tokenizer.json differ')


def _described(token: AddedToken) -> Settings:
    flags = {flag: getattr(token, flag) for flag in _FLAGS}
    return {'content': token.content, **flags}


def _with_defaults(token: Any) -> Settings:
    """A token of added_tokens_decoder, with the flags that it leaves out."""
    if not isinstance(token, dict):
        raise Unsupported(f'its added_tokens_decoder has a token {token!r}')
    described = dict.fromkeys(_FLAGS, False) | token
    if 'normalized' not in token:
        described['normalized'] = not described['special']
    return described


def _check_specials(backend: Tokenizer, specials: Mapping[str, str]) -> None:
    """Each special token is one of the file: transformers would add it."""
    in_file = {
        token.content for token in backend.get_added_tokens_decoder().values() if token.special
    }
    for key, token in specials.items():
        if token not in in_file:
            raise Unsupported(f'its {key} {token!r} is not a special token of its tokenizer.json')


def _check_form(backend: Tokenizer, kind: TokenizerClass, specials: Mapping[str, str]) -> None:
    """The file puts the class's tokens around a text, and between two."""
    if kind.first is None or kind.last is None:
        return
    first = specials[kind.first]
    last = specials[kind.last]
    text = backend.encode('a', add_special_tokens=False).tokens
    if backend.encode('a').tokens != [first, *text, last]:
        raise Unsupported(f'its tokenizer.json does not put {first} and {last} around a text')
    pair = backend.encode('a', 'a')
    between = [last] * kind.separators
    first_types = [0] * (1 + len(text) + kind.separators)
    second_types = [kind.second_type] * (len(text) + 1)
    if pair.tokens != [first, *text, *between, *text, last]:
        raise Unsupported('its tokenizer.json does not make the pairs of its class')
    if pair.type_ids != first_types + second_types:
        raise Unsupported('its tokenizer.json does not give pairs the token types of its class')
