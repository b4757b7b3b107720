import pytest
import torch
from safetensors.torch import save_file

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.models.checkpoints.weights import read_weights

TENSORS = {
    'b.odd': torch.arange(3, dtype=torch.uint8),  # what follows begins at no multiple of four
    'a.matrix': torch.arange(35, dtype=torch.float32).reshape(5, 7),
    'half': torch.tensor([[1.5, -2.25]], dtype=torch.float16),
    'brain': torch.tensor([0.1, 3e38], dtype=torch.bfloat16),
    'number': torch.tensor(7, dtype=torch.int64),
    'flags': torch.tensor([True, False]),
    'eight': torch.tensor([0.5, 448.0]).to(torch.float8_e4m3fn),
    'none': torch.zeros(0, 4),
}


@pytest.fixture
def file(tmp_path):
    save_file(TENSORS, tmp_path / 'w.safetensors', metadata={'format': 'pt'})
    return tmp_path / 'w.safetensors'


def test_tensors_are_those_that_were_written(file):
    found = read_weights(file)
    assert found.keys() == TENSORS.keys()
    for name, value in TENSORS.items():
        assert found[name].dtype is value.dtype
        assert found[name].shape == value.shape
        assert (
            found[name].view(torch.uint8).equal(value.view(torch.uint8))
            if value.dim()
            else found[name] == value
        )


def test_what_is_mapped_is_the_same_and_leaves_the_file_alone(file):
    before = file.read_bytes()
    for ending in ('matrix', 'half', 'none', 'eight'):
        found = read_weights(file, ending)
        for name, value in TENSORS.items():
            assert found[name].dtype is value.dtype and found[name].shape == value.shape
            assert bytes(found[name].reshape(-1).view(torch.uint8)) == bytes(
                value.reshape(-1).view(torch.uint8)
            )
            found[name].zero_()
    assert file.read_bytes() == before


@pytest.mark.parametrize('keep', [0, 7, 60, -1])
def test_a_file_that_was_cut_is_damaged(file, keep):
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(DamagedFileError, match='is damaged'):
        read_weights(file)
