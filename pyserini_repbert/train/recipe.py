"""Recipes: what a training is made of. `schema` checks a recipe's values by the types here."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from pyserini_repbert.train.losses import PairLoss
from pyserini_repbert.train.values import Count, FileName, Number, Positive, Seed, Share, Text, Whole, Workers

_STRICT = ConfigDict(extra='forbid', strict=True)


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
    triples : MS MARCO's qidpidtriples (ids) or, without `topics`, triples (texts), or `ir_datasets:ID` (its docpairs);
        .gz allowed
    corpus, index : the corpus, or the index, that holds the passages' texts; neither for triples of texts
    corpus_format, fields : of the corpus
    depth : hits of each topic that are read from the run
    negatives : drawn for each relevant passage and epoch; 0 (RepBERT only) for the batch's other passages alone
    judged_only : negatives are passages that the qrels judge non-relevant; with a run, relevant passages that it lacks
        are left out (CEDR section 3.1)
    relevant_from : the lowest grade of a relevant passage
    qids : file whose lines begin with the qids to train on (a fold); default: all topics
    scores : run file with a teacher's scores of the topics' candidates, the relevant passages among them; default:
        scores of the recipe's teacher
    """

    __pydantic_config__ = _STRICT

    topics: Text | None = None
    qrels: Text | None = None
    run: Text | None = None
    triples: Text | None = None
    corpus: Text | None = None
    index: Text | None = None
    corpus_format: Text = 'auto'
    fields: tuple[Text, ...] = ()
    depth: Count = 1000
    negatives: Whole = 1
    judged_only: bool = False
    relevant_from: int = 1
    qids: Text | None = None
    scores: Text | None = None


@dataclass(frozen=True)
class Validation:
    """Evaluation during training, by ranking as the finished model would.

    Attributes
    ----------
    topics, qrels, corpus, index, corpus_format, fields, qids : as for training data
    run : run file whose hits are reranked; without one, RepBERT ranks the whole corpus
    depth : hits of each topic that are reranked; without a run, hits that are evaluated
    sample : how many topics, drawn by the seed; 0 for all
    measure : in ir_measures' form
    every : steps between evaluations
    patience : evaluations without gain after which training stops; 0 for no early stop. In any case the result is the
        best model.
    """

    __pydantic_config__ = _STRICT

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
    """A teacher, whose scores of a query's candidates the model learns to follow; needs `training.group`.

    Attributes
    ----------
    checkpoint : a bi-encoder, which scores by the cosine of its vectors, or a monoBERT, by its log-odds; None if each
        source has a file of `scores`
    scale : factor that turns the teacher's scores into logits
    weight, judged_weight : of the teacher's loss, and of the loss over groups with a relevant passage, which is
        `losses.localized_contrastive`, RepBERT eq. 4 for RepBERT, and Multi-Stage eq. 2 for duoBERT
    drop_above : candidates not judged relevant whose score is more than this share of the relevant passage's are left
        out as likely relevant; 0 leaves out none (denoised as in Qu et al., "RocketQA", NAACL 2021, section 4.2)
    """

    __pydantic_config__ = _STRICT

    checkpoint: Text | None = None
    scale: Positive = 1.0
    weight: Number = 1.0
    judged_weight: Number = 1.0
    drop_above: Number = 0.0


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter (Hu et al., 2021) instead of full fine-tuning.

    Attributes
    ----------
    rank, alpha : r and alpha of LoRA, which scales its updates by alpha / r
    dropout : of the updates' input while training
    targets : the linear layers of the body that are adapted
    start : checkpoint with an adapter of this rank and alpha over the same base, from which training goes on, heads
        included; default: a new adapter
    whole : train and save the body's layers in full, without low-rank updates; the embeddings stay the base's
    """

    __pydantic_config__ = _STRICT

    rank: Count = 16
    alpha: Count = 32
    dropout: Share = 0.0
    targets: Annotated[tuple[Literal['query', 'key', 'value', 'dense'], ...], Field(min_length=1)] = (
        'query',
        'key',
        'value',
        'dense',
    )
    start: Text | None = None
    whole: bool = False


@dataclass(frozen=True)
class Training:
    """How a model is trained.

    Attributes
    ----------
    steps : optimizer steps
    batch_size : on one device, before accumulation: RepBERT's query-passage pairs, monoBERT's and duoBERT's inputs,
        pairs of a relevant and a non-relevant text for EPIC and CEDR, sequences for pre-training; with `group`, groups
    group : candidates of a query that are scored together, a relevant one among them if the source has qrels; 0 for
        pairs
    accumulate : batches a step
    learning_rate, head_learning_rate : peak rate of BERT, and of what was added to it (default: the same)
    schedule, warmup_steps : after a linear warm-up, 'linear' (down to 0) or 'constant'
    weight_decay : of AdamW, not for biases and layer norms
    max_grad_norm : to which gradients are clipped; 0 for no clipping
    dropout : probability, of hidden states and attention while training; default: the base's own (0.1 in BERT)
    precision : of the computation; weights stay in float32
    seed : of everything that is drawn
    loss : for EPIC and CEDR without `group`
    scale : RepBERT: initial value of a learnt factor of the inner product, for a base that was trained for cosine; 0
        for no factor. The saved weights include it. Default: chosen from the base's scores with `unit_layer`, whose
        vectors are long; else no factor.
    unit_layer : RepBERT: add a last layer that makes all vectors equally long, for a base that was trained for cosine
        (`models.checkpoints.unit_layer`)
    vanilla_head : CEDR-KNRM: begin with the scores of the base, a Vanilla BERT: its head, and no weight on the kernels
    gather : RepBERT: passages of all devices are negatives
    shuffle : size of the shuffle buffer, in instances; 1 keeps the order
    workers : processes that prepare batches
    log_every, save_every : steps; with a validation, `Validation.every` counts instead of `save_every`
    """

    __pydantic_config__ = _STRICT

    steps: Count
    batch_size: Count
    group: Whole = 0
    accumulate: Count = 1
    learning_rate: Positive = 3e-6
    head_learning_rate: Positive | None = None
    schedule: Literal['linear', 'constant'] = 'linear'
    warmup_steps: Whole = 0
    weight_decay: Number = 0.01
    max_grad_norm: Number = 1.0
    dropout: Share | None = None
    precision: Literal['float32', 'bfloat16', 'float16'] = 'float32'
    seed: Seed = 42
    loss: PairLoss = PairLoss.CROSS_ENTROPY
    scale: Number | None = None
    unit_layer: bool = False
    vanilla_head: bool = False
    gather: bool = False
    shuffle: Count = 10000
    workers: Workers = 0
    log_every: Count = 50
    save_every: Count = 1000


@dataclass(frozen=True)
class Recipe:
    """One training.

    Attributes
    ----------
    name : of the model
    system, base : what is trained, and from which checkpoint (catalog name or folder)
    ranking : settings of the `ranking` object of config.json, without the system
    data : one source or more, which take turns
    validation : None for none
    test_topics : topics that may not be trained on (files or names), beside those of the catalog's test sets
    allow_test_topics : train on test topics all the same
    adapter : None for full fine-tuning
    teacher : None for none
    licence : of the trained weights
    description : a sentence for the model card
    text : the recipe as YAML, settings and variables filled in
    """

    __pydantic_config__ = _STRICT

    name: FileName
    system: System
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
