"""RepBERT's loss against MultiLabelMarginLoss as RepBERT-Index calls it."""

import json
from pathlib import Path

import pytest
import torch

from pyserini_repbert.tasks.losses import multi_label_margin

GOLDEN = json.loads(
    (Path(__file__).parent / 'repbert' / 'golden_loss.json').read_text(encoding='utf-8')
)
pytestmark = pytest.mark.parity


def positives(labels):
    matrix = torch.zeros(len(labels), len(labels[0]), dtype=torch.bool)
    for row, columns in enumerate(labels):
        for column in columns:
            if column >= 0:
                matrix[row, column] = True
    return matrix


@pytest.mark.parametrize('name', GOLDEN['cases'])
def test_loss_and_gradients_equal_the_originals(name):
    case = GOLDEN['cases'][name]
    similarities = torch.tensor(case['similarities'], requires_grad=True)
    labels = positives(case['labels_matrix'])
    loss = multi_label_margin(similarities, labels)
    loss.backward()
    assert loss.item() == pytest.approx(case['loss'], abs=1e-5)
    torch.testing.assert_close(
        similarities.grad, torch.tensor(case['grad_similarities']), atol=1e-6, rtol=1e-5
    )
    rows = [
        multi_label_margin(similarities[row : row + 1], labels[row : row + 1]).item()
        for row in range(len(labels))
    ]
    assert rows == pytest.approx(case['per_row_loss'], abs=1e-5)


def test_labels_equal_the_originals():
    """The positives of a row are the passages in the batch that are relevant to its query."""
    for case in GOLDEN['cases'].values():
        docs = [row['doc'] for row in case['rows']]
        expected = [[doc in row['relevant_docs'] for doc in docs] for row in case['rows']]
        assert positives(case['labels_matrix']).tolist() == expected


@pytest.mark.parametrize('case', GOLDEN['pure'], ids=str)
def test_loss_of_matrices_equals_the_originals(case):
    loss = multi_label_margin(torch.tensor(case['similarities']), positives(case['labels']))
    assert loss.item() == pytest.approx(case['loss'], abs=1e-6)
