import numpy as np
import torch
from hypothesis import given, strategies as st

from pyserini_repbert.models.batching import collate, length_batches, run_batched
from pyserini_repbert.models.tokenizer import TokenSequence


@given(
    st.lists(st.integers(1, 50), max_size=60), st.integers(1, 120), st.sampled_from(['cpu', 'cuda'])
)
def test_every_position_is_in_one_batch_within_the_budget(lengths, budget, device):
    batches = length_batches(lengths, budget, device)
    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    for batch in batches:
        assert (
            len(batch) == 1 or len(batch) * max(lengths[position] for position in batch) <= budget
        )


def test_a_batch_on_a_cpu_ends_where_padding_costs_more_than_another():
    lengths = [10] * 20 + [50, 51]
    alike = list(range(20))
    assert length_batches(lengths, 2048, 'cpu') == [alike, [20, 21]]
    assert length_batches(lengths, 2048, 'cuda') == [[*alike, 20, 21]]


def test_collate_pads_and_masks_only_where_needed():
    long = TokenSequence([5, 6, 7], [1, 1, 1])
    short = TokenSequence([8], [1])
    ids, types, mask = collate([long, short], 9, 'cpu')
    assert ids.tolist() == [[5, 6, 7], [8, 9, 9]]
    assert types.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert mask is not None and mask.tolist() == [[True] * 3, [True, False, False]]
    assert collate([long, long], 9, 'cpu')[2] is None


def test_results_come_back_in_order_with_progress():
    sequences = [
        TokenSequence([number] * (number % 4 + 1), [0] * (number % 4 + 1)) for number in range(10)
    ]
    done = []
    result = run_batched(
        lambda ids, types, mask=None: ids[:, :1], sequences, 0, 'cpu', 6, done.append
    )
    assert result[:, 0].tolist() == list(range(10)) and result.dtype == np.float32
    assert sum(done) == 10
    assert run_batched(lambda ids, types, mask=None: ids, [], 0, 'cpu').shape == (0,)


def test_a_batch_that_does_not_fit_in_memory_is_split():
    def forward(ids, types, mask=None):
        if len(ids) > 2:
            raise torch.OutOfMemoryError('no memory')
        return ids

    sequences = [TokenSequence([number, number], [0, 0]) for number in range(9)]
    assert run_batched(forward, sequences, 0, 'cpu', 100)[:, 0].tolist() == list(range(9))
