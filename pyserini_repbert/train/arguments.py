"""A recipe's settings as the Trainer and the optimizer take them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn
from transformers import TrainingArguments

from pyserini_repbert.train.output import METRIC
from pyserini_repbert.train.recipe import Recipe, Training
from pyserini_repbert.train.tasks.base import Task


def training_arguments(recipe: Recipe, task: Task, folder: Path, device: str, quiet: bool) -> TrainingArguments:
    """The Trainer's arguments for a recipe. With a validation, a checkpoint is written whenever it runs."""
    settings, validation = recipe.training, recipe.validation
    every = {'eval_strategy': 'no', 'save_steps': settings.save_every}
    if validation is not None:
        every = {
            'eval_strategy': 'steps',
            'eval_steps': validation.every,
            'save_steps': validation.every,
            'load_best_model_at_end': True,
            'metric_for_best_model': METRIC,
            'greater_is_better': True,
        }
    return TrainingArguments(
        output_dir=str(folder),
        max_steps=settings.steps,
        per_device_train_batch_size=settings.batch_size // task.inputs_per_instance,
        gradient_accumulation_steps=settings.accumulate,
        learning_rate=settings.learning_rate,
        lr_scheduler_type='linear' if settings.schedule == 'linear' else 'constant_with_warmup',
        warmup_steps=settings.warmup_steps,
        max_grad_norm=settings.max_grad_norm,
        bf16=settings.precision == 'bfloat16',
        fp16=settings.precision == 'float16',
        seed=settings.seed,
        logging_steps=settings.log_every,
        logging_nan_inf_filter=False,
        save_total_limit=2,
        remove_unused_columns=False,
        ignore_data_skip=True,
        restore_callback_states_from_checkpoint=True,
        accelerator_config={'dispatch_batches': False, 'split_batches': False},
        dataloader_num_workers=settings.workers,
        ddp_find_unused_parameters=recipe.system in ('epic', 'cedr'),
        report_to='none',
        use_cpu=device == 'cpu',
        disable_tqdm=quiet,
        **every,
    )


def parameter_groups(model: nn.Module, settings: Training) -> list[dict[str, Any]]:
    """Heads have a learning rate of their own; biases, layer norms and scalars have no weight decay."""
    rates = {False: settings.learning_rate, True: settings.head_learning_rate or settings.learning_rate}
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            groups.setdefault((not name.startswith('ranker.bert.'), parameter.ndim > 1), []).append(parameter)
    return [
        {'params': own, 'lr': rates[head], 'weight_decay': settings.weight_decay if decay else 0.0}
        for (head, decay), own in groups.items()
    ]
