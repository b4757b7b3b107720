"""Training late interaction: the loss by hand and as sentence-transformers has it, the projection
that it begins with, and the checkpoint that comes out.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from trained_models import losses

from pyserini_repbert.encode.representations import RepresentationModel
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.token_vectors.encoder import MultiVectorTextEncoder
from pyserini_repbert.extensions.token_vectors.stored import TOKENS
from pyserini_repbert.extensions.token_vectors.training import maxsim
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint, used_models
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.tasks.losses import in_batch_contrastive
from pyserini_repbert.train.checkpoints import new_task, open_base, write_checkpoint
from pyserini_repbert.train.inputs import Guard
from pyserini_repbert.train.stream import InstanceStream
from pyserini_repbert.train.training import opened_sources, train

SIZES = {'max_query_length': 8, 'max_doc_length': 16, 'dimension': 4}
TEXTS = ['the cat sat on the mat .', 'a big dog', 'sky', '']


def task_and_batch(recipe, n=3):
    sources = opened_sources(recipe, Guard())
    stream = InstanceStream(sources, recipe.training.seed, 100)
    task = new_task(recipe, open_base(recipe.base), sources).eval()
    return task, task.collate(list(itertools.islice(stream, n)))


def test_maxsim_by_hand():
    """The second token of the query is padding, as is the last one of the first passage."""
    queries = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]])
    passages = torch.tensor(
        [[[0.5, 0.1], [0.2, 0.9], [7.0, 7.0]], [[-1.0, -2.0], [-3.0, 0.0], [0.0, -5.0]]]
    )
    scores = maxsim(
        queries,
        passages,
        scored_queries=torch.tensor([[True, True, False]]),
        scored_passages=torch.tensor([[True, True, False], [True, True, True]]),
    )
    assert scores.tolist() == [[pytest.approx(0.5 + 0.9), pytest.approx(0.0)]]


def test_in_batch_contrastive_by_hand():
    """-log(e^2 / (e^2 + e^0)), where the third passage is relevant too, and -log(1 / 3)."""
    scores = torch.tensor([[2.0, 0.0, 9.0], [1.0, 1.0, 1.0]], requires_grad=True)
    relevant = torch.tensor([[True, False, True], [False, True, False]])
    loss = in_batch_contrastive(scores, torch.tensor([0, 1]), relevant)
    assert loss.item() == pytest.approx((math.log(1 + math.exp(-2)) + math.log(3)) / 2)
    loss.backward()
    share = math.exp(2) / (math.exp(2) + 1)
    expected = [(share - 1) / 2, (1 - share) / 2, 0.0, 1 / 6, -1 / 3, 1 / 6]
    assert scores.grad.flatten().tolist() == pytest.approx(expected, abs=1e-6)
    assert in_batch_contrastive(scores[:0], torch.tensor([], dtype=torch.int64), relevant[:0]) == 0


def columns(task, batch, size):
    """The inputs of a loss of sentence-transformers: queries, then passages by their place.

    It knows no passage that is in a batch twice: each gets a key of its own.
    """
    batch['passage_keys'] = torch.arange(len(batch['passage_keys']))
    batch['relevant_keys'] = batch['passage_keys'][::size, None]
    model = task.ranker.padded_vectors
    sides = []
    for prefix in ('query_', 'passage_'):
        ids = batch[f'{prefix}input_ids']
        mask = batch.get(f'{prefix}attention_mask', torch.ones_like(ids))
        vectors = model(ids, batch[f'{prefix}token_type_ids'], batch.get(f'{prefix}attention_mask'))
        sides.append((vectors, mask.bool()))
    (queries, attended), (passages, mask) = sides
    mask &= ~torch.isin(batch['passage_input_ids'], task.skipped)
    found = [{'token_embeddings': queries, 'attention_mask': attended}]
    for place in range(size):
        chosen = slice(place, None, size)
        found.append({'token_embeddings': passages[chosen], 'attention_mask': mask[chosen]})
    return found


def test_the_losses_are_those_of_sentence_transformers(tiny_recipe, world):
    pytest.importorskip('sentence_transformers')
    from sentence_transformers.multi_vector_encoder.scoring import colbert_kd_scores, colbert_scores
    from sentence_transformers.util import stack_padded_token_embeddings

    data = [{key: world[key] for key in ('topics', 'qrels', 'corpus', 'run')}]
    data[0]['scores'] = world['run']
    recipe = tiny_recipe(
        'multi-vector',
        ranking=SIZES,
        data=data,
        training={'group': 3, 'batch_size': 3},
        teacher={'scale': 0.5, 'weight': 0.7, 'judged_weight': 2.0},
    )
    task, batch = task_and_batch(recipe)
    query, *passages = columns(task, batch, size=3)
    stacked, masks = stack_padded_token_embeddings(
        [column['token_embeddings'] for column in passages],
        [column['attention_mask'] for column in passages],
    )
    given = {'queries_mask': query['attention_mask'], 'documents_mask': masks}
    all_scores = colbert_scores(query['token_embeddings'], stacked, **given)
    own_scores = colbert_kd_scores(query['token_embeddings'], stacked, **given)
    contrastive = torch.nn.functional.cross_entropy(all_scores, torch.tensor([0, 3, 6]))
    divergence = torch.nn.KLDivLoss(reduction='batchmean', log_target=True)(
        own_scores.log_softmax(dim=1), batch['taught'].log_softmax(dim=1)
    )
    expected = 2.0 * contrastive + 0.7 * divergence
    loss = task(batch)
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
    weight = task.ranker.layers[0].linear.weight
    (ours,) = torch.autograd.grad(loss, weight, retain_graph=True)
    (theirs,) = torch.autograd.grad(expected, weight)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_without_groups_pairs_have_the_in_batch_loss(tiny_recipe):
    task, batch = task_and_batch(tiny_recipe('multi-vector', ranking=SIZES))
    query, *passages = columns(task, batch, size=2)
    scores = torch.zeros(3, 6)
    for row, column in itertools.product(range(3), range(6)):
        own = passages[column % 2]
        vectors = own['token_embeddings'][column // 2][own['attention_mask'][column // 2]]
        asked = query['token_embeddings'][row][query['attention_mask'][row]]
        scores[row, column] = (asked @ vectors.T).amax(dim=1).sum()
    expected = torch.nn.functional.cross_entropy(scores, torch.tensor([0, 2, 4]))
    torch.testing.assert_close(task(batch), expected, atol=1e-5, rtol=1e-5)


def test_the_projection_begins_with_the_principal_directions(tiny_recipe):
    """Of all projections to as many values, it keeps most of the tokens' inner products."""
    recipe = tiny_recipe('multi-vector', ranking=SIZES)
    sources = opened_sources(recipe, Guard())
    task = new_task(recipe, open_base(recipe.base), sources)
    stream = InstanceStream(sources, recipe.training.seed, 100)
    batch = task.collate(list(itertools.islice(iter(stream), 32)))
    task.before_first_step(stream)
    with torch.no_grad():
        hidden = task.eval().ranker.bert(
            batch['passage_input_ids'],
            batch['passage_token_type_ids'],
            batch.get('passage_attention_mask'),
        )
    mask = batch.get('passage_attention_mask', torch.ones_like(batch['passage_input_ids'])).bool()
    scored = mask & ~torch.isin(batch['passage_input_ids'], task.skipped)
    tokens = torch.nn.functional.normalize(hidden[scored], dim=1)
    _, values, directions = torch.linalg.svd(tokens, full_matrices=False)
    weight = task.ranker.layers[0].linear.weight
    torch.testing.assert_close(weight @ weight.T, torch.eye(4), atol=1e-5, rtol=0)
    kept = (tokens @ weight.T).square().sum()
    torch.testing.assert_close(kept, values[:4].square().sum(), atol=1e-3, rtol=1e-4)
    assert directions.shape[1] == weight.shape[1]


@pytest.mark.parametrize('adapter', [None, {'rank': 2}])
def test_a_checkpoint_scores_as_the_model_in_training_did(adapter, tiny_recipe, tmp_path):
    recipe = tiny_recipe('multi-vector', ranking=SIZES, adapter=adapter)
    task, _ = task_and_batch(recipe)
    for name, parameter in task.ranker.named_parameters():
        if 'lora_B' in name:
            parameter.data.normal_(std=0.1)
    folder = tmp_path / 'model'
    folder.mkdir()
    write_checkpoint(folder, task, open_base(recipe.base))
    reranker = open_reranker(folder)
    ranking = Ranking(list('abcd'), [0.0] * 4, TEXTS)
    (scores,) = reranker.score_lists(['cat mat ?'], [ranking])

    def vectors(text, limit):
        ids = [[task.tokenizer.cls, *task.tokenizer.ids([text])[0][:limit], task.tokenizer.sep]]
        found = task.ranker.padded_vectors(torch.tensor(ids), torch.zeros_like(torch.tensor(ids)))
        return found[0], torch.tensor(ids[0])

    asked, _ = vectors('cat mat ?', 8)
    expected = []
    for text in TEXTS:
        found, ids = vectors(text, 16)
        kept = found[~torch.isin(ids, task.skipped)]
        expected.append(float((asked @ kept.T).amax(dim=1).sum().detach()))
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert reranker.encoder.limit == 18
    (model,) = used_models(reranker.encoder)
    assert model.weights == open_checkpoint(folder).weights_sha256


def test_it_trains_goes_on_and_serves_a_collection(tiny_recipe, tmp_path):
    settings = {'ranking': SIZES, 'adapter': {'rank': 2}}
    folder = train(tiny_recipe('multi-vector', **settings), tmp_path / 'one', device='cpu').folder
    assert len(losses(folder)) == 6
    encoder = TOKENS.open(str(folder), 'cpu', 'float32')
    model = TOKENS.model_of(encoder)
    assert isinstance(model, RepresentationModel)
    assert model.dimension == 4 and model.max_length == 18
    rows = TOKENS.rows(TOKENS.encode(encoder, TEXTS), model)
    (query,) = TOKENS.encode_queries(encoder, ['cat mat ?'])
    (scores,) = open_reranker(folder).score_lists(
        ['cat mat ?'], [Ranking(list('abcd'), [0.0] * 4, TEXTS)]
    )
    np.testing.assert_allclose(rows.scores(query), scores, atol=5e-3)
    # The projection of the checkpoint that it goes on from stays.
    adapter = {'rank': 2, 'start': str(folder)}
    task, _ = task_and_batch(tiny_recipe('multi-vector', ranking=SIZES, adapter=adapter))
    before = task.ranker.layers[0].linear.weight.clone()
    task.before_first_step(iter(()))
    torch.testing.assert_close(task.ranker.layers[0].linear.weight, before)
    torch.testing.assert_close(before, open_checkpoint(folder).tensors()['layers.0.linear.weight'])


def test_a_projection_of_another_size_begins_anew(tiny_recipe, tmp_path):
    """It had stayed random: the base's was taken for one that fits."""
    recipe = tiny_recipe('multi-vector', ranking=SIZES, training={'steps': 1})
    folder = train(recipe, tmp_path / 'one', device='cpu').folder
    wider = tiny_recipe('multi-vector', base=str(folder), ranking={**SIZES, 'dimension': 6})
    sources = opened_sources(wider, Guard())
    task = new_task(wider, open_base(wider.base), sources)
    task.before_first_step(InstanceStream(sources, wider.training.seed, 100))
    weight = task.ranker.layers[0].linear.weight
    torch.testing.assert_close(weight @ weight.T, torch.eye(6), atol=1e-5, rtol=0)


def test_wrong_sizes_and_other_folders_are_refused(tiny_recipe, tmp_path):
    recipe = tiny_recipe('multi-vector', ranking={'dimension': 99})
    with pytest.raises(InputError, match=r'ranking.dimension is 99, expected an integer'):
        new_task(recipe, open_base(recipe.base), [])
    with pytest.raises(InputError, match='is not a MultiVectorEncoder'):
        MultiVectorTextEncoder(recipe.base)
