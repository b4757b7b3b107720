"""What changes the weights: the groups of parameters, the optimizer, and the learning rate's
schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from pyserini_repbert.errors import InputError
from pyserini_repbert.tasks.recipe import Recipe, Training

_BODY = 'ranker.bert.'
# Of BERT's TensorFlow code (optimization.py of google-research/bert), which the authors of
# monoBERT and duoBERT use.
_BETAS = (0.9, 0.999)
_BERT_EPSILON = 1e-6


def freeze_body(model: nn.Module) -> None:
    """Do not train BERT's weights."""
    for name, parameter in model.named_parameters():
        if name.startswith(_BODY):
            parameter.requires_grad_(False)


def parameter_groups(model: nn.Module, settings: Training) -> list[dict[str, Any]]:
    """Heads have a separate learning rate; biases, layer norms and scalars have no weight
    decay.
    """
    rates = {
        False: settings.learning_rate,
        True: settings.head_learning_rate or settings.learning_rate,
    }
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            is_head = not name.startswith(_BODY)
            groups.setdefault((is_head, parameter.ndim > 1), []).append(parameter)
    return [
        {
            'params': parameters,
            'lr': rates[head],
            'weight_decay': settings.weight_decay if decay else 0.0,
        }
        for (head, decay), parameters in groups.items()
    ]


def new_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """The recipe's optimizer. Raises InputError if nothing would be trained."""
    groups = parameter_groups(model, recipe.training)
    if not groups:
        raise InputError(
            f"recipe '{recipe.name}': training.learning_rate is 0, which leaves BERT as it is, "
            f'and {recipe.system} adds nothing to it that could be trained: give another rate'
        )
    if recipe.training.optimizer == 'bert':
        return BertAdam(groups)
    return torch.optim.AdamW(groups, fused=True)


def new_schedule(optimizer: torch.optim.Optimizer, settings: Training) -> LambdaLR:
    """The schedule of the learning rate, which `rate_factor` multiplies."""
    return LambdaLR(optimizer, partial(rate_factor, settings=settings))


def rate_factor(step: int, settings: Training) -> float:
    """What the learning rate is multiplied by at a step, from 0.

    It rises to 1 in the warm-up. Then it stays there ('constant'); falls to 0 at `schedule_steps`
    ('linear'); or falls to 0 on the line that began with 1 at step 0 ('bert').
    """
    warmup = settings.warmup_steps
    if step < warmup:
        return step / warmup
    if settings.schedule == 'constant':
        return 1.0
    total = settings.schedule_steps or settings.steps
    start = 0 if settings.schedule == 'bert' else warmup
    return max(0.0, (total - step) / max(1, total - start))


class BertAdam(torch.optim.Optimizer):
    """Adam without bias correction and with decoupled weight decay, as BERT's TensorFlow code
    has it (AdamWeightDecayOptimizer).

    m and v are moving means of gradients and of their squares. A weight w changes by
    -rate · (m / (sqrt(v) + 1e-6) + decay · w).
    """

    def __init__(self, groups: Iterable[dict[str, Any]]) -> None:
        super().__init__(groups, {})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Change the weights once; `closure` computes the loss again."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group['params']:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)
        return loss

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state['mean'] = torch.zeros_like(parameter)
            state['square'] = torch.zeros_like(parameter)
        state['mean'].lerp_(gradient, 1 - _BETAS[0])
        state['square'].lerp_(gradient.square(), 1 - _BETAS[1])
        change = state['mean'] / (state['square'].sqrt() + _BERT_EPSILON)
        change.add_(parameter, alpha=group['weight_decay'])
        parameter.add_(change, alpha=-group['lr'])
