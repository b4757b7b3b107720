"""Recipes: what a training is made of. The types say what a value may be, for whoever reads a recipe (`schema`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from pydantic import ConfigDict

from pyserini_repbert.train.losses import PairLoss, TeacherLoss
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
    triples : MS MARCO's qidpidtriples (ids) or triples (texts), or `ir_datasets:ID` (its docpairs); .gz allowed
    corpus, index : where passage text is, one of the two: see `open_texts`; not needed for triples of texts
    corpus_format, fields : of the corpus
    depth : hits of the run that count
    negatives : drawn for each relevant passage and epoch; 0 (RepBERT only) leaves it to the batch
    judged_only : negatives are those that the qrels judge non-relevant, and positives are among the run's hits where
        there is a run (CEDR section 3.1)
    relevant_from : the grade from which a passage is relevant
    qids : file whose lines begin with the qids to train on (a fold); default: all topics
    scores : run file with a teacher's scores of the topics' candidates, the relevant passages among them; default:
        those of the recipe's teacher
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
    run : the hits to rerank; RepBERT ranks the whole corpus without one
    depth : hits reranked
    sample : how many topics, drawn by the seed; 0 for all
    measure : in ir_measures' form
    every : steps between evaluations
    patience : evaluations without gain after which training stops; 0 never stops. The best model is kept in any case.
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
    """A teacher, whose scores those of a query's candidates should follow; needs `training.group`.

    Attributes
    ----------
    checkpoint : a bi-encoder, by the cosine of its vectors, or a cross-encoder, by its log-odds; None where each source
        has a file of `scores`
    scale : factor that makes the teacher's scores logits
    loss : how they are followed
    weight : of that loss; sources with judgments add `losses.localized_contrastive`, RepBERT
        its own, with `judged_weight`
    drop_above : candidates that are not judged, but have more than this share of the relevant one's score, are left
        out as likely to be relevant; 0 for none (Qu et al., "RocketQA", NAACL 2021, section 4.2, denoises like this)
    """

    __pydantic_config__ = _STRICT

    checkpoint: Text | None = None
    scale: Positive = 1.0
    loss: TeacherLoss = TeacherLoss.KL
    weight: Number = 1.0
    judged_weight: Number = 1.0
    drop_above: Number = 0.0


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter (Hu et al., 2021) instead of full fine-tuning: rank, scale, dropout, and the layers it adapts.

    `whole` trains the body's layers themselves and keeps them whole, without the embeddings, which stay the base's.

    `start` names a checkpoint whose adapter, of this rank and scale over the same base, training goes on from, heads
    included; by default it begins with a new one.
    """

    __pydantic_config__ = _STRICT

    rank: Count = 16
    alpha: Count = 32
    dropout: Share = 0.0
    targets: tuple[Literal['query', 'key', 'value', 'dense'], ...] = ('query', 'key', 'value', 'dense')
    start: Text | None = None
    whole: bool = False


@dataclass(frozen=True)
class Training:
    """How a model is trained.

    Attributes
    ----------
    steps : optimizer steps
    batch_size : on one device, before accumulation: RepBERT's query-passage pairs, monoBERT's and duoBERT's inputs,
        pairs of a relevant and a non-relevant text for EPIC and CEDR, sequences for pre-training; with `group`, queries
    group : candidates of a query that are scored together, the relevant one among them where there is one; 0 for pairs
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
    anchor: Number = 0.0
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
    ranking : the settings of the `ranking` object of config.json, beside the system
    data : one source or more, mixed
    test_topics : topics whose queries may not be trained on (files or names), beside those of the catalog's test sets
    allow_test_topics : train on them all the same
    adapter : LoRA instead of full fine-tuning
    teacher : whose scores are followed
    licence : of the weights that come out
    description : a sentence for the model card
    text : the recipe as read, with its settings
    """

    __pydantic_config__ = _STRICT

    name: FileName
    system: System
    base: Text
    data: tuple[Source, ...]
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
