"""Hugging Face's Trainer, fed with a stream of instances and judged by ranking."""

from __future__ import annotations

import csv
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

from pyserini_repbert.files import atomic_file
from pyserini_repbert.models.checkpoint import Checkpoint
from pyserini_repbert.train.recipe import Recipe
from pyserini_repbert.train.sources import Instance, InstanceStream
from pyserini_repbert.train.tasks.base import Batch, Task
from pyserini_repbert.train.validation import Validator

METRIC = 'eval_measure'
LOG = 'log.csv'
_COLUMNS = ('step', 'loss', 'grad_norm', 'learning_rate', METRIC)


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


class CsvLog(TrainerCallback):  # type: ignore[misc]
    """Writes losses, learning rates and validation results to a CSV file; a resumed training goes on where it was."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Keep the lines of the steps that are not done again."""
        if not state.is_world_process_zero:
            return
        kept = (
            [row for row in read_log(self.path) if int(row['step']) <= state.global_step] if state.global_step else []
        )
        with atomic_file(self.path) as stream:
            writer = csv.DictWriter(stream, _COLUMNS, lineterminator='\n')
            writer.writeheader()
            writer.writerows(kept)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """One line."""
        known = {name: value for name, value in (logs or {}).items() if name in _COLUMNS}
        if not state.is_world_process_zero or not known:
            return
        with open(self.path, 'a', encoding='utf-8', newline='') as stream:
            csv.DictWriter(stream, _COLUMNS, lineterminator='\n').writerow({'step': state.global_step, **known})


def read_log(path: Path) -> list[dict[str, str]]:
    """The lines of a training's log, none where there is no log yet."""
    if not path.is_file():
        return []
    with open(path, encoding='utf-8', newline='') as stream:
        return list(csv.DictReader(stream))


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
    tensorboard : write TensorBoard's logs too
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
        args = training_arguments(recipe, task, folder, device, quiet, tensorboard)
        self.per_step = args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size
        self.stream_data = StreamDataset(stream, args.per_device_train_batch_size * args.world_size)
        callbacks: list[TrainerCallback] = [CsvLog(folder / LOG)]
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
            )
        return self.optimizer

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Rank the validation topics."""
        metrics: dict[str, float] = {}
        if self.validator is not None:
            task = self.accelerator.unwrap_model(self.model)
            metrics = {METRIC: self.validator.measure(task, self.base, self.recipe.adapter)}
            self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


def training_arguments(
    recipe: Recipe, task: Task, folder: Path, device: str, quiet: bool, tensorboard: bool
) -> TrainingArguments:
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
        report_to=['tensorboard'] if tensorboard else 'none',
        use_cpu=device == 'cpu',
        disable_tqdm=quiet,
        **every,
    )
