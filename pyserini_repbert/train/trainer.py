"""Hugging Face's Trainer, fed with a stream of instances and validated by ranking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn
from transformers.integrations import TensorBoardCallback
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.tasks.task import Batch, Task
from pyserini_repbert.train.csv_log import CsvLog
from pyserini_repbert.train.forms import EVENTS, LOG
from pyserini_repbert.train.optimizing import new_optimizer, new_schedule
from pyserini_repbert.train.output import is_first
from pyserini_repbert.train.result import METRIC
from pyserini_repbert.train.states import seal_state
from pyserini_repbert.train.stream import InstanceStream
from pyserini_repbert.train.validation import Validator

GPU_WORKERS = 4  # processes that prepare a GPU's batches, where the recipe does not say


class RankingTrainer(transformers.Trainer):  # type: ignore[misc]
    """The Trainer for a task.

    Parameters
    ----------
    task : what is trained
    stream : its instances
    validator : measures the model during training; None without a validation
    base : the checkpoint that the model started from
    folder : of checkpoints and logs
    device, quiet, tensorboard : as in `train`
    """

    def __init__(
        self,
        task: Task,
        stream: InstanceStream,
        validator: Validator | None,
        base: Checkpoint,
        folder: Path,
        device: str = 'auto',
        quiet: bool = False,
        tensorboard: bool = False,
    ) -> None:
        self.base = base
        self.stream = stream
        self.validator = validator
        self.restored: Path | None = None
        self.control: Any
        recipe = task.recipe
        args = training_arguments(task, folder, device, quiet)
        stream.chunk = args.per_device_train_batch_size * args.world_size
        self.per_step = stream.chunk * args.gradient_accumulation_steps
        pairs_per_instance = task.inputs_per_instance * max(1, recipe.training.group)
        self.csv = CsvLog(folder / LOG, self.per_step * pairs_per_instance)
        callbacks: list[transformers.TrainerCallback] = [self.csv]
        if tensorboard and is_first():
            from torch.utils.tensorboard import SummaryWriter

            callbacks.append(TensorBoardCallback(SummaryWriter(str(folder / EVENTS))))
        if recipe.validation is not None and recipe.validation.patience:
            callbacks.append(transformers.EarlyStoppingCallback(recipe.validation.patience))
        optimizer = new_optimizer(task, recipe)
        super().__init__(
            model=task,
            args=args,
            data_collator=task.collate,
            train_dataset=stream,
            eval_dataset=[] if validator else None,
            callbacks=callbacks,
            optimizers=(optimizer, new_schedule(optimizer, recipe.training)),
        )
        self.remove_callback(transformers.PrinterCallback)
        if quiet:
            self.remove_callback(transformers.ProgressCallback)

    def run(self, checkpoint: Path | None) -> None:
        """Train, or continue from one of the Trainer's checkpoints.

        The model is then the last, or the best validated.
        """
        if checkpoint is None:
            self.args.eval_on_start = self.validator is not None
            self.train()
            return
        state = transformers.TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
        if not state.stateful_callbacks['TrainerControl']['args']['should_training_stop']:
            self.restored = checkpoint
            self.stream.position = state.global_step * self.per_step
            self.train(resume_from_checkpoint=str(checkpoint))
            return
        # The state is of the last step, and the Trainer would do one more.
        self.state = state
        self.csv.on_train_begin(self.args, state, self.control)
        self._load_from_checkpoint(state.best_model_checkpoint or str(checkpoint))
        self.accelerator.wait_for_everyone()

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> Any:
        """The next batches; after resuming, random states are restored once more: opening a data
        loader draws a number.

        Raises a worker process's error without PyTorch's traceback.
        """
        try:
            batches = super().get_batch_samples(*args, **kwargs)
        except PyseriniRepbertError as error:
            if not str(error).startswith('Caught '):
                raise
            last_line = str(error).rstrip().splitlines()[-1]
            _, _, message = last_line.partition(': ')
            raise type(error)(message) from error
        if self.restored is not None:
            self._load_rng_state(str(self.restored))
            self.restored = None
        return batches

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        """Save a state; its checksums come last, when all processes have written their files."""
        super()._save_checkpoint(*args, **kwargs)
        self.accelerator.wait_for_everyone()
        if self.args.should_save:
            name = f'{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}'
            seal_state(Path(self.args.output_dir) / name)

    def compute_loss(self, model: nn.Module, inputs: Batch, *args: Any, **kwargs: Any) -> Any:
        return model(inputs)

    def floating_point_ops(self, inputs: Batch) -> float:
        """Operations of a step's matrix products, by the usual estimate: 6 a token and weight of
        the layers.

        4 where the weight is frozen: the batch goes forward and gradients go back through it.
        Padding counts.
        """
        n_tokens = 0
        for part in (inputs, *inputs.get('groups', ())):
            n_tokens += sum(ids.numel() for name, ids in part.items() if name.endswith('input_ids'))
        per_token = 0.0
        for name, weight in self.model.named_parameters():
            if weight.ndim == 2 and 'embeddings' not in name:
                per_token += weight.numel() * (6.0 if weight.requires_grad else 4.0)
        return n_tokens * per_token

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Rank and measure the validation topics; for the best trained model so far, also how
        many hits to rerank.
        """
        assert self.validator is not None
        task = self.accelerator.unwrap_model(self.model)
        metrics = {METRIC: self.validator.measure(task, self.base)}
        before = self.state.best_metric
        if self.state.global_step and (before is None or metrics[METRIC] > before):
            metrics |= self.validator.cutoff()
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics


def training_arguments(
    task: Task, folder: Path, device: str, quiet: bool
) -> transformers.TrainingArguments:
    """The Trainer's arguments for a task.

    With a validation, a checkpoint is written whenever it runs.

    Parameters
    ----------
    task : what is trained
    folder : of checkpoints
    device, quiet : as in `train`
    """
    settings = task.recipe.training
    validation = task.recipe.validation
    on_gpu = device != 'cpu' and torch.cuda.is_available()
    every = settings.save_every if validation is None else validation.every
    workers = settings.workers
    if workers is None:
        workers = GPU_WORKERS if on_gpu else 0
    return transformers.TrainingArguments(
        output_dir=str(folder),
        max_steps=settings.steps,
        per_device_train_batch_size=settings.batch_size // task.inputs_per_instance,
        gradient_accumulation_steps=settings.accumulate,
        learning_rate=settings.learning_rate,
        max_grad_norm=settings.max_grad_norm,
        bf16=settings.precision == 'bfloat16',
        fp16=settings.precision == 'float16',
        seed=settings.seed,
        logging_steps=settings.log_every,
        logging_nan_inf_filter=False,
        remove_unused_columns=False,
        ignore_data_skip=True,
        restore_callback_states_from_checkpoint=True,
        accelerator_config={
            'dispatch_batches': False,
            'split_batches': False,
            'non_blocking': on_gpu,
        },
        dataloader_num_workers=workers,
        dataloader_pin_memory=on_gpu,
        ddp_find_unused_parameters=task.leaves_weights_unused,
        report_to='none',
        use_cpu=device == 'cpu',
        disable_tqdm=quiet,
        eval_strategy='no' if validation is None else 'steps',
        eval_steps=every,
        save_steps=every,
        load_best_model_at_end=validation is not None,
        metric_for_best_model=METRIC,
        greater_is_better=True,
    )
