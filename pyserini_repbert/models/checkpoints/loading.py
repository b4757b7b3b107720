"""Loading a checkpoint's weights into a model: no parameter may be missing, no weight left over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.models.checkpoints.folder import Checkpoint

Model = TypeVar('Model', bound=nn.Module)
_Shapes = dict[str, tuple[Any, ...]]
_SHOWN = 3  # names of tensors in an error


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
            if args:
                return args[0]
            return given['tensor']
        return func(*args, **given)


def load_model(
    make: Callable[[], Model],
    checkpoint: Checkpoint,
    tied: Mapping[str, str] | None = None,
    tensors: Mapping[str, Tensor] | None = None,
) -> Model:
    """The model that `make` builds, with a checkpoint's weights: float32, on the CPU, in evaluation
    mode.

    Only `bert.pooler.*` and `tied` tensors may be left over, if their shapes are right.

    Parameters
    ----------
    make : builds the model
    checkpoint : has the weights
    tied : {name of a tensor: the parameter that it repeats}
    tensors : the checkpoint's, if already read; those in float32 become the parameters themselves,
        uncopied

    Raises DamagedFileError naming the missing, unexpected or misshapen tensors.
    """
    with without_weights():
        model = make()
    if tensors is None:
        tensors = checkpoint.tensors()
    shapes = _shapes_of(model.state_dict())
    unused = _unused_shapes(shapes, checkpoint.config.get('hidden_size'), tied or {})
    problems = _problems(_shapes_of(tensors), shapes, unused)
    if problems:
        raise DamagedFileError(
            f"checkpoint '{checkpoint.name}' does not fit its model: {'; '.join(problems)}"
        )
    weights = {name: tensors[name].to(torch.float32).contiguous() for name in shapes}
    model.load_state_dict(weights, assign=True)
    return model.eval()


def _shapes_of(tensors: Mapping[str, Tensor]) -> _Shapes:
    return {name: tuple(value.shape) for name, value in tensors.items()}


def _unused_shapes(shapes: _Shapes, hidden: Any, tied: Mapping[str, str]) -> _Shapes:
    """The shapes of the tensors that a checkpoint may have although the model does not use them.

    Parameters
    ----------
    shapes : of the model's parameters
    hidden : the model's hidden size
    tied : as in `load_model`
    """
    unused: _Shapes = {
        'bert.pooler.dense.weight': (hidden, hidden),
        'bert.pooler.dense.bias': (hidden,),
    }
    for name, repeated in tied.items():
        unused[name] = shapes[repeated]
    return {name: shape for name, shape in unused.items() if name not in shapes}


def _problems(found: _Shapes, expected: _Shapes, unused: _Shapes) -> list[str]:
    """The errors in tensors of these shapes, with a phrase for each kind.

    Parameters
    ----------
    found : the shapes of a checkpoint's tensors
    expected : the shapes of the model's parameters
    unused : the shapes of tensors that the checkpoint may have beside them
    """
    misshapen = []
    for name, shape in (expected | unused).items():
        if name in found and found[name] != shape:
            misshapen.append(f'{name} {found[name]} instead of {shape}')
    names_by_problem = {
        'missing': expected.keys() - found.keys(),
        'unexpected': found.keys() - expected.keys() - unused.keys(),
        'of another shape': misshapen,
    }
    return [
        f'{problem}: {_first_names(sorted(names))}'
        for problem, names in names_by_problem.items()
        if names
    ]


def _first_names(names: Sequence[str]) -> str:
    """'a, b, c and 2 more'"""
    shown = ', '.join(names[:_SHOWN])
    more = len(names) - _SHOWN
    if more > 0:
        shown += f' and {more} more'
    return shown
