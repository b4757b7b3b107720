"""Training: steps a second of ours and of sentence-transformers, with the same pairs, batches,
lengths and optimizer.

pip install sentence-transformers datasets peft
python benchmarks/training.py [--steps 6] [--batch 16] [--rounds 2] [--threads 2] [--kinds full
lora]

Both train all-MiniLM-L6-v2 on questions of demo-train and their passages, in the same order, in
float32, with AdamW, clipped gradients and dropout; ours with RepBERT's margin over in-batch
negatives (eq. 4), theirs with MultipleNegativesRankingLoss over as large a matrix of similarities.
A round's first step is not counted.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import figures
import torch
from datasets import Dataset
from figures import Figure
from peft import LoraConfig
from rounds import in_turn
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch.utils.data import SequentialSampler
from transformers import PrinterCallback, TrainerCallback

from pyserini_repbert.commands.command import threads
from pyserini_repbert.tasks.instances import Instance
from pyserini_repbert.tasks.recipe import (
    Adapter,
    Recipe,
    Source,
    Training,
)
from pyserini_repbert.train.checkpoints import new_task, open_base
from pyserini_repbert.train.inputs import Guard
from pyserini_repbert.train.sources import TrainingSource
from pyserini_repbert.train.stream import InstanceStream
from pyserini_repbert.train.trainer import RankingTrainer

BASE = 'minilm'
RANKING = {
    'max_query_length': 64,
    'max_doc_length': 256,
}  # the longest question has 21 wordpieces: none is cut
MAX_LENGTH = 258  # with [CLS] and [SEP]
RATE = 2e-5
DECAY = 0.01
CLIP = 1.0
RANK = 8
ALPHA = 16
GOAL = 1.5


class StepClock(TrainerCallback):  # type: ignore[misc]
    """Seconds from the end of the first step to the end of the last."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step_end(self, *args: Any, **kwargs: Any) -> None:
        """Note the time."""
        self.ends.append(time.perf_counter())

    def seconds(self) -> float:
        """Mean seconds a step."""
        return (self.ends[-1] - self.ends[0]) / (len(self.ends) - 1)


class Fixed(InstanceStream):
    """A fixed list of instances."""

    def __init__(self, instances: list[Instance]) -> None:
        super().__init__([], seed=0, shuffle=1)
        self.instances = instances

    def __iter__(self) -> Iterator[Instance]:
        return iter(self.instances)


def ours(
    source: TrainingSource, instances: list[Instance], steps: int, adapter: bool, folder: Path
) -> Callable[[], float]:
    """A round of our trainer, which gives its mean seconds a step."""
    batch = len(instances) // steps
    recipe = Recipe(
        name='benchmark',
        system='repbert',
        base=BASE,
        data=(source.source,),
        ranking=RANKING,
        adapter=Adapter(rank=RANK, alpha=ALPHA) if adapter else None,
        training=Training(
            steps,
            batch,
            learning_rate=RATE,
            weight_decay=DECAY,
            max_grad_norm=CLIP,
            log_every=steps,
        ),
    )
    base = open_base(BASE)
    task = new_task(recipe, base, [source])

    def run() -> float:
        trainer = RankingTrainer(task, Fixed(instances), None, base, folder, 'cpu', quiet=True)
        clock = StepClock()
        trainer.add_callback(clock)
        trainer.train()
        return clock.seconds()

    return run


def theirs(
    source: TrainingSource, instances: list[Instance], steps: int, adapter: bool, folder: Path
) -> Callable[[], float]:
    """A round of sentence-transformers' trainer, which gives its mean seconds a step."""
    model = SentenceTransformer(str(open_base(BASE).folder), device='cpu')
    model.max_seq_length = MAX_LENGTH
    if adapter:
        layers = r'.*encoder\..*\.(query|key|value|dense)'
        model.add_adapter(LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=layers))
    pairs = Dataset.from_dict(
        {
            'anchor': [source.query(instance.qid) for instance in instances],
            'positive': source.texts([instance.docids[0] for instance in instances]),
        }
    )

    def in_order(dataset: Any, batch_size: int, drop_last: bool, **_: Any) -> DefaultBatchSampler:
        return DefaultBatchSampler(
            SequentialSampler(dataset), batch_size=batch_size, drop_last=drop_last
        )

    def run() -> float:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=str(folder),
            max_steps=steps,
            per_device_train_batch_size=len(instances) // steps,
            learning_rate=RATE,
            weight_decay=DECAY,
            max_grad_norm=CLIP,
            batch_sampler=in_order,
            save_strategy='no',
            report_to='none',
            logging_steps=steps,
            use_cpu=True,
            disable_tqdm=True,
        )
        clock = StepClock()
        trainer = SentenceTransformerTrainer(
            model,
            arguments,
            train_dataset=pairs,
            loss=MultipleNegativesRankingLoss(model),
            callbacks=[clock],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        return clock.seconds()

    return run


def main() -> None:
    """Time both in turn and print steps a second and the median ratio."""
    parser = figures.parser(__doc__)
    parser.add_argument('--steps', type=int, default=6, help='of a round')
    parser.add_argument('--batch', type=int, default=16)
    parser.add_argument('--rounds', type=int, default=2)
    parser.add_argument('--threads', type=threads, default=os.cpu_count())
    parser.add_argument('--kinds', nargs='+', default=['full', 'lora'], choices=('full', 'lora'))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    logging.disable(logging.WARNING)
    source = TrainingSource(
        Source(topics='demo-train', qrels='demo-train', corpus='demo', negatives=0), 0, Guard()
    )
    instances = list(source.instances(0, 0))[: options.steps * options.batch]
    told = []
    for kind in options.kinds:
        with tempfile.TemporaryDirectory() as folder:
            data = (source, instances, options.steps, kind == 'lora', Path(folder))
            times = in_turn(
                {'sentence-transformers': theirs(*data), 'ours': ours(*data)}, options.rounds
            )
        name = {'full': 'full fine-tuning', 'lora': f'LoRA of rank {RANK}'}[kind]
        print(
            f'MiniLM (6 layers, 384), {name}, batches of {options.batch}, {options.threads} threads'
        )
        for contender, seconds in times.items():
            print(f'  {contender:22s} {1 / median(seconds):6.3f} steps/s (median)')
        ratios = [peer / own for peer, own in zip(*times.values(), strict=True)]
        print(f'  ratios of rounds: from {min(ratios):.2f} to {max(ratios):.2f}')
        told.append(
            Figure(f'training RepBERT, {name}: sentence-transformers', median(ratios), 'x', GOAL)
        )
    figures.tell(options, told)


if __name__ == '__main__':
    main()
