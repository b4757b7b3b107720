"""Loading a checkpoint's weights into a model: no parameter may be missing, no weight left over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.models.checkpoints.folder import Checkpoint

Model = TypeVar('Model', bound=nn.Module)


@contextmanager
def without_weights() -> Iterator[None]:
    """In this context, modules are made without weights: their parameters are on the meta device,
    not initialised.

    PyTorch's initialisers are skipped. Filling weights only to replace them takes 2.5 seconds for
    BERT-Base and 10 for BERT-Large, this 0.05; on the meta device, an initialiser imports
    `torch._dynamo`, 2.7 seconds (two shared cores).
    """
    with torch.device('meta'), _WithoutInitialisers():
        yield


class _WithoutInitialisers(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if getattr(func, '__module__', None) == 'torch.nn.init':
            return args[0] if args else given['tensor']
        return func(*args, **given)


def load_model(
    make: Callable[[], Model],
    checkpoint: Checkpoint,
    tied: Mapping[str, str] | None = None,
    tensors: Mapping[str, Tensor] | None = None,
) -> Model:
    """The model that `make` builds, with a checkpoint's weights: float32, on the CPU, in evaluation
    mode.

    Only `bert.pooler.*` and `tied` tensors may be left over, if their shapes are right. Raises
    DamagedFileError naming the missing, unexpected or misshapen tensors.

    `tied` is {name of a tensor: the parameter that it repeats}. `tensors` are the checkpoint's, if
    already read; those in float32 become the parameters themselves, uncopied.
    """
    with without_weights():
        model = make()
    tensors = checkpoint.tensors() if tensors is None else tensors
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    hidden = checkpoint.config.get('hidden_size')
    pooler = {'bert.pooler.dense.weight': (hidden, hidden), 'bert.pooler.dense.bias': (hidden,)}
    allowed = {name: shape for name, shape in pooler.items() if name not in shapes}
    allowed |= {name: shapes[of] for name, of in (tied or {}).items() if name not in shapes}
    missing = sorted(shapes.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - shapes.keys() - allowed.keys())
    misshapen = sorted(
        f'{name} {tuple(tensors[name].shape)} instead of {shape}'
        for name, shape in (shapes | allowed).items()
        if name in tensors and tuple(tensors[name].shape) != shape
    )
    problems = [
        f'{what}: {", ".join(names[:3])}{f" and {len(names) - 3} more" if len(names) > 3 else ""}'
        for what, names in (
            ('missing', missing),
            ('unexpected', unexpected),
            ('of another shape', misshapen),
        )
        if names
    ]
    if problems:
        raise DamagedFileError(
            f"checkpoint '{checkpoint.name}' does not fit its model: {'; '.join(problems)}"
        )
    model.load_state_dict(
        {name: tensors[name].to(torch.float32).contiguous() for name in shapes}, assign=True
    )
    return model.eval()
