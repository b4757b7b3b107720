"""Recipes: the settings of a training. docs/formats/recipes.md says what each key means."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from pyserini_repbert.tasks.losses import PairLoss

_LARGEST = 2**31 - 1
_READ = ('topics', 'qrels', 'run', 'pairs', 'triples', 'corpus', 'index', 'qids', 'scores')


def _number(value: Any) -> Any:
    """A number that YAML reads as text, such as 3e-6, without a point."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return float(value)
    return value


Text = Annotated[str, Field(min_length=1)]
FileName = Annotated[str, Field(min_length=1, max_length=200, pattern=r'^[^/\\]*[^/\\.][^/\\]*$')]
Whole = Annotated[int, Field(ge=0, le=_LARGEST)]
Count = Annotated[int, Field(ge=1, le=_LARGEST)]
Number = Annotated[float, BeforeValidator(_number), Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, BeforeValidator(_number), Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, BeforeValidator(_number), Field(ge=0, lt=1)]
Layer = Literal['query', 'key', 'value', 'dense']


PRE_TRAINING = 'mlm'
"""The `system` of target corpus pre-training, whose checkpoint the others start from."""


@dataclass(frozen=True)
class Source:
    """Where training data come from: topics with qrels and a run or pairs, or triples.

    `pairs` lists the documents of each topic (CEDR's data files): those judged relevant are
    positive, all others negative, unjudged ones included (cedr/data.py of its authors).
    Without a run, negatives are the passages judged non-relevant (`judged_only`, CEDR section 3.1)
    or, for RepBERT with `negatives` 0, the other passages of the batch. Triples without `topics`
    are texts, and need no corpus.

    Attributes
    ----------
    retrieved_only : a relevant passage counts only if it is among the run's hits (Multi-Stage
        section 4.2)
    pairs_per_topic : how many relevant passages are drawn of each topic in an epoch, as CEDR's
        code does with 1 (cedr/data.py at a263f1e); 0 for all
    """

    topics: Text | None = None
    qrels: Text | None = None
    run: Text | None = None
    pairs: Text | None = None
    triples: Text | None = None
    corpus: Text | None = None
    index: Text | None = None
    corpus_format: Text = 'auto'
    fields: tuple[Text, ...] = ()
    depth: Count = 1000
    negatives: Whole = 1
    judged_only: bool = False
    retrieved_only: bool = False
    pairs_per_topic: Whole = 0
    relevant_from: int = 1
    qids: Text | None = None
    scores: Text | None = None


@dataclass(frozen=True)
class Validation:
    """Evaluation during training, by ranking as the finished model would; the best model is kept.

    Without a run, RepBERT ranks the whole corpus, and `depth` hits are evaluated.
    """

    topics: Text
    qrels: Text
    run: Text | None = None
    corpus: Text | None = None
    index: Text | None = None
    corpus_format: Text = 'auto'
    fields: tuple[Text, ...] = ()
    qids: Text | None = None
    depth: Count = 100
    sample: Whole = 0
    measure: Text = 'MRR@10'
    every: Count = 500
    patience: Whole = 0


@dataclass(frozen=True)
class Teacher:
    """A model, or files of `scores`; the student learns to reproduce its scores of a query's
    candidates.

    `weight` multiplies the teacher's loss, `judged_weight` the loss over judged groups.
    Candidates above the share `drop_above` of the relevant passage's score are left out, as in Qu
    et al., "RocketQA" (NAACL 2021), section 4.2.
    """

    checkpoint: Text | None = None
    scale: Positive = 1.0
    weight: Number = 1.0
    judged_weight: Number = 1.0
    drop_above: Number = 0.0


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter (Hu et al., 2021) instead of full fine-tuning; `whole` keeps the body's
    layers in full instead.
    """

    rank: Count = 16
    alpha: Count = 32
    dropout: Share = 0.0
    targets: Annotated[tuple[Layer, ...], Field(min_length=1)] = ('query', 'key', 'value', 'dense')
    start: Text | None = None
    whole: bool = False


@dataclass(frozen=True)
class Training:
    """How a model is trained.

    Sizes count optimizer steps, batches of one device before accumulation, or instances.

    Attributes
    ----------
    learning_rate : of BERT; with 0, only the parts added to BERT are trained
    optimizer : 'adamw', or 'bert': Adam without bias correction, as in BERT's TensorFlow code
    schedule : 'bert' falls from the first step on, as there
    schedule_steps : after how many steps a falling rate is 0; None for `steps`
    order : 'grouped' allows that the instances of a query come one after the other
    """

    steps: Count
    batch_size: Count
    group: Whole = 0
    accumulate: Count = 1
    learning_rate: Number = 3e-6
    head_learning_rate: Positive | None = None
    optimizer: Literal['adamw', 'bert'] = 'adamw'
    schedule: Literal['linear', 'bert', 'constant'] = 'linear'
    schedule_steps: Count | None = None
    warmup_steps: Whole = 0
    weight_decay: Number = 0.01
    max_grad_norm: Number = 1.0
    dropout: Share | None = None
    precision: Literal['float32', 'bfloat16', 'float16'] = 'float32'
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 42
    loss: PairLoss = PairLoss.CROSS_ENTROPY
    scale: Number | None = None
    unit_layer: bool = False
    vanilla_head: bool = False
    gather: bool = False
    shuffle: Count = 10000
    order: Literal['mixed', 'grouped'] = 'mixed'
    workers: Annotated[int, Field(ge=0, le=1024)] | None = None
    log_every: Count = 50
    save_every: Count = 1000


@dataclass(frozen=True)
class RecipeInput:
    """Something that a training reads: its role, and its file or name."""

    role: str
    name: str


@dataclass(frozen=True)
class Recipe:
    """One training; `text` is the recipe as YAML, settings and variables filled in."""

    __pydantic_config__ = ConfigDict(
        extra='forbid', strict=True, defer_build=True
    )  # of its parts too

    name: FileName
    system: Text
    base: Text
    data: Annotated[tuple[Source, ...], Field(min_length=1)]
    training: Training
    ranking: dict[str, Any] = field(default_factory=dict)
    validation: Validation | None = None
    adapter: Adapter | None = None
    teacher: Teacher | None = None
    test_topics: tuple[Text, ...] = ()
    allow_test_topics: bool = False
    licence: Text = 'not stated'
    description: str = ''
    text: str = ''

    def inputs(self) -> list[RecipeInput]:
        """What the training reads beside its base, each once."""
        inputs = []
        for source in (*self.data, self.validation):
            for role in _READ:
                inputs.append(RecipeInput(role, getattr(source, role, None) or ''))
        if self.adapter is not None:
            inputs.append(RecipeInput('adapter', self.adapter.start or ''))
        if self.teacher is not None:
            inputs.append(RecipeInput('teacher', self.teacher.checkpoint or ''))
        return [entry for entry in dict.fromkeys(inputs) if entry.name]
