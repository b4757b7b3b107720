"""Hugging Face's Trainer, fed with a stream of instances and judged by ranking."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import IterableDataset, get_worker_info
from transformers import (
    EarlyStoppingCallback,
    PrinterCallback,
    ProgressCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from pyserini_repbert.models.checkpoint import Checkpoint
from pyserini_repbert.train.logs import AT_CUTOFF, CUTOFF, EVENTS, LOG, METRIC, CsvLog, EventLog
from pyserini_repbert.train.recipe import Recipe
from pyserini_repbert.train.sources import Instance, InstanceStream
from pyserini_repbert.train.tasks.base import Batch, Task
from pyserini_repbert.train.validation import Validator


class StreamDataset(IterableDataset[Instance]):
    """Instances from a position on; several worker processes take turns by `chunk`, which is a batch of all devices."""

    def __init__(self, stream: InstanceStream, chunk: int, position: int = 0) -> None:
        self.stream, self.chunk, self.position = stream, chunk, position

    def __iter__(self) -> Iterator[Instance]:
        found = self.stream.from_position(self.position)
        worker = get_worker_info()
        if worker is None:
            yield from found
            return
        for number in itertools.count():
            part = list(itertools.islice(found, self.chunk))
            if number % worker.num_workers == worker.id:
                yield from part


class RankingTrainer(Trainer):  # type: ignore[misc]
    """The Trainer for a task.

    Parameters
    ----------
    task, recipe : what is trained, and how
    stream : training instances
    validator : None for no validation
    base : what an adapter adapts, and where tokenizer files come from
    folder : for checkpoints and logs
    device : 'cpu', or 'auto' for whatever there is
    quiet : no progress bar
    tensorboard : write TensorBoard's event files too
    """

    def __init__(
        self,
        task: Task,
        recipe: Recipe,
        stream: InstanceStream,
        validator: Validator | None,
        base: Checkpoint,
        folder: Path,
        device: str = 'auto',
        quiet: bool = False,
        tensorboard: bool = False,
    ) -> None:
        self.recipe, self.validator, self.base = recipe, validator, base
        self.restored: Path | None = None
        self.optimizer: torch.optim.Optimizer | None
        self.control: Any
        args = training_arguments(recipe, task, folder, device, quiet)
        self.per_step = args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size
        self.stream_data = StreamDataset(stream, args.per_device_train_batch_size * args.world_size)
        callbacks: list[TrainerCallback] = [CsvLog(folder / LOG)]
        if tensorboard:
            callbacks.append(EventLog(folder / EVENTS))
        if recipe.validation is not None and recipe.validation.patience:
            callbacks.append(EarlyStoppingCallback(recipe.validation.patience))
        super().__init__(
            model=task,
            args=args,
            data_collator=task.collate,
            train_dataset=self.stream_data,
            eval_dataset=[] if validator else None,
            callbacks=callbacks,
        )
        self.remove_callback(PrinterCallback)
        if quiet:
            self.remove_callback(ProgressCallback)

    def run(self, checkpoint: Path | None) -> dict[str, float]:
        """Train, from a checkpoint of the Trainer's if one is given; gives the Trainer's final metrics."""
        self.restored = checkpoint
        path = None
        if checkpoint is not None:
            state = json.loads((checkpoint / 'trainer_state.json').read_text(encoding='utf-8'))
            self.stream_data.position = int(state['global_step']) * self.per_step
            path = str(checkpoint)
        result: dict[str, float] = self.train(resume_from_checkpoint=path).metrics
        return result

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> Any:
        """The next batches; the first time with random states restored anew: opening a data loader draws a number."""
        found = super().get_batch_samples(*args, **kwargs)
        if self.restored is not None:
            self._load_rng_state(str(self.restored))
            self.restored = None
        return found

    def compute_loss(
        self, model: nn.Module, inputs: Batch, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The loss of a batch."""
        loss: Tensor = model(inputs)
        return (loss, {}) if return_outputs else loss

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """AdamW; heads with their own learning rate, no decay for biases, layer norms and single numbers."""
        if self.optimizer is None:
            settings = self.recipe.training
            rates = {False: settings.learning_rate, True: settings.head_learning_rate or settings.learning_rate}
            groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
            for name, parameter in self.model.named_parameters():
                if parameter.requires_grad:
                    head = not name.startswith('ranker.bert.')
                    groups.setdefault((head, parameter.ndim > 1), []).append(parameter)
            self.optimizer = torch.optim.AdamW(
                [
                    {'params': own, 'lr': rates[head], 'weight_decay': settings.weight_decay if decay else 0.0}
                    for (head, decay), own in groups.items()
                ],
                lr=settings.learning_rate,
                betas=(0.9, 0.999),
                eps=1e-8,
                fused=True,
            )
        return self.optimizer

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Rank the validation topics; for the best model so far, find how many hits it should rerank too."""
        metrics: dict[str, float] = {}
        if self.validator is not None:
            task = self.accelerator.unwrap_model(self.model)
            metrics = {METRIC: self.validator.measure(task, self.base, self.recipe.adapter)}
            before = self.state.best_metric
            if (before is None or metrics[METRIC] > before) and (tuned := self.validator.cutoff()):
                metrics |= {CUTOFF: tuned.best, AT_CUTOFF: tuned.values[tuned.best]}
            self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


def training_arguments(recipe: Recipe, task: Task, folder: Path, device: str, quiet: bool) -> TrainingArguments:
    """The Trainer's arguments for a recipe; where there is a validation, checkpoints are written when it runs."""
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
