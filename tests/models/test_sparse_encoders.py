"""Folders of `SparseEncoder`: the oracle is sentence-transformers, with tiny random models."""

import json
import math

import numpy as np
import pytest
from folders import WORDS

from pyserini_repbert.collection import Collection
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.encode import main as encode
from pyserini_repbert.commands.explain import main as explain
from pyserini_repbert.commands.index import main as index
from pyserini_repbert.commands.search import main as search
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.indexes.term_weights.opening import open_term_weights_searcher
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.systems.encoders import document_encoder, term_weights_encoder
from pyserini_repbert.systems.sparse_encoder.encoder import SparseTextEncoder
from pyserini_repbert.systems.sparse_encoder.folder import is_sparse_folder

TEXTS = [
    'The cat sat on the mat.',
    'dog',
    '',
    'a big red fish ran on the old blue sea ' * 3,
    'Sün ☃ trees, leafs?',
    *(f'{WORDS[5 + number]} {WORDS[9 + number]}' for number in range(20)),
]
QUERIES = ['red cat', 'the old sea', '', 'moon ☃', 'a dog ate ' * 20]


def _their_scores(folder, queries, texts):
    """The scores of sentence-transformers, (n queries, n texts)."""
    from sentence_transformers import SparseEncoder

    theirs = SparseEncoder(str(folder), device='cpu', local_files_only=True)
    scores = theirs.similarity(theirs.encode_query(queries), theirs.encode_document(texts))
    return scores.to_dense().numpy()


def _corpus(path, texts=TEXTS):
    with open(path, 'w', encoding='utf-8') as stream:
        for number, text in enumerate(texts):
            stream.write(json.dumps({'id': f'd{number:02}', 'contents': text or '.'}) + '\n')
    return path


def _bundle(folder, tmp_path, name='bundle', **storage):
    corpus = open_corpus(_corpus(tmp_path / 'corpus.jsonl'))
    encode_corpus(corpus, SparseTextEncoder(folder), tmp_path / name, store_text=True, **storage)
    return TermWeightsBundle(tmp_path / name)


def _same_scores(folder, tmp_path):
    """The search of a bundle gives their scores, for all queries and passages."""
    bundle = _bundle(folder, tmp_path, shard_size=7)
    searcher = open_term_weights_searcher(bundle.folder)
    texts = [text or '.' for text in TEXTS]
    expected = _their_scores(folder, QUERIES, texts)
    assert np.ptp(expected) > 1e-2
    ours = np.zeros_like(expected)
    answers = searcher.batch_search(QUERIES, list('abcde'), 100)
    for row, hits in enumerate(answers.values()):
        for hit in hits:
            ours[row, int(hit.docid[1:])] = hit.score
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
    np.testing.assert_allclose(ours, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ('kind', 'pooling', 'activation'),
    [('bert', 'max', 'relu'), ('roberta', 'sum', 'relu'), ('distilbert', 'max', 'log1p_relu')],
)
def test_splade_scores_equal_theirs(splade, tmp_path, kind, pooling, activation):
    folder = splade(kind, pooling, activation)
    assert is_sparse_folder(folder)
    _same_scores(folder, tmp_path)


@pytest.mark.parametrize('similarity', ['cosine', 'dot'])
def test_prompts_lengths_and_limits_come_from_the_files(splade, tmp_path, similarity):
    prompts = {'query': 'the cat ', 'document': 'on '}
    folder = splade(prompts=prompts, length=9, max_active_dims=12, similarity_fn_name=similarity)
    _same_scores(folder, tmp_path)
    encoder = SparseTextEncoder(folder)
    assert encoder.limit == 9
    assert len(encoder.encode_query('red cat')) <= 12


def test_inference_free_scores_equal_theirs(inference_free, tmp_path):
    folder = inference_free()
    assert is_sparse_folder(folder)
    _same_scores(folder, tmp_path)
    encoder = term_weights_encoder(folder)
    # A query's terms are its own, each once.
    vector = encoder.encode_query('cat red cat')
    assert encoder.term_names(vector.terms.tolist()) == ['cat', 'red']
    assert len(encoder.encode_query('')) == 0


def test_a_length_cuts_passages_and_queries(splade):
    from sentence_transformers import SparseEncoder

    folder = splade()
    theirs = SparseEncoder(str(folder), device='cpu')
    theirs.max_seq_length = 5
    encoder = SparseTextEncoder(folder, max_length=5)
    (ours,) = encoder.encode_pruned(['the cat sat on the mat'])
    expected = theirs.encode_document('the cat sat on the mat').to_dense().numpy()
    np.testing.assert_allclose(ours.weights_of(np.arange(40)), expected, atol=1e-6)
    whole = encoder.encode_query('the cat sat on the mat')
    short = SparseTextEncoder(folder, query_length=5).encode_query('the cat sat on the mat')
    assert len(whole) != len(short) or not np.allclose(whole.weights, short.weights)
    for length in (0, 37):
        with pytest.raises(InputError, match='expected 1 to 36 tokens'):
            SparseTextEncoder(folder, max_length=length)


@pytest.mark.parametrize(('weights', 'error'), [('float16', 2**-11), ('uint8', 1 / 510)])
def test_rounding_costs_what_the_guide_says(splade, tmp_path, weights, error):
    """float16: relative to the weight; uint8: to the range of the passage's weights."""
    folder = splade()
    exact = _bundle(folder, tmp_path)
    rounded = _bundle(folder, tmp_path, weights, weights=weights)
    for row in range(len(exact)):
        before = exact.vector(row)
        after = rounded.vector(row)
        np.testing.assert_array_equal(before.terms, after.terms)
        scale = before.weights if weights == 'float16' else np.ptp(before.weights)
        assert (np.abs(before.weights - after.weights) <= scale * error * 1.001).all()


def test_pruning_keeps_the_largest_weights(splade, tmp_path):
    folder = splade()
    pruned = _bundle(folder, tmp_path, 'pruned', prune=3)
    everything = _bundle(folder, tmp_path)
    arguments = ['--index', str(everything.folder), '--output', str(tmp_path / 'again')]
    assert run(index, ['epic-prune', *arguments, '--prune', '3', '--quiet']) == 0
    again = TermWeightsBundle(tmp_path / 'again')
    for row in range(len(pruned)):
        whole = everything.vector(row)
        best = sorted(whole.terms.tolist(), key=lambda t: (-whole.as_dict()[t], t))[:3]
        assert pruned.vector(row).terms.tolist() == sorted(best)
        assert pruned.vector(row).as_dict() == again.vector(row).as_dict()
    # All weights, with a smaller type.
    output = ['--output', str(tmp_path / 'half'), '--weights', 'fp16', '--quiet']
    assert run(index, ['epic-prune', '--index', str(everything.folder), *output]) == 0
    half = TermWeightsBundle(tmp_path / 'half')
    assert (half.settings.weights, half.settings.layout) == ('float16', 'blocks')
    np.testing.assert_array_equal(half.vector(3).terms, everything.vector(3).terms)


def test_commands_recognise_the_folder(splade, tmp_path, capsys):
    folder = splade()
    corpus = _corpus(tmp_path / 'corpus.jsonl')
    common = ['--corpus', str(corpus), '--encoder', str(folder), '--store-text', '--quiet']
    assert run(encode, [*common, '--output', str(tmp_path / 'one')]) == 0
    assert '25 passages x all terms float32 in 1 shard' in capsys.readouterr().out
    assert run(index, ['sparse', *common, '--output', str(tmp_path / 'other')]) == 0
    manifests = [(tmp_path / name / 'manifest.json').read_text() for name in ('one', 'other')]
    assert manifests[0] == manifests[1]
    assert run(index, ['check', '--index', str(tmp_path / 'one')]) == 0
    assert '25 passages x all float32' in capsys.readouterr().out

    topics = tmp_path / 'topics.tsv'
    topics.write_text('1\tred cat\n2\tthe sea\n')
    output = tmp_path / 'run.txt'
    flags = ['--topics', str(topics), '--index', str(tmp_path / 'one'), '--output', str(output)]
    assert run(search, [*flags, '--encoder', str(folder)]) == 0
    ranking = read_run(output)['1']
    expected = _their_scores(folder, ['red cat'], [text or '.' for text in TEXTS])[0]
    order = sorted(range(25), key=lambda row: (-expected[row], row))
    assert list(ranking.docids) == [f'd{row:02}' for row in order]
    np.testing.assert_allclose(ranking.scores, expected[order], atol=1e-5)

    for name, given in {'prf': ['--prf', 'average']}.items():
        assert run(search, ['--index', str(tmp_path / 'one'), '--query', 'cat', *given]) == 2
        error = capsys.readouterr().err
        assert len(error.splitlines()) == 1 and name in error


def test_parts_are_finished_by_encode(splade, tmp_path, capsys):
    folder = splade()
    corpus = _corpus(tmp_path / 'corpus.jsonl')
    common = ['--corpus', str(corpus), '--encoder', str(folder), '--quiet', '--shard-size', '10']
    output = ['--output', str(tmp_path / 'parts')]
    for number in (0, 1):
        assert run(encode, [*common, *output, '--shard', f'{number}/2']) == 0
    assert run(encode, [*output, '--finish']) == 0
    assert '25 passages x all terms float32 in 3 shards' in capsys.readouterr().out
    assert len(TermWeightsBundle(tmp_path / 'parts')) == 25


def test_what_is_named_wrongly_is_one_line(splade, tmp_path, tiny_epic, capsys):
    folder = splade()
    corpus = str(_corpus(tmp_path / 'corpus.jsonl'))
    output = ['--output', str(tmp_path / 'none')]
    epic = str(tiny_epic())
    assert run(index, ['sparse', '--corpus', corpus, '--encoder', epic, *output]) == 2
    assert 'is not a SparseEncoder' in capsys.readouterr().err
    with pytest.raises(MismatchError, match='term weights'):
        document_encoder(folder)
    other = splade('distilbert')
    bundle = _bundle(folder, tmp_path)
    with pytest.raises(MismatchError, match='pass the encoder it was built with'):
        open_term_weights_searcher(bundle.folder, other)
    assert not (tmp_path / 'none').exists()


@pytest.mark.parametrize('change', ['manhattan', 'foreign'])
def test_what_cannot_be_opened_is_one_line(splade, change):
    folder = splade()
    if change == 'manhattan':
        path = folder / 'config_sentence_transformers.json'
        values = json.loads(path.read_text()) | {'similarity_fn_name': 'manhattan'}
        message = "similarity 'manhattan'"
    else:
        path = folder / 'modules.json'
        values = json.loads(path.read_text())
        values[0]['type'] = 'custom.Transformer'
        (folder / 'custom.py').write_text('raise SystemExit')
        message = 'without remote code'
    path.write_text(json.dumps(values))
    with pytest.raises(InputError, match=message) as error:
        SparseTextEncoder(folder)
    assert '\n' not in str(error.value)


def test_reranking_from_the_index_and_on_the_fly(splade, tmp_path):
    folder = splade()
    bundle = _bundle(folder, tmp_path)
    expected = _their_scores(folder, ['red cat'], [*TEXTS[:2], 'new text'])[0]
    candidates = [Candidate('d00'), Candidate('d01'), Candidate('x', text='new text')]
    reranker = open_reranker(folder, options={'index': str(bundle.folder)})
    scores = {hit.docid: hit.score for hit in reranker.rerank('red cat', candidates)}
    np.testing.assert_allclose([scores[c.docid] for c in candidates], expected, atol=1e-5)
    refusing = open_reranker(folder, options={'index': bundle, 'missing': 'refuse'})
    with pytest.raises(Exception, match="candidate 'x'"):
        refusing.rerank('red cat', candidates)
    alone = open_reranker(folder)
    (hit,) = alone.rerank('red cat', [Candidate('y', text='new text')])
    assert math.isclose(hit.score, expected[2], abs_tol=1e-5)


@pytest.mark.parametrize('make', ['splade', 'inference_free'])
def test_explanations_add_up_to_the_score(make, request, tmp_path, capsys):
    folder = request.getfixturevalue(make)()
    bundle = _bundle(folder, tmp_path)
    flags = ['--index', str(bundle.folder), '--docid', 'd00', '--query', 'red cat on']
    assert run(explain, [*flags, '--json', '--top', '3', '--quiet']) == 0
    (passage,) = json.loads(capsys.readouterr().out)['passages']
    expected = _their_scores(folder, ['red cat on'], [TEXTS[0]])[0, 0]
    assert math.isclose(passage['score'], expected, abs_tol=1e-5)
    products = [part['contribution'] for part in passage['contributions']]
    assert products == sorted(products, reverse=True)
    assert math.isclose(sum(products), expected, abs_tol=1e-5)
    words = 'the cat sat on the mat .'.split()
    assert [term['term'] for term in passage['passage_terms']] == words
    assert [term['term'] for term in passage['query_terms'][:3]] == ['red', 'cat', 'on']
    own = {term['term'] for term in passage['passage_terms']}
    assert len(passage['expansions']) == 3
    assert own.isdisjoint(term['term'] for term in passage['expansions'])
    # As a text, without an index.
    flags = ['--model', str(folder), '--passage', TEXTS[0], '--query', 'red cat on']
    assert run(explain, flags) == 0
    assert f'score {expected:.4f}' in capsys.readouterr().out


@pytest.mark.jvm
def test_lucene_ranks_by_the_same_weights(splade, tmp_path, capsys):
    """All rows are scored here, with weights and query in whole steps."""
    from pyserini_repbert.index.impact_index import LEVELS
    from pyserini_repbert.systems.impact_searcher import QUERY_UNIT

    folder = splade()
    bundle = _bundle(folder, tmp_path)
    output = ['--output', str(tmp_path / 'impact'), '--vectors', str(bundle.folder)]
    assert run(index, ['lucene', '--variant', 'epic-impact', *output, '--quiet']) == 0
    topics = tmp_path / 'topics.tsv'
    topics.write_text('1\tred cat\n')
    flags = ['--topics', str(topics), '--sparse', str(tmp_path / 'impact')]
    assert run(search, [*flags, '--output', str(tmp_path / 'run.txt'), '--quiet']) == 0
    ranking = read_run(tmp_path / 'run.txt')['1']
    query = SparseTextEncoder(folder).encode_query('red cat')
    weights = bundle.weights_of(np.arange(25), query.terms)
    step = max(vectors.weights.max() for _, vectors in bundle.vectors()) / LEVELS
    exact = np.rint(weights / step) @ np.rint(query.weights * QUERY_UNIT) * step / QUERY_UNIT
    scores = dict(zip(ranking.docids, ranking.scores, strict=True))
    assert len(scores) == 25
    np.testing.assert_allclose([scores[f'd{row:02}'] for row in range(25)], exact, rtol=1e-4)


def test_folders_are_told_by_their_files(tmp_path):
    assert not is_sparse_folder(tmp_path)
    assert not is_sparse_folder('minilm')
    path = tmp_path / 'modules.json'
    for text, expected in {
        '[]': False,
        '{}': False,
        '[7]': False,
        '[{"type": "sentence_transformers.models.Transformer"}]': False,
        '[{"type": "sentence_transformers.sparse_encoder.models.SpladePooling"}]': True,
    }.items():
        path.write_text(text)
        assert is_sparse_folder(tmp_path) is expected
    path.write_text('[]')
    (tmp_path / 'config_sentence_transformers.json').write_text('{"model_type": "SparseEncoder"}')
    assert is_sparse_folder(tmp_path)


def test_a_collection_ranks_by_the_scores_of_sentence_transformers(
    tmp_path, splade, tiny_checkpoint
):
    folder = splade()
    texts = [text for text in TEXTS if text and len(text) < 40]
    dense = str(tiny_checkpoint())
    with Collection.open(tmp_path / 'mine', encoder=dense, sparse=folder) as collection:
        collection.sync([{'id': str(number), 'text': text} for number, text in enumerate(texts)])
        searcher = collection.searcher(rankings=('sparse',))
        queries = [query for query in QUERIES if query]
        for query, expected in zip(queries, _their_scores(folder, queries, texts), strict=True):
            hits = searcher.search(query, len(texts))
            scores = {int(hit.docid): hit.score for hit in hits}
            assert scores == pytest.approx(dict(enumerate(expected.tolist())), abs=1e-5)
        searcher.close()
