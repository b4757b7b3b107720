"""Folders of sentence-transformers with tiny random weights, written file by file, and that
package's vectors of them.
"""

import json
import string

import numpy as np
import torch

from pyserini_repbert.systems.encoders import document_encoder, query_encoder

OURS = 'pyserini_repbert'
THEIRS = 'sentence-transformers'
WORDS = '[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sat on red sea old ##s ##ing . , ?'.split()
TEXTS = [
    'The cat sat on the mat.',
    'dog',
    '',
    'an old red dog sat on the old red sea, sitting ' * 5,
    'Sün ☃ cats,  dogs?\n',
    'the [SEP] cat <pad>[PAD] </s> dog [MASK]<mask> sat',
]
_SMALL = {
    'hidden_size': 16,
    'num_attention_heads': 2,
    'num_hidden_layers': 2,
    'intermediate_size': 32,
    'initializer_range': 0.3,
}
_PIECES = ['▁', '▁the', '▁cat', '▁dog', '▁sat', 's', 'ing', *string.ascii_letters, *' .,?']
CLASSES = {'bert': 'Bert', 'roberta': 'Roberta', 'xlm-roberta': 'XLMRoberta'}


def write_body(folder, kind, head='Model', seed=0, dtype=torch.float32, **config):
    """Write the weights, config.json and the tokenizer of a BERT, RoBERTa or XLM-R."""
    import transformers

    tokenizer = _tokenizer(kind)
    tokenizer.model_max_length = 44
    values = {**_SMALL, 'vocab_size': len(tokenizer), 'max_position_embeddings': 48}
    if kind == 'bert':
        values['type_vocab_size'] = 2
    else:
        values |= {'type_vocab_size': 1, 'pad_token_id': tokenizer.pad_token_id}
        values['layer_norm_eps'] = 1e-5
    settings = getattr(transformers, f'{CLASSES[kind]}Config')(**values, **config)
    torch.manual_seed(seed)
    model = getattr(transformers, f'{CLASSES[kind]}{head}')(settings).to(dtype)
    for name, parameter in model.named_parameters():
        if name.endswith('bias'):
            torch.nn.init.normal_(parameter, std=0.1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_bi_encoder(folder, kind='bert', pooling=None, layers=(), settings=None, body=None):
    """Write a bi-encoder.

    `pooling` is the content of its config.json, `layers` are 'normalize' and dense sizes (in, out,
    activation), `settings` and `body` the contents of the files of the model and of its body.
    """
    write_body(folder, kind)
    modules = ['Transformer', 'Pooling']
    paths = ['', '1_Pooling']
    values = {'word_embedding_dimension': 16, **(pooling or {'pooling_mode_mean_tokens': True})}
    write_json(folder / '1_Pooling/config.json', values)
    for number, layer in enumerate(layers, 2):
        if layer == 'normalize':
            modules.append('Normalize')
            paths.append(f'{number}_Normalize')
            continue
        modules.append('Dense')
        paths.append(f'{number}_Dense')
        _write_dense(folder / paths[-1], *layer)
    entries = []
    for number, (module, path) in enumerate(zip(modules, paths, strict=True)):
        kind_of_module = f'sentence_transformers.models.{module}'
        entries.append({'idx': number, 'name': str(number), 'path': path, 'type': kind_of_module})
    write_json(folder / 'modules.json', entries)
    write_json(folder / 'sentence_bert_config.json', body or {'do_lower_case': False})
    write_json(folder / 'config_sentence_transformers.json', settings or {})
    return folder


def write_multi_vector(folder, kind='bert', **settings):
    """A `MultiVectorEncoder` with random weights.

    `settings`: those of its Transformer, `dense` (sizes), `skiplist` and `skiplist_tasks`,
    `prompts`, `similarity`, `normalize`, `pooling`.
    """
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.base.modules.dense import Dense
    from sentence_transformers.multi_vector_encoder.modules import (
        HierarchicalTokenPooling,
        MultiVectorMask,
    )

    tokens = {'module_input_name': 'token_embeddings'}
    given = {key: settings.pop(key, None) for key in ('dense', 'skiplist', 'skiplist_tasks')}
    prompts = settings.pop('prompts', None)
    similarity = settings.pop('similarity', None)
    normalize = settings.pop('normalize', True)
    pooling = settings.pop('pooling', None)
    body = write_body(folder / 'body', kind)
    modules = [Transformer(str(body), **settings)]
    torch.manual_seed(1)
    for size_in, size_out, bias in given['dense'] or ():
        activation = torch.nn.Tanh() if bias else torch.nn.Identity()
        modules.append(Dense(size_in, size_out, bias, activation, **tokens))
    modules.append(MultiVectorMask(given['skiplist'], skiplist_tasks=given['skiplist_tasks']))
    if normalize:
        modules.append(Normalize(**tokens))
    if pooling:
        modules.append(HierarchicalTokenPooling(pooling))
    model = MultiVectorEncoder(
        modules=modules, prompts=prompts, similarity_fn_name=similarity, device='cpu'
    )
    model.save_pretrained(str(folder / 'model'))
    return folder / 'model'


def write_json(path, value):
    """Write a JSON file, and the folder around it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding='utf-8')


def _write_dense(folder, size_in, size_out, activation):
    from safetensors.torch import save_file

    name = f'torch.nn.modules.{activation}'
    config = {'in_features': size_in, 'out_features': size_out, 'bias': True}
    write_json(folder / 'config.json', {**config, 'activation_function': name})
    weights = {
        'linear.weight': torch.randn(size_out, size_in),
        'linear.bias': torch.randn(size_out),
    }
    save_file(weights, folder / 'model.safetensors')


def _tokenizer(kind):
    import transformers

    if kind == 'bert':
        return transformers.BertTokenizer(vocab={word: n for n, word in enumerate(WORDS)})
    if kind == 'xlm-roberta':
        specials = ['<s>', '<pad>', '</s>', '<unk>']
        vocab = [(piece, -float(n)) for n, piece in enumerate([*specials, *_PIECES])]
        return transformers.XLMRobertaTokenizer(vocab=[*vocab, ('<mask>', 0.0)])
    letters = ['Ġ', 'Ċ', *string.ascii_letters, *'.,?']
    tokens = ['<s>', '<pad>', '</s>', '<unk>', *letters, 'Ġc', 'at', '<mask>']
    return transformers.RobertaTokenizer(
        vocab={token: n for n, token in enumerate(tokens)}, merges=[('Ġ', 'c'), ('a', 't')]
    )


def oracle(folder):
    """A folder as sentence-transformers opens it."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device='cpu', local_files_only=True)


def check_vectors(folder, engine=OURS):
    """Our vectors of queries and passages are theirs, whatever the lengths beside them."""
    theirs = oracle(folder)
    normalises = theirs.similarity_fn_name == 'cosine' and _says_cosine(folder)
    queries = query_encoder(folder)
    passages = document_encoder(folder)
    assert (queries.engine, passages.engine) == (engine, engine)
    expected = theirs.encode_query(TEXTS, normalize_embeddings=normalises)
    assert np.ptp(expected) > 1e-2
    np.testing.assert_allclose(queries.encode_batch(TEXTS), expected, atol=1e-5)
    expected = theirs.encode_document(TEXTS, normalize_embeddings=normalises)
    np.testing.assert_allclose(passages.encode(TEXTS), expected, atol=1e-5)
    if engine == OURS:
        alone = passages.encode(TEXTS[1])
        np.testing.assert_allclose(alone, expected[1:2], atol=1e-5)


def _says_cosine(folder):
    settings = json.loads((folder / 'config_sentence_transformers.json').read_text())
    return settings.get('similarity_fn_name') == 'cosine'
