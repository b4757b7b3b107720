"""Reranking with monoBERT, which reads each candidate with the query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.models.cross_encoder import MONOBERT, MonoBert, log_probabilities
from pyserini_repbert.models.pair_inputs import PairInputs
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank.base import Progress
from pyserini_repbert.rerank.cross_encoder import CrossEncoderReranker
from pyserini_repbert.rerank.text_reranker import each_pair, in_lists


class MonoBertReranker(CrossEncoderReranker):
    """Scores are log-probabilities of relevance (Multi-Stage section 3.2), ordered as the logit differences.

    Parameters
    ----------
    model : catalog name, checkpoint folder, or a cross-encoder folder of sentence-transformers with 1 or 2 labels
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    precision : 'float32', 'bfloat16', 'float16', or 'auto'; logits are always computed in float32
    layout : how long texts are cut, 'paper', 'dl4marco', 'pygaggle' or 'pygaggle_fast_tokenizer' (`PairLayout`);
        default: the checkpoint's, else 'paper'
    max_length : tokens of the longest input, special tokens included; default: the checkpoint's, else 512 or BERT's
        positions if these are fewer
    backend : 'torch', 'onnx', 'onnx-int8'; scores of 'onnx' differ by rounding, those of 'onnx-int8' by more
    token_budget : padded tokens in a batch; default: by device

    Raises
    ------
    UnknownNameError, MissingResourceError, DamagedFileError
        for a checkpoint that is not there or not whole
    MismatchError
        for a checkpoint of another system, without a classifier, or with another number of labels
    InputError
        for settings that the model or the machine does not allow
    MissingDependencyError
        where a package that the backend needs is not installed
    """

    system = MONOBERT
    module = MonoBert
    builder = PairInputs
    inputs: PairInputs

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress | None = None
    ) -> list[NDArray[np.floating]]:
        """log p(relevant) of each candidate, float64 (n,) a query; an empty text is scored, too."""
        tokens = self._tokens(queries, lists)
        built = [self.inputs.build(tokens[query], tokens[text]) for query, text in each_pair(queries, lists)]
        self.work.candidates += len(built)
        self.work.truncated += sum(item.truncated for item in built)
        return in_lists(log_probabilities(self._differences(built, on_progress)), lists)
