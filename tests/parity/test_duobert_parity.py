"""duoBERT against the authors' TensorFlow code."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from pyserini_repbert.models.attention import PaddedBatch
from pyserini_repbert.models.batching import run_batched
from pyserini_repbert.models.cross_encoder import log_probabilities
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import DuoBertReranker, aggregate
from pyserini_repbert.systems.duobert.inputs import TripleLayout

HERE = Path(__file__).parent / 'duobert'
HEAD = HERE / 'weights.safetensors'
pytestmark = pytest.mark.parity


@pytest.fixture(scope='module')
def tasks():
    return json.loads(gzip.decompress((HERE / 'inputs.json.gz').read_bytes()))['tasks']


@pytest.fixture(scope='module')
def golden():
    return json.loads((HERE / 'golden.json').read_text(encoding='utf-8'))['tasks']


@pytest.mark.parametrize('layout', list(TripleLayout))
def test_inputs_and_probabilities_equal_the_originals(layout, tasks, golden, checkpoint_folder):
    reranker = DuoBertReranker(
        checkpoint_folder('duobert', HEAD, {'type_vocab_size': 3}), layout=layout
    )
    for task, expected in zip(tasks, golden, strict=True):
        query, *texts = reranker.tokenizer.ids(
            [task['query'], *(document['text'] for document in task['docs'])]
        )
        for case in task['variants'][layout]:
            sequence = reranker.inputs.build(query, texts[case['i']], texts[case['j']]).sequence
            assert sequence.input_ids == case['input_ids'], (task['id'], case['i'], case['j'])
            assert sequence.token_type_ids == case['token_type_ids'], (
                task['id'],
                case['i'],
                case['j'],
            )
        candidates = [Candidate(document['id'], 0.0, document['text']) for document in task['docs']]
        (differences,) = reranker.pair_differences([task['query']], [candidates])
        found = np.exp(log_probabilities(differences))
        reference = np.array(expected[layout]['p'], dtype=float)
        np.testing.assert_allclose(found, reference, atol=1e-4, rtol=1e-4)
        assert np.isnan(np.diagonal(found)).all()
        for method in ('SUM', 'BINARY', 'MIN', 'MAX'):
            aggregated = expected[layout]['aggregated'][method]
            np.testing.assert_allclose(
                aggregate(found, method.lower()), aggregated, atol=4e-4, err_msg=method
            )
            ours = DuoBertReranker(reranker.checkpoint, layout=layout, method=method.lower())
            order = [candidate.docid for candidate in ours.rerank(task['query'], candidates)]
            by_score = sorted(
                range(len(candidates)), key=lambda i: -round(aggregated[i], 9)
            )  # ties as they came
            assert order == [candidates[i].docid for i in by_score], method


def test_a_body_of_two_token_types_has_a_zero_third(tasks, checkpoint_folder):
    import torch
    from safetensors.torch import load_file

    types = 'bert.embeddings.token_type_embeddings.weight'
    two = DuoBertReranker(checkpoint_folder('duobert', HEAD, {}, {types: None}))
    base = load_file(HERE.parent / 'base' / 'weights.safetensors')[
        'embeddings.token_type_embeddings.weight'
    ].float()
    weight = two._forward.bert.embeddings.token_type_embeddings.weight
    torch.testing.assert_close(weight.detach(), torch.cat([base, torch.zeros(1, base.shape[1])]))
    task = tasks[0]
    case = task['variants']['paper'][0]
    query, *texts = two.tokenizer.ids(
        [task['query'], *(document['text'] for document in task['docs'])]
    )
    sequence = two.inputs.build(query, texts[0], texts[1]).sequence
    assert sequence.token_type_ids == case['token_type_ids']
    ours = run_batched(two._forward, [sequence], 0, 'cpu')
    bert = two._forward.bert
    with (
        torch.inference_mode()
    ):  # the one-hot product of the original: a row of zeros for a segment beyond the table
        one_hot = torch.nn.functional.one_hot(torch.tensor(sequence.token_type_ids), 3)[
            :, :2
        ].float()
        words = bert.embeddings.word_embeddings(torch.tensor(sequence.input_ids))
        summed = (
            words
            + one_hot @ base
            + bert.embeddings.position_embeddings.weight[: len(sequence.input_ids)]
        )
        hidden = bert.embeddings.LayerNorm(summed)[None]
        for layer in bert.encoder.layer:
            hidden = layer(hidden, PaddedBatch(None, None))
        expected = two._forward.classifier(bert.pooler(hidden))
    np.testing.assert_allclose(ours, expected.numpy(), atol=1e-5)
