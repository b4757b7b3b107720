"""Recipes: what a training is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class System(StrEnum):
    """What can be trained; MLM is target corpus pre-training, whose checkpoint the others start from."""

    REPBERT = 'repbert'
    MONOBERT = 'monobert'
    DUOBERT = 'duobert'
    EPIC = 'epic'
    CEDR = 'cedr'
    MLM = 'mlm'


@dataclass(frozen=True)
class Source:
    """Where training data come from.

    Attributes
    ----------
    topics, qrels : file, catalog name, or `ir_datasets:ID`
    run : run file that negatives are drawn from (lines of a query together); other topics in it are passed over
    triples : MS MARCO's qidpidtriples (ids) or triples (texts), or `ir_datasets:ID` (its docpairs); .gz allowed
    corpus, index : where passage text is, one of the two: see `open_texts`; not needed for triples of texts
    corpus_format, fields : of the corpus
    depth : hits of the run that count
    negatives : drawn for each relevant passage and epoch; 0 (RepBERT only) leaves it to the batch
    judged_only : negatives are those that the qrels judge non-relevant, and positives are among the run's hits where
        there is a run (CEDR section 3.1)
    relevant_from : the grade from which a passage is relevant
    qids : file whose lines begin with the qids to train on (a fold); default: all topics
    """

    topics: str | None = None
    qrels: str | None = None
    run: str | None = None
    triples: str | None = None
    corpus: str | None = None
    index: str | None = None
    corpus_format: str = 'auto'
    fields: tuple[str, ...] = ()
    depth: int = 1000
    negatives: int = 1
    judged_only: bool = False
    relevant_from: int = 1
    qids: str | None = None


@dataclass(frozen=True)
class Validation:
    """Evaluation during training, by ranking as the finished model would.

    Attributes
    ----------
    topics, qrels, corpus, index, corpus_format, fields, qids : as for training data
    run : the hits to rerank; RepBERT ranks the whole corpus without one
    depth : hits reranked
    sample : how many topics, drawn by the seed; 0 for all
    measure : in ir_measures' form
    every : steps between evaluations
    patience : evaluations without gain after which training stops; 0 never stops. The best model is kept in any case.
    """

    topics: str
    qrels: str
    run: str | None = None
    corpus: str | None = None
    index: str | None = None
    corpus_format: str = 'auto'
    fields: tuple[str, ...] = ()
    qids: str | None = None
    depth: int = 100
    sample: int = 0
    measure: str = 'MRR@10'
    every: int = 500
    patience: int = 0


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter (Hu et al., 2021) instead of full fine-tuning: rank, scale, dropout, and the layers it adapts.

    `start` names a checkpoint whose adapter, of this rank and scale over the same base, training goes on from, heads
    included; by default it begins with a new one.
    """

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.0
    targets: tuple[str, ...] = ('query', 'key', 'value', 'dense')
    start: str | None = None


@dataclass(frozen=True)
class Training:
    """How a model is trained.

    Attributes
    ----------
    steps : optimizer steps
    batch_size : on one device, before accumulation: RepBERT's query-passage pairs, monoBERT's and duoBERT's inputs,
        pairs of a relevant and a non-relevant text for EPIC and CEDR, sequences for pre-training
    accumulate : batches to a step
    learning_rate, head_learning_rate : of BERT, and of what was added to it (default: the same)
    schedule, warmup_steps : 'linear' (up, then down to 0) or 'constant' (after the warm-up)
    weight_decay : of Adam, decoupled, not for biases and layer norms
    max_grad_norm : to which gradients are clipped; 0 for no clipping
    dropout : of hidden states and attention while training; default: the base's own (0.1 in BERT)
    precision : 'float32', 'bfloat16' or 'float16', of the computation; weights stay in float32
    seed : of everything that is drawn
    loss : for EPIC and CEDR, a `PairLoss`
    scale : RepBERT: a learnt factor of the inner product, and where it begins, for a base that was trained for cosine;
        0 for none. It ends up in the weights. By default it is chosen from the scores of the base where there is a unit
        layer, whose vectors are long, and there is none otherwise.
    unit_layer : RepBERT: add a last layer that makes all vectors equally long, for a base that was trained for cosine,
        see `models.unit_layer`
    anchor : RepBERT: weight of `losses.anchored`, which keeps vectors in the direction of the base's own and makes them
        equally long, for a base that was trained for cosine; 0 for none
    vanilla_head : CEDR-KNRM: begin with the scores of the base, a Vanilla BERT: its head, and no weight on the kernels
    gather : RepBERT: passages of all devices are negatives
    shuffle : instances that wait in the buffer from which the next one is drawn; 1 keeps the order
    workers : processes that prepare batches
    log_every, save_every : steps
    """

    steps: int
    batch_size: int
    accumulate: int = 1
    learning_rate: float = 3e-6
    head_learning_rate: float | None = None
    schedule: str = 'linear'
    warmup_steps: int = 0
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    dropout: float | None = None
    precision: str = 'float32'
    seed: int = 42
    loss: str = 'cross_entropy'
    scale: float | None = None
    unit_layer: bool = False
    anchor: float = 0.0
    vanilla_head: bool = False
    gather: bool = False
    shuffle: int = 10000
    workers: int = 0
    log_every: int = 50
    save_every: int = 1000


@dataclass(frozen=True)
class Recipe:
    """One training.

    Attributes
    ----------
    name : of the model
    system, base : what is trained, and from which checkpoint (catalog name or folder)
    ranking : the settings of the `ranking` object of config.json, beside the system
    data : one source or more, mixed
    test_topics : topics whose queries may not be trained on (files or names), beside those of the catalog's test sets
    allow_test_topics : train on them all the same
    adapter : LoRA instead of full fine-tuning
    licence : of the weights that come out
    description : a sentence for the model card
    text : the recipe as read, with its settings
    """

    name: str
    system: System
    base: str
    data: tuple[Source, ...]
    training: Training
    ranking: dict[str, Any] = field(default_factory=dict)
    validation: Validation | None = None
    adapter: Adapter | None = None
    test_topics: tuple[str, ...] = ()
    allow_test_topics: bool = False
    licence: str = 'not stated'
    description: str = ''
    text: str = ''
