"""Learning from a teacher's scores: the losses by hand, teachers, groups of candidates, and
trainings with them.
"""

import math

import numpy as np
import pytest
import torch
from trained_models import SYSTEMS

from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import MonoBertReranker
from pyserini_repbert.tasks.instances import Instance
from pyserini_repbert.tasks.losses import listwise_divergence, localized_contrastive
from pyserini_repbert.train.checkpoints import new_task, open_base
from pyserini_repbert.train.inputs import Guard
from pyserini_repbert.train.teachers import BiEncoderTeacher, CrossEncoderTeacher
from pyserini_repbert.train.training import opened_sources, train

PRESENT = torch.tensor([[True, True, True], [True, True, False]])

ENCODED = ('input_ids', 'token_type_ids', 'attention_mask')


def test_localized_contrastive_by_hand():
    """-log(e / (e + 1 + 1/e)) and -log(1 / (1 + e^2)); what is not there does not count."""
    scores = torch.tensor([[1.0, 0.0, -1.0], [0.0, 2.0, 99.0]])
    first = math.log(1 + math.exp(-1) + math.exp(-2))
    assert localized_contrastive(scores, PRESENT).item() == pytest.approx(
        (first + math.log(1 + math.exp(2))) / 2
    )
    assert localized_contrastive(scores[:0], PRESENT[:0]).item() == 0


def test_listwise_divergence_by_hand():
    """Teacher (3/4, 1/4) against (1/2, 1/2); a constant added to all scores of a group changes
    nothing.
    """
    teacher = torch.tensor([[7.0, 5.0, 3.0], [math.log(3.0), 0.0, 0.0]])
    scores = torch.tensor([[4.0, 2.0, 0.0], [1.0, 1.0, 50.0]], requires_grad=True)
    loss = listwise_divergence(scores, teacher, PRESENT)
    assert loss.item() == pytest.approx((0.75 * math.log(1.5) + 0.25 * math.log(0.5)) / 2, abs=1e-6)
    loss.backward()
    assert torch.isfinite(scores.grad).all() and scores.grad[1, 2] == 0


def test_a_bi_encoder_teaches_its_cosine(tiny_checkpoint):
    folder = tiny_checkpoint('base')
    query = 'cat mat ?'
    texts = ['the cat sat on the mat .', 'the sky .', 'the cat sat on the mat .']
    vector = RepBertQueryEncoder(folder).encode_batch([query])[0].astype(np.float64)
    passages = RepBertDocumentEncoder(folder).embed(texts).astype(np.float64)
    expected = passages @ vector / np.linalg.norm(passages, axis=1) / np.linalg.norm(vector)
    assert BiEncoderTeacher(open_checkpoint(folder)).scores(
        'q', query, 'abc', texts
    ) == pytest.approx(expected, abs=1e-5)


def test_a_cross_encoder_teaches_its_log_odds(tiny_recipe, tmp_path):
    mono = train(tiny_recipe('monobert', ranking=SYSTEMS['monobert']), tmp_path / 'mono').folder
    texts = ['the cat sat on the mat .', 'the sky .']
    found = CrossEncoderTeacher(open_checkpoint(mono)).scores('q', 'cat mat ?', ['a', 'b'], texts)
    candidates = [Candidate(str(number), 0.0, text) for number, text in enumerate(texts)]
    log_p = np.array([one.score for one in MonoBertReranker(mono).rerank('cat mat ?', candidates)])
    assert sorted(found, reverse=True) == pytest.approx(
        np.log(np.exp(log_p) / (1 - np.exp(log_p))), abs=1e-6
    )


def taught_recipe(tiny_recipe, world, system='monobert', **more):
    data = [
        {key: world[key] for key in ('topics', 'qrels', 'corpus', 'run')}
        | {'scores': world['run']},
        {key: world[key] for key in ('topics', 'corpus', 'run')} | {'scores': world['run']},
    ]
    settings = {'training': {'group': 4}, 'teacher': {'scale': 0.5}} | more
    return tiny_recipe(system, ranking=SYSTEMS[system], data=data, **settings)


def test_groups_have_the_relevant_passage_first_where_there_are_judgments(tiny_recipe, world):
    recipe = taught_recipe(tiny_recipe, world)
    judged, unjudged = opened_sources(recipe, Guard())
    first = list(judged.instances(0, 0))
    assert [own.docids[0] for own in first] == [f'd{n}' for n in range(24)]
    assert all(own.judged and len(set(own.docids)) == 4 for own in first)
    assert not any(own.judged for own in unjudged.instances(0, 0))
    assert list(judged.instances(0, 0)) == first != list(judged.instances(0, 1))


def test_candidates_that_score_like_the_relevant_one_are_dropped(tiny_recipe, world):
    """Scores are 9 of the relevant passage, 8, 7, … of others: with 0.8, those of 8 are gone."""
    recipe = taught_recipe(
        tiny_recipe, world, training={'group': 6}, teacher={'scale': 0.5, 'drop_above': 0.8}
    )
    source = opened_sources(recipe, Guard())[0]
    group = next(iter(source.instances(0, 0)))
    assert group.docids[0] == 'd0' and sorted(group.docids[1:]) == sorted(
        ['d10', 'd15', 'd20', 'd1']
    )


def test_log_odds_below_zero_are_dropped_by_their_distance_too(tiny_recipe, world, monkeypatch):
    """The relevant passage has -2: with 0.8, what is above -2.4 is gone."""
    recipe = taught_recipe(
        tiny_recipe, world, training={'group': 6}, teacher={'scale': 0.5, 'drop_above': 0.8}
    )
    source = opened_sources(recipe, Guard())[0]
    scores = {'d0': -2.0, 'd5': -2.3, 'd10': -1.0}
    monkeypatch.setattr(
        source, 'taught', lambda qid, docids: [scores.get(docid, -2.5) for docid in docids]
    )
    group = next(iter(source.instances(0, 0)))
    assert group.docids[0] == 'd0' and sorted(group.docids[1:]) == sorted(['d15', 'd20', 'd1'])


def test_a_batch_of_groups_has_the_teachers_logits(tiny_recipe, world):
    recipe = taught_recipe(tiny_recipe, world)
    task = new_task(recipe, open_base(recipe.base), opened_sources(recipe, Guard()))
    batch = task.collate(
        [Instance(0, 'q0', ('d0', 'd10', 'd5'), True), Instance(1, 'q1', ('d6', 'd1'), False)]
    )
    assert batch['taught'].tolist() == [[4.5, 3.5, 4.0], [4.0, 4.5, 0.0]]
    assert batch['present'].tolist() == [[True] * 3, [True, True, False]]
    assert batch['judged'].tolist() == [True, False]
    assert len(batch['input_ids']) == 5 and task.scores(batch).shape == (5,)


@pytest.mark.parametrize('system', ['monobert', 'epic', 'cedr'])
def test_scores_of_groups_are_those_of_the_reranker(tiny_recipe, world, tiny_epic, system):
    """A group's passages are scored as pairs are: the loss of a pair follows from the two scores
    of a group.
    """
    recipe = taught_recipe(tiny_recipe, world, system)
    recipe = (
        recipe
        if system != 'epic'
        else taught_recipe(tiny_recipe, world, system, base=str(tiny_epic()))
    )
    task = new_task(recipe, open_base(recipe.base), opened_sources(recipe, Guard())).eval()
    one = Instance(0, 'q0', ('d0', 'd5'), True)
    other = Instance(0, 'q7', ('d7', 'd12', 'd17'), True)
    with torch.inference_mode():
        together = task.scores(task.collate([one, other]))
        apart = torch.cat([task.scores(task.collate([group])) for group in (one, other)])
    torch.testing.assert_close(together, apart, atol=1e-5, rtol=1e-5)


def test_whole_layers_make_an_adapter_without_embeddings(tiny_recipe, world, tmp_path):
    from safetensors.torch import load_file

    recipe = taught_recipe(tiny_recipe, world, adapter={'whole': True})
    done = train(recipe, tmp_path / 'out')
    kept = load_file(done.folder / 'adapter_model.safetensors')
    assert not any('embeddings' in name or 'lora' in name for name in kept)
    opened = open_checkpoint(done.folder).tensors()
    base = open_checkpoint(recipe.base).tensors()
    name = 'bert.encoder.layer.0.attention.self.query.weight'
    assert not torch.equal(opened[name], base[name])
    assert torch.equal(
        opened['bert.embeddings.word_embeddings.weight'],
        base['bert.embeddings.word_embeddings.weight'],
    )


def test_duoberts_groups_are_pairs_in_both_orders(tiny_recipe, world):
    """Margins of 2 and -1 halves: the teacher's probability of each order, and judgments for the
    first pair only.
    """
    recipe = taught_recipe(tiny_recipe, world, 'duobert', training={'group': 2})
    task = new_task(recipe, open_base(recipe.base), opened_sources(recipe, Guard())).eval()
    batch = task.collate(
        [Instance(0, 'q0', ('d0', 'd10'), True), Instance(1, 'q1', ('d6', 'd1'), False)]
    )
    own = torch.sigmoid(torch.tensor([1.0, -0.5]))
    torch.testing.assert_close(batch['taught'], torch.cat([own, 1 - own]))
    assert batch['judged'].tolist() == [True, False, True, False]
    logits = task.ranker(batch['input_ids'], batch['token_type_ids'], batch.get('attention_mask'))
    log_p = torch.log_softmax(logits, dim=1)
    taught = -(batch['taught'] * log_p[:, 1] + (1 - batch['taught']) * log_p[:, 0]).mean()
    judged = -(log_p[0, 1] + log_p[2, 0]) / 2
    torch.testing.assert_close(task(batch), taught + judged, atol=1e-5, rtol=1e-5)


def test_repberts_groups_have_its_own_loss_and_the_teachers(tiny_recipe, world):
    """Inner products of the first query with all five passages, one of them relevant; of each
    with its own.
    """
    recipe = taught_recipe(tiny_recipe, world, 'repbert')
    task = new_task(recipe, open_base(recipe.base), opened_sources(recipe, Guard())).eval()
    groups = [Instance(0, 'q0', ('d0', 'd10', 'd5'), True), Instance(1, 'q1', ('d6', 'd1'), False)]
    batch = task.collate(groups)
    sides = [[batch.get(f'{side}_{name}') for name in ENCODED] for side in ('query', 'passage')]
    queries, passages = (task.ranker(*side) for side in sides)
    similar = queries @ passages.T
    hinges = sum(torch.relu(1 - (similar[0, 0] - similar[0, other])) for other in range(1, 5)) / 5
    own = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]).masked_scatter(
        batch['present'], similar[[0] * 3 + [1] * 2, range(5)]
    )
    follows = listwise_divergence(own, batch['taught'], batch['present'])
    torch.testing.assert_close(task(batch), hinges + follows, atol=1e-5, rtol=1e-5)
    unjudged = task.collate(groups[1:])
    own = similar[1:, 3:]
    torch.testing.assert_close(
        task(unjudged),
        listwise_divergence(own, unjudged['taught'], unjudged['present']),
        atol=1e-5,
        rtol=1e-5,
    )
