"""What the trainer runs: batches in groups of like length, dropout as the recipe says."""

import itertools

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from pyserini_repbert.encode import RepBertQueryEncoder
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.bert import Bert
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import CedrReranker
from pyserini_repbert.systems.cedr import training as cedr
from pyserini_repbert.systems.repbert import training as repbert
from pyserini_repbert.systems.repbert.network import RepBert
from pyserini_repbert.tasks import task as tasks
from pyserini_repbert.train.checkpoints import new_task, open_base, write_checkpoint
from pyserini_repbert.train.inputs import Guard
from pyserini_repbert.train.sources import TrainingSource
from pyserini_repbert.train.stream import InstanceStream
from pyserini_repbert.train.training import train

TINY = {
    'vocab_size': 30,
    'hidden_size': 8,
    'num_hidden_layers': 2,
    'num_attention_heads': 2,
    'intermediate_size': 16,
}

ENCODED = ('input_ids', 'token_type_ids', 'attention_mask')


def task_and_instances(recipe, n):
    base = open_base(recipe.base)
    source = TrainingSource(recipe.data[0], 0, Guard())
    stream = InstanceStream([source], recipe.training.seed, 100)
    return new_task(recipe, base, [source]).train(), list(itertools.islice(stream, n))


@pytest.mark.parametrize('what', ['pooled', 'hidden'])
def test_groups_of_like_length_change_no_result(what, monkeypatch):
    torch.manual_seed(3)
    bert = Bert(BertConfig(**TINY)).eval()
    lengths = torch.tensor([3, 9, 1, 5, 9, 2, 7])
    mask = torch.arange(9) < lengths[:, None]
    ids = torch.randint(1, 30, mask.shape) * mask
    seen = []

    def model(ids, types, mask=None):
        seen.append(tuple(ids.shape))
        hidden = bert(ids, types, mask)
        return hidden[:, 0] if what == 'pooled' else hidden

    monkeypatch.setattr(tasks, 'GROUP', 3)
    grouped = tasks.outputs(
        model, dict(zip(ENCODED, (ids, torch.zeros_like(ids), mask), strict=True))
    )
    assert seen == [(3, 3), (3, 9), (1, 9)]
    whole = model(ids, torch.zeros_like(ids), mask)
    if what == 'hidden':
        grouped = grouped * mask[..., None]
        whole = whole * mask[..., None]
    torch.testing.assert_close(grouped, whole, atol=1e-6, rtol=0)


@pytest.mark.parametrize('architecture', ['vanilla', 'knrm', 'pacrr', 'drmm'])
def test_cedr_in_groups_has_the_same_loss(architecture, tiny_recipe, monkeypatch):
    ranking = {'architecture': architecture, 'max_query_length': 6, 'max_doc_length': 40}
    task, instances = task_and_instances(
        tiny_recipe('cedr', ranking=ranking, training={'dropout': 0}), 6
    )
    texts = task.sources[0].texts
    task.sources[0].texts = lambda ids: [' '.join(texts([own]) * (1 + len(own) % 3)) for own in ids]
    found = []
    for size in (2, 100):
        monkeypatch.setattr(cedr, 'GROUP', size)
        found.append(task.eval()(task.collate(instances)))
    torch.testing.assert_close(*found, atol=1e-5, rtol=0)


@pytest.mark.parametrize(('architecture', 'of_head'), [('vanilla', {0.1}), ('knrm', set())])
def test_dropout_of_cedr_is_as_its_page_says(architecture, of_head, tiny_recipe):
    """Vanilla BERT's [CLS] keeps the 0.1 of the released code, by which vanilla-demo was taught."""
    ranking = {'architecture': architecture, 'max_query_length': 6, 'max_doc_length': 40}
    recipe = tiny_recipe('cedr', ranking=ranking, training={'dropout': 0.3})
    task, _ = task_and_instances(recipe, 1)
    modules = [part for part in task.ranker.modules() if isinstance(part, torch.nn.Dropout)]
    assert {module.p for module in modules} == {0.3} | of_head


def test_dropout_is_the_recipes_or_else_the_bases(tiny_recipe):
    for dropout, repeats in ((0.0, True), (None, False)):
        lengths = {'max_query_length': 8, 'max_length': 48}
        recipe = tiny_recipe('monobert', ranking=lengths, training={'dropout': dropout})
        task, instances = task_and_instances(recipe, 2)
        batch = task.collate(instances)
        assert torch.equal(task(batch), task(batch)) == repeats


@pytest.mark.parametrize('adapter', [None, {'rank': 2}])
def test_a_unit_layer_begins_as_cosine_is_trained_and_kept(adapter, tiny_recipe, tmp_path):
    """Inner products rank as the base's cosine before training; the checkpoint has the trained
    layer, and one more.
    """
    lengths = {'max_query_length': 8}
    plain, instances = task_and_instances(tiny_recipe('repbert', ranking=lengths), 4)
    recipe = tiny_recipe(
        'repbert', ranking=lengths, adapter=adapter, training={'unit_layer': True, 'scale': 4.0}
    )
    task, _ = task_and_instances(recipe, 4)
    batch = task.collate(instances)
    sides = [[batch.get(f'{side}_{name}') for name in ENCODED] for side in ('query', 'passage')]
    with torch.no_grad():
        base, own = (
            [model.eval()(*side) for side in sides] for model in (plain.ranker, task.ranker)
        )
    cosine = torch.nn.functional.cosine_similarity(base[0][:, None], base[1][None], dim=2)
    ours = own[0] @ own[1].T / own[1].norm(dim=1).mean() ** 2
    torch.testing.assert_close(ours, cosine, atol=0.05, rtol=0)
    folder = train(recipe, tmp_path / 'unit', device='cpu').folder
    opened = open_checkpoint(folder)
    assert opened.config['num_hidden_layers'] == plain.ranker.bert.config.num_hidden_layers + 1
    model = load_model(lambda: RepBert(BertConfig.from_dict(opened.config)), opened)
    with torch.no_grad():
        kept = model(*sides[1])
    spread = kept.norm(dim=1).std() / kept.norm(dim=1).mean()
    assert 3 * spread < base[1].norm(dim=1).std() / base[1].norm(dim=1).mean()
    with pytest.raises(InputError, match='has a unit layer: leave training.unit_layer out'):
        train(
            tiny_recipe('repbert', base=str(folder), training={'unit_layer': True}),
            tmp_path / 'two',
            device='cpu',
        )


def test_a_checkpoint_scores_as_the_model_in_training_did(tiny_recipe, tmp_path):
    """An adapter with a learned scale, folded into the last layer norm, over its base."""
    recipe = tiny_recipe(
        'repbert', ranking={'max_query_length': 8}, adapter={'rank': 2}, training={'scale': 9.0}
    )
    task, _ = task_and_instances(recipe, 1)
    for name, parameter in task.ranker.named_parameters():
        if 'lora_B' in name:
            parameter.data.normal_(std=0.1)
    (tmp_path / 'out').mkdir()
    write_checkpoint(tmp_path / 'out', task, open_base(recipe.base))
    with torch.no_grad():
        query = tasks.outputs(
            task.ranker.eval(), tasks.padded(task.tokenizer.single(['cat mat'], 8, 0), 0)
        )
    encoded, base = (
        RepBertQueryEncoder(path).encode('cat mat') for path in (tmp_path / 'out', recipe.base)
    )
    np.testing.assert_allclose(encoded, 3.0 * query[0].numpy(), atol=1e-4)
    assert not np.allclose(encoded, 3.0 * base, atol=1e-2)


def test_a_scale_is_chosen_from_scores():
    """Differences of a relevant and another passage are 4, 6, 5 and 1, of which a tenth lie below
    1.9.

    The others' scores 6, 4, 5 and 9 have a standard deviation of 1.87; then 6, -6, 5 and 9 have one
    of sqrt(32.25).
    """
    scores = torch.tensor([[10.0, 6.0, 4.0], [5.0, 10.0, 9.0]])
    relevant = torch.tensor([[True, False, False], [False, True, False]])
    assert repbert.fitting_scale(scores, relevant) == pytest.approx(1 / 1.9)
    scores[0, 2] -= 10
    assert repbert.fitting_scale(scores, relevant) == pytest.approx(1 / 32.25**0.5)
    assert repbert.fitting_scale(scores[:1, :1], relevant[:1, :1]) == 1.0  # no other passage


def test_an_adapter_goes_on_from_another(tiny_recipe, tmp_path):
    """duoBERT from monoBERT's adapter: its low-rank updates, pooler and classifier, and a third
    type of its own.
    """
    adapter = {'rank': 2, 'alpha': 4}
    lengths = {'max_query_length': 8, 'max_length': 48}
    train(
        tiny_recipe('monobert', ranking=lengths, adapter=adapter), tmp_path / 'mono', device='cpu'
    )
    started = tiny_recipe(
        'duobert', ranking=lengths, adapter={**adapter, 'start': str(tmp_path / 'mono')}
    )
    mono = open_checkpoint(tmp_path / 'mono').tensors()
    duo, _ = task_and_instances(started, 1)
    own = duo.ranker.state_dict()
    kept = load_file(tmp_path / 'mono/adapter_model.safetensors')
    update = 'bert.encoder.layer.0.attention.self.query.lora_B'
    assert kept[f'base_model.model.{update}.weight'].abs().max() > 0
    torch.testing.assert_close(
        own[f'{update}.default.weight'], kept[f'base_model.model.{update}.weight']
    )
    for name in ('classifier.weight', 'bert.pooler.dense.weight'):
        torch.testing.assert_close(own[name], mono[name])
    assert len(own['bert.embeddings.token_type_embeddings.weight']) == 3
    train(started, tmp_path / 'duo', device='cpu')
    assert f'start: {tmp_path / "mono"}' in (tmp_path / 'duo/README.md').read_text(encoding='utf-8')


def test_knrm_begins_with_the_scores_of_the_vanilla_bert_it_starts_from(tiny_recipe, tmp_path):
    sizes = {'max_query_length': 6, 'max_doc_length': 40}
    train(
        tiny_recipe('cedr', ranking={**sizes, 'architecture': 'vanilla'}),
        tmp_path / 'vanilla',
        device='cpu',
    )

    def begun(**ranking):
        training = {'vanilla_head': True}
        return tiny_recipe(
            'cedr', base=str(tmp_path / 'vanilla'), ranking={**sizes, **ranking}, training=training
        )

    task, instances = task_and_instances(begun(architecture='knrm'), 3)
    query = 'cat mat'
    texts = [task.sources[0].texts([one.docids[0]])[0] for one in instances]
    (tmp_path / 'knrm').mkdir()
    write_checkpoint(tmp_path / 'knrm', task, open_base(str(tmp_path / 'vanilla')))
    candidates = [Candidate(str(number), 0.0, text) for number, text in enumerate(texts)]
    scores = [
        [(one.docid, one.score) for one in CedrReranker(tmp_path / name).rerank(query, candidates)]
        for name in ('vanilla', 'knrm')
    ]
    assert [docid for docid, _ in scores[0]] == [docid for docid, _ in scores[1]]
    assert [score for _, score in scores[1]] == pytest.approx(
        [score for _, score in scores[0]], abs=1e-5
    )
    for ranking in ({'architecture': 'knrm', 'joint': False}, {'architecture': 'pacrr'}):
        with pytest.raises(InputError, match='vanilla_head is for KNRM with'):
            task_and_instances(begun(**ranking), 1)
