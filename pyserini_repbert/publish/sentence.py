"""RepBERT as a model of sentence-transformers, without remote code.

Queries and passages differ in their token type (RepBERT footnote 2) and their length. A Router of
sentence-transformers sends each to a Transformer of its own; both have the same weights, and tokenizers that set the
type. `encode_query` and `encode_document` then give RepBERT's vectors. Tested with sentence-transformers 6.2.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyserini_repbert.files import link_or_copy
from pyserini_repbert.models import repbert
from pyserini_repbert.models.checkpoints.folder import WEIGHTS

_MODULE = 'sentence_transformers.models.'
_ROUTES = {
    'query': ('query_0_Transformer', repbert.QUERY_TYPE, 'max_query_length', repbert.MAX_QUERY_TOKENS),
    'document': ('document_0_Transformer', repbert.PASSAGE_TYPE, 'max_doc_length', repbert.MAX_PASSAGE_TOKENS),
}


def write_sentence_transformers(folder: Path) -> None:
    """Add the files that sentence-transformers reads to a folder with RepBERT's config.json, weights and tokenizer."""
    config = json.loads((folder / 'config.json').read_text(encoding='utf-8'))
    for name, token_type, key, usual in _ROUTES.values():
        route = folder / name
        route.mkdir()
        own = {field: value for field, value in config.items() if field != 'ranking'}
        _write(route / 'config.json', own)
        limit = int(config['ranking'].get(key, usual)) + 2  # [CLS] and [SEP]
        _write(route / 'sentence_bert_config.json', {'max_seq_length': limit, 'do_lower_case': False})
        _write_tokenizer(folder, route, token_type, limit)
        link_or_copy(folder / WEIGHTS, route / WEIGHTS)
    kinds = {name: f'{_MODULE}Transformer' for name, *_ in _ROUTES.values()}
    structure = {task: [name] for task, (name, *_) in _ROUTES.items()}
    router = {'default_route': 'query', 'allow_empty_key': True}
    _write(folder / 'router_config.json', {'types': kinds, 'structure': structure, 'parameters': router})
    modules = [('0', '', 'Router'), ('1', '1_Pooling', 'Pooling')]
    listed = [{'idx': int(name), 'name': name, 'path': path, 'type': _MODULE + kind} for name, path, kind in modules]
    _write(folder / 'modules.json', listed)
    (folder / '1_Pooling').mkdir()
    pooling = {'word_embedding_dimension': config['hidden_size'], 'pooling_mode_mean_tokens': True}
    _write(folder / '1_Pooling' / 'config.json', pooling)
    _write(folder / 'config_sentence_transformers.json', {'similarity_fn_name': 'dot', 'prompts': {}})


def _write_tokenizer(folder: Path, route: Path, token_type: int, limit: int) -> None:
    from tokenizers import Tokenizer, processors

    tokenizer = Tokenizer.from_file(str(folder / 'tokenizer.json'))
    form = f'[CLS]:{token_type} $A:{token_type} [SEP]:{token_type}'
    special = [(token, tokenizer.token_to_id(token)) for token in ('[CLS]', '[SEP]')]
    tokenizer.post_processor = processors.TemplateProcessing(single=form, special_tokens=special)
    tokenizer.save(str(route / 'tokenizer.json'))
    names = {f'{name.lower()}_token': f'[{name}]' for name in ('UNK', 'SEP', 'PAD', 'CLS', 'MASK')}
    inputs = ['input_ids', 'token_type_ids', 'attention_mask']
    settings = {'tokenizer_class': 'PreTrainedTokenizerFast', 'model_input_names': inputs, 'model_max_length': limit}
    _write(route / 'tokenizer_config.json', settings | names)


def _write(path: Path, values: Any) -> None:
    path.write_text(json.dumps(values, indent=2) + '\n', encoding='utf-8')
