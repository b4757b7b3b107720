"""Folders whose tokenizer.json and tokenizer_config.json differ: transformers makes the tokenizer
anew from both, and our engine runs only what comes out the same.
"""

import json
import random
from dataclasses import replace
from itertools import chain, pairwise

import pytest
from sentence_folders import TEXTS, check_vectors, write_bi_encoder, write_json

from pyserini_repbert.systems.sentence_transformers.folder import Unsupported, read_body
from pyserini_repbert.systems.sentence_transformers.pairs import PairBuilder
from pyserini_repbert.systems.sentence_transformers.tokenizing import open_tokenizer

PAIRS = list(pairwise(TEXTS))
KINDS = ['bert', 'roberta', 'xlm-roberta']
SPECIALS = ['unk_token', 'cls_token', 'sep_token', 'pad_token', 'mask_token', 'bos_token']
NORMALIZERS = [
    None,
    {'type': 'Lowercase'},
    {'type': 'NFKC'},
    {'type': 'Replace', 'pattern': {'String': 'cat'}, 'content': 'dog'},
    {'type': 'Sequence', 'normalizers': []},
    {
        'type': 'Sequence',
        'normalizers': [{'type': 'Replace', 'pattern': {'Regex': ' {2,}'}, 'content': ' '}],
    },
]
METASPACE = {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': 'always', 'split': True}
PRE_TOKENIZERS = [
    None,
    {'type': 'Whitespace'},
    {'type': 'WhitespaceSplit'},
    {'type': 'BertPreTokenizer'},
    METASPACE,
    METASPACE | {'prepend_scheme': 'first'},
    {'type': 'Sequence', 'pretokenizers': [{'type': 'WhitespaceSplit'}, METASPACE]},
    {'type': 'ByteLevel', 'add_prefix_space': True, 'trim_offsets': True, 'use_regex': True},
    {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': False, 'use_regex': True},
]
POST_PROCESSORS = [
    None,
    {'type': 'BertProcessing', 'sep': ['[SEP]', 3], 'cls': ['[CLS]', 2]},
    {'type': 'BertProcessing', 'sep': ['</s>', 2], 'cls': ['<s>', 0]},
    {
        'type': 'RobertaProcessing',
        'sep': ['</s>', 2],
        'cls': ['<s>', 0],
        'trim_offsets': True,
        'add_prefix_space': False,
    },
    {
        'type': 'RobertaProcessing',
        'sep': ['[SEP]', 3],
        'cls': ['[CLS]', 2],
        'trim_offsets': True,
        'add_prefix_space': False,
    },
]
CUT = {'direction': 'Right', 'max_length': 6, 'strategy': 'LongestFirst', 'stride': 0}
PADDED = {
    'strategy': 'BatchLongest',
    'direction': 'Right',
    'pad_to_multiple_of': None,
    'pad_id': 0,
    'pad_type_id': 0,
    'pad_token': '[PAD]',
}
SETTINGS = {
    'add_prefix_space': [True, False],
    'do_lower_case': [True, False],
    'strip_accents': [True, False, None],
    'tokenize_chinese_chars': [True, False],
    'split_special_tokens': [True, False],
    'clean_up_tokenization_spaces': [True, False],
    'extra_special_tokens': [[], ['cat'], ['<new>']],
    'additional_special_tokens': [[], ['the']],
    'added_tokens_decoder': [{}],
    'tokenizer_class': [
        'BertTokenizer',
        'BertTokenizerFast',
        'RobertaTokenizer',
        'XLMRobertaTokenizerFast',
        'PreTrainedTokenizerFast',
        'TokenizersBackend',
    ],
}
MODEL = {
    'unk_token': ['[UNK]', 'cat', 's', None],
    'continuing_subword_prefix': ['##', '', 'c'],
    'max_input_chars_per_word': [3, 100],
    'fuse_unk': [True, False],
    'byte_fallback': [True, False],
    'unk_id': [0, 3],
    'dropout': [None],
}


def _edit_settings(chance, settings):
    kind = chance.choice(['value', 'value', 'special', 'removed'])
    if kind == 'removed':
        settings.pop(chance.choice(sorted(settings)))
    elif kind == 'special':
        tokens = ['[CLS]', '[SEP]', '<s>', '</s>', '<unk>', 'cat', '<new>']
        settings[chance.choice(SPECIALS)] = chance.choice(tokens)
    else:
        key = chance.choice(sorted(SETTINGS))
        settings[key] = chance.choice(SETTINGS[key])


def _edit_file(chance, tokenizer):
    kind = chance.choice(
        ['normalizer', 'pre_tokenizer', 'post_processor', 'model', 'added', 'added_flag']
    )
    if kind == 'normalizer':
        tokenizer['normalizer'] = chance.choice(NORMALIZERS)
    elif kind == 'pre_tokenizer':
        tokenizer['pre_tokenizer'] = chance.choice(PRE_TOKENIZERS)
    elif kind == 'post_processor':
        tokenizer['post_processor'] = chance.choice(POST_PROCESSORS)
    elif kind == 'model':
        key = chance.choice(sorted(MODEL))
        if key in tokenizer['model']:
            tokenizer['model'][key] = chance.choice(MODEL[key])
    elif kind == 'added':
        tokenizer['added_tokens'].pop(chance.randrange(len(tokenizer['added_tokens'])))
    elif tokenizer['added_tokens']:
        token = chance.choice(tokenizer['added_tokens'])
        flag = chance.choice(['lstrip', 'rstrip', 'normalized', 'special', 'single_word'])
        token[flag] = not token[flag]


@pytest.fixture(scope='module')
def folders(tmp_path_factory):
    """A folder of each kind: its path and the content of its two files."""
    written = {}
    for kind in KINDS:
        folder = write_bi_encoder(tmp_path_factory.mktemp(kind) / 'model', kind)
        files = [folder / 'tokenizer.json', folder / 'tokenizer_config.json']
        written[kind] = (folder, [path.read_text('utf-8') for path in files])
    return written


def _our_inputs(folder):
    """Token ids of texts, and token ids and types of pairs."""
    opened = open_tokenizer(read_body(folder, 'model'))
    tokenizer = opened.tokenizer
    single = [[tokenizer.cls, *ids, tokenizer.sep] for ids in tokenizer.ids(TEXTS, 1000)]
    known = replace(opened, second_type=opened.second_type or 0)
    pairs = PairBuilder(known, 1000).build(PAIRS).inputs
    return single, pairs.input_ids.tolist(), pairs.token_type_ids.tolist()


def _their_inputs(folder):
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    pairs = theirs(*map(list, zip(*PAIRS, strict=True)))
    ids = list(chain.from_iterable(pairs['input_ids']))
    types = list(chain.from_iterable(pairs.get('token_type_ids', [[0] * len(ids)])))
    return theirs(TEXTS)['input_ids'], ids, types


def _is_run_by_us(folder):
    """Whether our engine takes a folder; then its tokens are those of transformers."""
    try:
        ours = _our_inputs(folder)
    except Unsupported:
        return False
    assert ours == _their_inputs(folder)
    return True


def _write(folder, texts):
    (folder / 'tokenizer.json').write_text(texts[0], 'utf-8')
    (folder / 'tokenizer_config.json').write_text(texts[1], 'utf-8')


# One in so many edited folders that our engine runs: opening a model takes longer than a tokenizer.
WITH_VECTORS = 4


@pytest.mark.parametrize('kind', KINDS)
def test_edited_folders_are_read_as_transformers_does(kind, folders, one_in):
    """All have the same tokens, and those of a share the same vectors."""
    folder, texts = folders[kind]
    n_ours = 0
    for seed in range(0, 500, one_in(20)):
        chance = random.Random(f'{kind} {seed}')
        tokenizer, settings = [json.loads(text) for text in texts]
        for _ in range(chance.choice([1, 1, 2])):
            if chance.random() < 0.5:
                _edit_settings(chance, settings)
            else:
                _edit_file(chance, tokenizer)
        _write(folder, [json.dumps(tokenizer), json.dumps(settings)])
        if _is_run_by_us(folder):
            n_ours += 1
            # Without a length, sentence-transformers fails for texts longer than the positions.
            if seed % WITH_VECTORS == 0 and 'model_max_length' in settings:
                check_vectors(folder)
    assert n_ours


@pytest.mark.parametrize('kind', KINDS)
def test_folders_as_they_are_saved_are_ours(kind, folders):
    folder, texts = folders[kind]
    _write(folder, texts)
    assert _is_run_by_us(folder)


@pytest.mark.parametrize(
    ('kind', 'file', 'change'),
    [
        ('roberta', 'tokenizer_config.json', {'add_prefix_space': True}),
        ('roberta', 'tokenizer.json', {'normalizer': {'type': 'Lowercase'}}),
        ('xlm-roberta', 'tokenizer.json', {'pre_tokenizer': METASPACE}),
        ('xlm-roberta', 'tokenizer_config.json', {'bos_token': '</s>'}),
        ('bert', 'tokenizer_config.json', {'cls_token': '[MASK]'}),
        ('bert', 'tokenizer_config.json', {'unk_token': 'cat'}),
        ('bert', 'tokenizer_config.json', {'extra_special_tokens': ['cat']}),
        ('bert', 'tokenizer_config.json', {'a_later_setting': 1}),
        ('bert', 'tokenizer.json', {'added_tokens': []}),
        ('bert', 'tokenizer.json', {'truncation': CUT | {'direction': 'Left'}}),
        ('roberta', 'tokenizer.json', {'truncation': CUT | {'direction': 'Left'}}),
        ('bert', 'tokenizer.json', {'padding': PADDED | {'direction': 'Left'}}),
        ('bert', 'tokenizer.json', {'pre_tokenizer': {'type': 'Whitespace'}}),
    ],
)
def test_a_file_that_differs_from_its_class_is_left_to_them(kind, file, change, folders):
    folder, texts = folders[kind]
    _write(folder, texts)
    write_json(folder / file, json.loads((folder / file).read_text('utf-8')) | change)
    with pytest.raises(Unsupported):
        _our_inputs(folder)


def test_an_unknown_token_of_the_map_counts_where_no_tokens_are_listed(folders):
    folder, texts = folders['bert']
    settings = json.loads(texts[1])
    settings.pop('added_tokens_decoder', None)
    _write(folder, [texts[0], json.dumps(settings)])
    special_tokens = folder / 'special_tokens_map.json'
    before = special_tokens.read_text('utf-8') if special_tokens.exists() else None
    try:
        write_json(special_tokens, {'unk_token': {'content': '[MASK]'}})
        with pytest.raises(Unsupported, match='unk_token'):
            _our_inputs(folder)
    finally:
        special_tokens.unlink()
        if before is not None:
            special_tokens.write_text(before, 'utf-8')


def test_texts_cut_and_padded_at_their_end_are_ours(folders):
    folder, texts = folders['bert']
    tokenizer = json.loads(texts[0]) | {'truncation': CUT, 'padding': PADDED}
    _write(folder, [json.dumps(tokenizer), texts[1]])
    assert _our_inputs(folder)


def test_another_subword_prefix_is_left_to_them(folders):
    folder, texts = folders['bert']
    tokenizer = json.loads(texts[0])
    tokenizer['model']['continuing_subword_prefix'] = '@@'
    _write(folder, [json.dumps(tokenizer), texts[1]])
    with pytest.raises(Unsupported, match='continuing_subword_prefix'):
        _our_inputs(folder)


def test_the_class_that_config_json_names_counts(folders):
    folder, texts = folders['bert']
    settings = json.loads(texts[1])
    del settings['tokenizer_class']
    _write(folder, [texts[0], json.dumps(settings)])
    config = (folder / 'config.json').read_text('utf-8')
    try:
        write_json(
            folder / 'config.json', json.loads(config) | {'tokenizer_class': 'T5TokenizerFast'}
        )
        with pytest.raises(Unsupported, match='T5Tokenizer'):
            _our_inputs(folder)
    finally:
        (folder / 'config.json').write_text(config, 'utf-8')


@pytest.mark.parametrize('kind', KINDS)
def test_a_file_that_begins_with_its_model_is_read_too(kind, folders):
    folder, texts = folders[kind]
    tokenizer = json.loads(texts[0])
    first = {'model': tokenizer.pop('model')}
    _write(folder, [json.dumps(first | tokenizer), texts[1]])
    assert _is_run_by_us(folder)


@pytest.mark.parametrize('change', [{'unk_id': 0}, {'unk_id': None}])
def test_another_unknown_token_is_not_ours(change, folders):
    folder, texts = folders['xlm-roberta']
    tokenizer = json.loads(texts[0])
    tokenizer['model'] |= change
    _write(folder, [json.dumps(tokenizer), texts[1]])
    assert not _is_run_by_us(folder)


def test_tokens_of_bytes_are_not_ours(folders):
    folder, texts = folders['xlm-roberta']
    tokenizer = json.loads(texts[0])
    tokenizer['model']['vocab'] += [[f'<0x{byte:02X}>', -9.0] for byte in range(256)]
    tokenizer['model']['byte_fallback'] = True
    _write(folder, [json.dumps(tokenizer), texts[1]])
    assert not _is_run_by_us(folder)
