"""Tiny models of other packages: random weights."""

import pytest
import torch
from folders import TINY, WORDS, write_files

SMALL = {name: value for name, value in TINY.items() if name != 'model_type'}
KINDS = {'bert': 'Bert', 'roberta': 'Roberta', 'distilbert': 'DistilBert'}
SIZES = {
    'bert': SMALL,
    'roberta': SMALL | {'pad_token_id': 0, 'type_vocab_size': 1},
    'distilbert': {
        'vocab_size': 40,
        'dim': 16,
        'n_heads': 2,
        'n_layers': 2,
        'hidden_dim': 32,
        'initializer_range': 0.3,
    },
}


@pytest.fixture
def masked_lm(tmp_path):
    """make(kind='bert') -> a folder of transformers with a masked-LM head: random weights."""

    def make(kind='bert'):
        import transformers

        folder = write_files(tmp_path / f'plain-{kind}', {'vocab.txt': '\n'.join(WORDS) + '\n'})
        tokenizer = transformers.BertTokenizerFast(str(folder / 'vocab.txt'), model_max_length=36)
        if kind != 'bert':
            tokenizer.model_input_names = ['input_ids', 'attention_mask']
        tokenizer.save_pretrained(folder)
        config = getattr(transformers, f'{KINDS[kind]}Config')(**SIZES[kind])
        torch.manual_seed(1)
        model = getattr(transformers, f'{KINDS[kind]}ForMaskedLM')(config)
        model.save_pretrained(folder)
        return folder

    return make


@pytest.fixture
def splade(tmp_path, masked_lm):
    """make(kind='bert', pooling='max', activation='relu', length=None, **settings) -> a SPLADE."""

    def make(kind='bert', pooling='max', activation='relu', length=None, **settings):
        from sentence_transformers import SparseEncoder
        from sentence_transformers.base.modules import Transformer
        from sentence_transformers.sparse_encoder.modules import SpladePooling

        body = Transformer(
            str(masked_lm(kind)), transformer_task='fill-mask', max_seq_length=length
        )
        modules = [body, SpladePooling(pooling, activation_function=activation)]
        model = SparseEncoder(modules=modules, device='cpu', **settings)
        folder = tmp_path / f'splade-{kind}'
        model.save_pretrained(str(folder), create_model_card=False)
        return folder

    return make


@pytest.fixture
def inference_free(tmp_path, masked_lm):
    """make() -> a model that looks up the weights of a query's terms, as those of OpenSearch."""

    def make():
        from sentence_transformers import SparseEncoder
        from sentence_transformers.base.modules import Router, Transformer
        from sentence_transformers.sparse_encoder.modules import (
            SparseStaticEmbedding,
            SpladePooling,
        )

        body = Transformer(str(masked_lm()), transformer_task='fill-mask')
        torch.manual_seed(2)
        weights = torch.rand(40)
        query = SparseStaticEmbedding(body.tokenizer, weight=weights, frozen=True)
        router = Router.for_query_document(
            query_modules=[query], document_modules=[body, SpladePooling('max')]
        )
        folder = tmp_path / 'inference-free'
        model = SparseEncoder(modules=[router], device='cpu')
        model.save_pretrained(str(folder), create_model_card=False)
        return folder

    return make
