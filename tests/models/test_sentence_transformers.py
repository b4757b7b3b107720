"""Folders of sentence-transformers; the oracle is that package itself, with tiny random models."""

import json
import shutil
from typing import Any

import numpy as np
import pytest
import torch
from folders import passage_vectors, write_files

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.encode import main as encode
from pyserini_repbert.commands.search import main as search
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank import MonoBertReranker
from pyserini_repbert.search import DenseSearcher
from pyserini_repbert.systems.encoders import (
    document_encoder,
    query_encoder,
)
from pyserini_repbert.systems.sentence_transformers.encoder import SentenceQueryEncoder
from pyserini_repbert.systems.sentence_transformers.engine import NO_LIMIT, TheirEngine
from pyserini_repbert.systems.sentence_transformers.loading import folder_digest
from pyserini_repbert.systems.sentence_transformers.reranker import SentenceCrossEncoderReranker

TEXTS = [
    'The cat sat on the mat.',
    'dog',
    '',
    'a big red fish ran on the old blue sea ' * 3,
    'Sün ☃ trees, leafs?',
]
COMMON: dict[str, Any] = {'vocab_size': 40, 'initializer_range': 0.3}
SMALL = COMMON | {
    'hidden_size': 16,
    'num_attention_heads': 2,
    'num_hidden_layers': 2,
    'intermediate_size': 32,
}
SIZES: dict[str, dict[str, Any]] = {
    'bert': {**SMALL, 'max_position_embeddings': 40},
    'roberta': {**SMALL, 'max_position_embeddings': 42, 'pad_token_id': 0, 'type_vocab_size': 1},
    'mpnet': {**SMALL, 'max_position_embeddings': 42, 'pad_token_id': 1},
    'distilbert': {**COMMON, 'dim': 16, 'n_heads': 2, 'n_layers': 2, 'hidden_dim': 32},
}


@pytest.fixture
def plain(tmp_path, tiny_checkpoint):
    """make(kind='bert', head='Model', **config) -> a folder of transformers: random weights, a
    tokenizer of its own.
    """

    def make(kind='bert', head='Model', **config):
        import transformers
        from tokenizers import processors

        from pyserini_repbert.models.tokenizer import WordPieceTokenizer

        folder = tmp_path / f'plain-{kind}'
        name = {'bert': 'Bert', 'roberta': 'Roberta', 'mpnet': 'MPNet', 'distilbert': 'DistilBert'}[
            kind
        ]
        torch.manual_seed(1)
        settings = getattr(transformers, f'{name}Config')(**{**SIZES[kind], **config})
        getattr(transformers, f'{name}{head}')(settings).save_pretrained(folder)
        words = tiny_checkpoint(f'words-{len(list(tmp_path.iterdir()))}')
        tokenizer = WordPieceTokenizer.from_folder(words).backend
        tokenizer.post_processor = processors.BertProcessing(('[SEP]', 3), ('[CLS]', 2))
        special = {
            f'{own}_token': f'[{own.upper()}]' for own in ('unk', 'pad', 'cls', 'sep', 'mask')
        }
        made = transformers.PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, model_max_length=36, **special
        )
        if kind == 'bert':
            made.model_input_names = ['input_ids', 'token_type_ids', 'attention_mask']
            made.init_kwargs['model_input_names'] = made.model_input_names
        made.save_pretrained(folder)
        return folder

    return make


@pytest.fixture
def bi_encoder(tmp_path, plain):
    """make(*modules, kind='bert', pooling='mean', similarity=None, length=None, **settings) -> a
    saved bi-encoder.
    """

    def make(*modules, kind='bert', pooling='mean', similarity=None, **settings):
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

        length = settings.pop('length', None)
        body = Transformer(str(plain(kind)), max_seq_length=length)
        model = SentenceTransformer(
            modules=[body, Pooling(16, pooling), *modules],
            device='cpu',
            similarity_fn_name=similarity,
            **settings,
        )
        folder = tmp_path / 'sentence'
        model.save_pretrained(str(folder), create_model_card=False)
        return folder

    return make


@pytest.fixture
def cross_encoder(tmp_path, plain):
    """make(kind='bert', **settings) -> a saved cross-encoder with one label."""

    def make(kind='bert', **settings):
        from sentence_transformers import CrossEncoder

        folder = tmp_path / 'cross'
        start = plain(kind, 'ForSequenceClassification', num_labels=1)
        CrossEncoder(str(start), device='cpu', **settings).save_pretrained(str(folder))
        return folder

    return make


def _theirs(folder):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device='cpu', local_files_only=True)


def _same_scores(folder):
    """Inner products of our vectors are their similarity, for queries and passages of many
    lengths.
    """
    theirs = _theirs(folder)
    queries = query_encoder(folder)
    passages = document_encoder(folder)
    ours = queries.encode_batch(TEXTS) @ passages.encode(TEXTS).T
    expected = theirs.similarity(theirs.encode_query(TEXTS), theirs.encode_document(TEXTS)).numpy()
    assert np.ptp(expected) > 1e-3
    np.testing.assert_allclose(ours, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize('pooling', ['cls', 'lasttoken', ('cls', 'mean')])
def test_vectors_equal_theirs(bi_encoder, pooling):
    folder = bi_encoder(pooling=pooling, similarity='dot')
    theirs = _theirs(folder)
    passages = document_encoder(folder)
    np.testing.assert_allclose(passages.encode(TEXTS), theirs.encode_document(TEXTS), atol=1e-5)
    np.testing.assert_allclose(
        query_encoder(folder).encode_batch(TEXTS), theirs.encode_query(TEXTS), atol=1e-5
    )
    assert passages.encode([]).shape == (0, passages.dimension)


@pytest.mark.parametrize('kind', ['bert', 'roberta', 'mpnet', 'distilbert'])
def test_scores_equal_theirs_whatever_the_body(bi_encoder, kind):
    _same_scores(bi_encoder(kind=kind, similarity='dot'))


@pytest.mark.parametrize('similarity', ['cosine', 'dot'])
def test_prompts_length_layers_and_similarity_come_from_the_files(bi_encoder, similarity):
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize

    prompts = {'query': 'the cat ', 'document': 'on '}
    modules = [Dense(16, 6), Normalize()] if similarity == 'dot' else [Dense(16, 6)]
    folder = bi_encoder(*modules, prompts=prompts, length=9, similarity=similarity, pooling='cls')
    _same_scores(folder)
    encoder = query_encoder(folder)
    assert (encoder.limit, encoder.dimension) == (9, 6)


@pytest.mark.parametrize('kind', ['bert', 'mpnet'])
def test_two_encoders_of_a_folder_share_a_network_but_not_their_prompts(bi_encoder, kind):
    prompts = {'query': 'the cat ', 'document': 'on '}
    folder = bi_encoder(kind=kind, prompts=prompts, length=9, similarity='dot')
    theirs = _theirs(folder)
    queries = query_encoder(folder)
    passages = document_encoder(folder, open_encoder=queries)
    expected = theirs.encode_document(TEXTS)
    np.testing.assert_allclose(passages.encode(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(queries.encode_batch(TEXTS), theirs.encode_query(TEXTS), atol=1e-5)
    assert passages.weights_sha256 == queries.weights_sha256
    if kind == 'bert':
        assert passages._engine._networks is queries._engine._networks
    else:
        # sentence-transformers, which runs it, keeps one limit in a model.
        assert passages._engine._model is not queries._engine._model


@pytest.mark.parametrize(
    ('file', 'values', 'message'),
    [
        ('modules.json', 7, 'sentence-transformers cannot open'),
        (
            'config_sentence_transformers.json',
            {'similarity_fn_name': 'manhattan'},
            "similarity 'manhattan'",
        ),
    ],
)
def test_what_cannot_be_opened_is_one_line(bi_encoder, file, values, message):
    folder = bi_encoder()
    (folder / file).write_text(json.dumps(values))
    with pytest.raises(InputError, match=message) as error:
        SentenceQueryEncoder(folder)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('module', ['os.system', 'custom.Pooling'])
def test_foreign_code_is_not_run(bi_encoder, module):
    folder = bi_encoder()
    modules = json.loads((folder / 'modules.json').read_text())
    modules[1]['type'] = module
    write_files(folder, {'modules.json': json.dumps(modules), 'custom.py': 'raise SystemExit'})
    with pytest.raises(InputError, match='without remote code'):
        query_encoder(folder)


def test_commands_take_the_folders(bi_encoder, cross_encoder, corpus_file, tmp_path, monkeypatch):
    bi = bi_encoder(similarity='dot')
    cross = cross_encoder()
    bundle = tmp_path / 'bundle'
    common = ['--encoder', str(bi), '--quiet']
    assert (
        run(
            encode,
            ['--corpus', str(corpus_file(9)), '--output', str(bundle), '--store-text', *common],
        )
        == 0
    )
    topics = tmp_path / 'topics.tsv'
    output = tmp_path / 'run.txt'
    topics.write_text('1\tred cat\n2\tthe sea\n')
    arguments = ['--topics', str(topics), '--index', str(bundle), '--output', str(output), *common]
    assert run(search, [*arguments, '--rerank', f'{cross}@9']) == 0
    reranked = read_run(output)
    searcher = DenseSearcher(bundle)
    texts = searcher.texts([f'd{number}' for number in range(9)])
    from sentence_transformers import CrossEncoder

    scores = CrossEncoder(str(cross), device='cpu').predict([('red cat', text) for text in texts])
    order = [f'd{number}' for number in np.argsort(-scores, kind='stable')]
    assert list(reranked['1'].docids) == order
    assert json.loads((bundle / 'manifest.json').read_text())['settings'][
        'weights_sha256'
    ] == folder_digest(bi)


def _pairs():
    texts = [*TEXTS, 'cat ' * 60]
    return [('the red cat', text) for text in texts], Ranking(
        map(str, range(len(texts))), [0.0] * len(texts), texts
    )


def _their_scores(folder, pairs):
    from sentence_transformers import CrossEncoder

    return CrossEncoder(str(folder), device='cpu').predict(pairs)


@pytest.mark.parametrize('activation', ['Sigmoid', 'Identity', 'Tanh'])
@pytest.mark.parametrize('kind', ['bert', 'roberta', 'mpnet'])
def test_cross_encoders_equal_theirs(cross_encoder, kind, activation):
    folder = cross_encoder(kind, activation_fn=getattr(torch.nn, activation)())
    pairs, ranking = _pairs()
    reranker = open_reranker(folder)
    assert isinstance(reranker, SentenceCrossEncoderReranker)
    expected = _their_scores(folder, pairs)
    np.testing.assert_allclose(
        reranker.score_lists(['the red cat'], [ranking])[0], expected, atol=1e-5
    )
    assert np.ptp(expected) > 1e-4


def test_two_labels_are_scored_as_monobert_scores(plain, tmp_path):
    from sentence_transformers import CrossEncoder

    start = plain('bert', 'ForSequenceClassification', num_labels=2, max_position_embeddings=80)
    CrossEncoder(str(start), device='cpu').save_pretrained(str(tmp_path / 'two'))
    reranker = open_reranker(tmp_path / 'two')
    assert isinstance(reranker, SentenceCrossEncoderReranker)
    _, ranking = _pairs()
    (scores,) = reranker.score_lists(['the red cat'], [ranking])
    (expected,) = MonoBertReranker(start).score_lists(['the red cat'], [ranking])
    # the last passage is too long, and cut elsewhere
    np.testing.assert_allclose(scores[:-1], expected[:-1], atol=1e-5)
    assert np.ptp(expected) > 1e-4


def test_cross_encoders_of_other_kinds_are_refused(plain, bi_encoder):
    two = plain('bert', 'ForSequenceClassification', num_labels=2, max_position_embeddings=80)
    assert isinstance(open_reranker(two), MonoBertReranker)
    with pytest.raises(MismatchError, match='not a classifier|no classifier'):
        open_reranker(bi_encoder())


def test_a_repository_in_the_hubs_cache(bi_encoder, tmp_path, monkeypatch, capsys):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, 'HF_HUB_CACHE', str(tmp_path / 'hub'))
    repository = tmp_path / 'hub/models--org--small'
    folder = bi_encoder()
    (repository / 'refs').mkdir(parents=True)
    (repository / 'refs/main').write_text('abc')
    shutil.copytree(folder, repository / 'snapshots/abc')
    here = query_encoder(folder)
    there = query_encoder('org/small')
    assert there.name == 'org/small' and there.weights_sha256 == here.weights_sha256
    assert np.array_equal(there.encode('the cat'), here.encode('the cat'))
    command = ['--corpus', 'demo', '--encoder', 'org/other', '--output', str(tmp_path / 'index')]
    assert run(encode, command) == 2
    assert "no repository in the hub's cache: check the path, or fetch" in capsys.readouterr().err


def test_a_collection_cuts_no_passage_twice(bi_encoder, tmp_path):
    from pyserini_repbert.collection import Collection

    folder = bi_encoder(prompts={'query': 'the cat ', 'document': 'on the '}, length=16)
    text = ' '.join(['cat sat on the red mat.'] * 9)
    with Collection.open(tmp_path / 'mine', folder, sparse='none') as collection:
        collection.sync([{'id': 'a', 'text': text, 'title': 'dog'}])
        spans = collection.generation.passages([0])[0]
        vectors = passage_vectors(collection.generation, spans)
    encoder = document_encoder(folder)
    tokenizer = _theirs(folder).tokenizer
    inputs = [f'dog {text[span.start : span.end]}' for span in spans]
    assert all(len(tokenizer(f'on the {text}').input_ids) <= 16 for text in inputs)
    np.testing.assert_allclose(encoder.embed(inputs), vectors, atol=1e-5)


def test_a_model_without_a_limit_takes_one_and_loses_it_again():
    class Model:
        tokenizer = None
        max_seq_length = None

    model = Model()

    def lengths(texts, **_):
        return np.array([min(len(text), model.max_seq_length or NO_LIMIT) for text in texts])

    engine = TheirEngine(model, lengths, n_outputs=1)
    texts = ['a' * 3, 'a' * 9]
    assert engine.max_length == NO_LIMIT
    assert engine.run_texts(texts, NO_LIMIT, None, int).tolist() == [[3], [9]]
    assert engine.run_texts(texts, 5, None, int).tolist() == [[3], [5]]
    assert engine.run_texts(texts, NO_LIMIT, None, int).tolist() == [[3], [9]]
