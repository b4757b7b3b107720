"""Measuring how fast a device encodes, to estimate how long a corpus takes."""

from __future__ import annotations

import time

import torch

from pyserini_repbert.models.batching import run_batched
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.models.repbert import PASSAGE_TYPE, RepBert
from pyserini_repbert.models.tokenizer import TokenSequence

PASSAGE_LENGTH = 77  # tokens of an MS MARCO passage: about 55 words (Multi-Stage section 4.1), [CLS] and [SEP]
_SAMPLE = 64  # passages


def passages_per_second(config: BertConfig, device: str = 'cpu', precision: str = Precision.FLOAT32) -> float:
    """Passages of MS MARCO's mean length that a BERT of these sizes, with random weights, encodes in a second."""
    place = usable_device(device)
    model = RepBert(config).to(place, Precision(precision).dtype(place)).eval()
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(1, config.vocab_size, (_SAMPLE, PASSAGE_LENGTH), generator=generator).tolist()
    sequences = [TokenSequence(ids, [PASSAGE_TYPE] * PASSAGE_LENGTH) for ids in tokens]
    run_batched(model, sequences[:8], 0, place)
    start = time.perf_counter()
    run_batched(model, sequences, 0, place)
    return _SAMPLE / (time.perf_counter() - start)
