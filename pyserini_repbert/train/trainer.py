"""Hugging Face's Trainer, fed with a stream of instances and validated by ranking."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    EarlyStoppingCallback,
    PrinterCallback,
    ProgressCallback,
    Trainer,
    TrainerCallback,
    TrainerState,
)
from transformers.integrations import TensorBoardCallback
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from pyserini_repbert.checksums import CHECKSUMS, summed_names, verify_checksums, write_checksums
from pyserini_repbert.errors import DamagedFileError, InputError, PyseriniRepbertError
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.train.arguments import parameter_groups, training_arguments
from pyserini_repbert.train.logs import CsvLog, LossMeter
from pyserini_repbert.train.output import AT_CUTOFF, CUTOFF, EVENTS, LOG, METRIC
from pyserini_repbert.train.recipe import Recipe
from pyserini_repbert.train.state import is_finished, is_first
from pyserini_repbert.train.stream import InstanceStream, StreamDataset
from pyserini_repbert.train.tasks.base import Batch, Task
from pyserini_repbert.train.validation import Validator


class RankingTrainer(Trainer):  # type: ignore[misc]
    """The Trainer for a task.

    Parameters
    ----------
    task, recipe : what is trained, and how
    stream : training instances
    validator : None for no validation
    base : the checkpoint that an adapter adapts, and whose tokenizer files are copied
    folder : for checkpoints and logs
    device : 'cpu', or 'auto' for a GPU where there is one
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
        self.since: Tensor | None = None
        self.csv = CsvLog(folder / LOG)
        self.optimizer: torch.optim.Optimizer | None
        self.control: Any
        args = training_arguments(recipe, task, folder, device, quiet)
        self.per_step = args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size
        self.stream_data = StreamDataset(stream, args.per_device_train_batch_size * args.world_size)
        callbacks: list[TrainerCallback] = [self.csv, LossMeter()]
        if tensorboard and is_first():
            from torch.utils.tensorboard import SummaryWriter

            callbacks.append(TensorBoardCallback(SummaryWriter(str(folder / EVENTS))))
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

    def run(self, checkpoint: Path | None) -> None:
        """Train, from a checkpoint of the Trainer's if one is given; the model is then the last, or the best validated.

        Raises
        ------
        InputError
            for a loss that is not finite
        DamagedFileError
            where the checkpoint of the best model is missing or damaged
        """
        if checkpoint is None:
            self.train()
            return
        state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
        if is_finished(state):
            self._finish(checkpoint, state)
            return
        self.restored = checkpoint
        self.stream_data.position = state.global_step * self.per_step
        self.train(resume_from_checkpoint=str(checkpoint))

    def _finish(self, checkpoint: Path, state: TrainerState) -> None:
        """Load the model of a training that has done its last step, since the Trainer would do one more."""
        self.state = state
        self._load_from_checkpoint(str(self._best(state) or checkpoint))
        if self.is_world_process_zero():
            self.csv.write(state.log_history)
        self.accelerator.wait_for_everyone()

    def _init_training_state(self, *args: Any, **kwargs: Any) -> Any:
        """As the Trainer's, but the best model so far is looked for in the present folder, and has to be there."""
        found = super()._init_training_state(*args, **kwargs)
        if self.restored is not None:
            state = TrainerState.load_from_json(str(self.restored / TRAINER_STATE_NAME))
            best = self._best(state)
            self.state.best_model_checkpoint = None if best is None else str(best)
        return found

    def _best(self, state: TrainerState) -> Path | None:
        """The folder of the best model so far; None if none was measured. Raises DamagedFileError if it is missing."""
        if state.best_model_checkpoint is None:
            return None
        found = Path(self.args.output_dir) / Path(state.best_model_checkpoint).name
        if not (found / TRAINER_STATE_NAME).is_file():
            raise DamagedFileError(f'{found}, the best model so far, is missing: begin anew', parameters=('overwrite',))
        if (found / CHECKSUMS).is_file():
            verify_checksums(found, summed_names(found))
        return found

    @property
    def meter(self) -> LossMeter:
        """The callback that sums losses; the Trainer makes a new one when it resumes."""
        return next(one for one in self.callback_handler.callbacks if isinstance(one, LossMeter))

    def training_step(self, *args: Any, **kwargs: Any) -> Tensor:
        """A batch's loss, added to the sum since the last line of the log."""
        loss: Tensor = super().training_step(*args, **kwargs)
        if self.since is None:
            self.since = torch.zeros_like(loss) + self.meter.since
        self.since += loss
        return loss

    def _sum_since(self) -> float:
        """The sum of the losses since the last line of the log, averaged over processes."""
        if self.since is None:
            return self.meter.since
        return float(self.accelerator.gather(self.since.reshape(1)).mean().item())

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """What the Trainer logs, but the loss is the mean since the last line, even if training was resumed since.

        Raises InputError for a loss that is not finite.
        """
        if 'loss' in logs:
            meter, step = self.meter, self.state.global_step
            loss = self._sum_since() / (step - meter.last)
            if not math.isfinite(loss):
                raise InputError(
                    f'the loss is not finite at step {step}: give a smaller training.learning_rate, or '
                    'training.precision float32'
                )
            logs = {**logs, 'loss': loss}
            meter.since, meter.last, self.since = 0.0, step, None
        super().log(logs, *args, **kwargs)

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        """Save the Trainer's checkpoint; checksums are written once it is whole."""
        self.meter.since = self._sum_since()
        self.since = None
        super()._save_checkpoint(*args, **kwargs)
        self.accelerator.wait_for_everyone()
        if self.args.should_save:
            write_checksums(Path(self.args.output_dir) / f'{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}')

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> Any:
        """The next batches; after resuming, random states are restored once more: opening a data loader draws a number.

        Raises a worker process's error without PyTorch's traceback.
        """
        try:
            found = super().get_batch_samples(*args, **kwargs)
        except PyseriniRepbertError as error:
            raise without_traceback(error) from error
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
        """AdamW over `parameter_groups`."""
        if self.optimizer is None:
            groups = parameter_groups(self.model, self.recipe.training)
            self.optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.999), eps=1e-8, fused=True)
        return self.optimizer

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Rank and measure the validation topics; for the best model so far, also find how many hits to rerank."""
        metrics: dict[str, float] = {}
        if self.validator is not None:
            task = self.accelerator.unwrap_model(self.model)
            metrics = {METRIC: self.validator.measure(task, self.base, self.recipe.adapter)}
            before = self.state.best_metric
            if (before is None or metrics[METRIC] > before) and (tuned := self.validator.cutoff()):
                metrics |= {CUTOFF: tuned.best, AT_CUTOFF: tuned.values[tuned.best]}
            self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        if self.control.should_training_stop and self.meter.last < self.state.global_step:  # stopped early
            self.log({'loss': 0.0, 'learning_rate': self._get_learning_rate()})
        return metrics


def without_traceback(error: PyseriniRepbertError) -> PyseriniRepbertError:
    """An error as its worker process raised it, without the traceback that PyTorch adds to its text."""
    text = str(error)
    if not text.startswith('Caught '):
        return error
    return type(error)(text.rstrip().splitlines()[-1].partition(': ')[2])
