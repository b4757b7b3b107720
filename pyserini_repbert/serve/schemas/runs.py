"""The forms of requests to fuse or evaluate runs, and of their answers."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pyserini_repbert.serve.schemas.common import Answered, Fusion, Sent, Text


class SentHit(Sent):
    """A hit of a run."""

    docid: Text
    score: float = Field(allow_inf_nan=False)


class SentRun(Sent):
    """A run: the text of a run file, or hits by qid."""

    name: Text | None = None
    text: Text | None = None
    rankings: dict[Text, list[SentHit]] | None = None


class FuseRequest(Sent):
    """Runs to be fused."""

    runs: list[SentRun] = Field(min_length=1, max_length=10)
    method: Fusion = 'interleave'
    hits: int = Field(1000, ge=1)
    alpha: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    rrf_k: float | None = Field(None, ge=0, le=1e6, allow_inf_nan=False)
    provenance: bool = False


class FuseResponse(Answered):
    """The fused run: hits by qid."""

    method: str
    runs: list[str]
    rankings: dict[str, list[dict[str, Any]]]


class EvaluateRequest(Sent):
    """Runs to be evaluated, the first of them the baseline."""

    runs: list[SentRun] = Field(min_length=1, max_length=10)
    index: Text | None = Field(None, description="an index of this service, for its judgments and topics' texts")
    qrels: Text | None = Field(None, description='instead of index: the text of a qrels file')
    measures: list[Text] = Field(['nDCG@10', 'MRR@10', 'R@1000'], min_length=1, max_length=20)
    show: int = Field(0, ge=0, le=100, description='hits of each ranking that go with a topic')


class EvaluateResponse(Answered):
    """Measures, tests against the first run, and topics, the largest differences first."""

    judged_topics: int
    measures: list[str]
    baseline: str
    runs: list[dict[str, Any]]
    comparisons: list[dict[str, Any]]
    topics: list[dict[str, Any]]
