"""Why a hit is at its rank: its rank in each first stage, and why the last reranker scored it so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp
from typing import NamedTuple

from pyserini_repbert.encode.epic import EpicEncoder
from pyserini_repbert.explain.epic import explain_text
from pyserini_repbert.explain.similarity import similarity_maps
from pyserini_repbert.fusion.interleaving import provenance
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank.base import Reranker
from pyserini_repbert.rerank.cedr import CedrReranker
from pyserini_repbert.rerank.cross_encoder import MonoBertReranker
from pyserini_repbert.rerank.epic import EpicReranker
from pyserini_repbert.rerank.sentence import SentenceCrossEncoderReranker

_WORDS = 5  # query terms in a line

Reason = Callable[[str, Candidate], str]


class HitReasons(NamedTuple):
    """The reasons for one hit."""

    ranks: tuple[tuple[str, str], ...]  # (name, rank from 1) of each first stage; '-' where it lacks the hit
    reranker: str = ''  # the last reranker's reason, in a line; '' without one, and for a hit that it did not read


def hit_reasons(
    query: str,
    hits: Ranking,
    names: Sequence[str],
    inputs: Sequence[Ranking],
    reason: Reason | None = None,
    reranked: int = 0,
    depth: int | None = None,
) -> list[HitReasons]:
    """The reasons for each hit, in order.

    Parameters
    ----------
    hits : with texts, if `reason` is given
    names, inputs : names and rankings of the first stages
    reason : from `reranker_reason`
    reranked : how many of the first hits the last reranker read
    depth : how many hits the first stages were asked for; None: all that they have
    """
    origins = provenance([ranking.docids for ranking in inputs], hits.docids)
    absent = ['-' if depth is None or len(ranking) < depth else f'>{depth}' for ranking in inputs]
    reasons = []
    for place, (hit, known) in enumerate(zip(hits, origins, strict=True)):
        ranks = [other if rank is None else str(rank) for rank, other in zip(known, absent, strict=True)]
        why = reason(query, hit) if reason and place < reranked and hit.text is not None else ''
        reasons.append(HitReasons(tuple(zip(names, ranks, strict=True)), why))
    return reasons


def reranker_reason(reranker: Reranker) -> Reason:
    """The reason of an open reranker for a hit's score, in a line, from the query and the hit.

    EPIC: the greatest contributions; CEDR: the best matches; cross-encoders: the probability, or a score that is none;
    duoBERT: the score.
    """
    if isinstance(reranker, EpicReranker):
        return lambda query, hit: _epic(reranker.encoder, query, str(hit.text))
    if isinstance(reranker, CedrReranker):
        return lambda query, hit: _cedr(reranker, query, str(hit.text))
    if isinstance(reranker, SentenceCrossEncoderReranker):
        return lambda query, hit: f'scored {hit.score:.4f} by the model, which is no probability'
    if isinstance(reranker, MonoBertReranker):
        return lambda query, hit: f'relevant with p = {exp(min(hit.score, 0.0)):.4f}'
    return lambda query, hit: f'{hit.score:.4f} from comparisons with the others'


def _epic(encoder: EpicEncoder, query: str, text: str) -> str:
    parts = explain_text(encoder, query, text).contributions[:_WORDS]
    return ' + '.join(f'{part.term} {part.contribution:.2f}' for part in parts if part.contribution > 0)


def _cedr(reranker: CedrReranker, query: str, text: str) -> str:
    if not all(reranker.tokenizer.ids([query, text])):
        return ''
    (last,) = similarity_maps(reranker, query, text, [reranker.n_layers])
    best = [matches[0] for matches in last.best_matches(1)]
    pairs = sorted(zip(last.query, best, strict=True), key=lambda pair: -pair[1][2])[:_WORDS]
    return ', '.join(f'{word}~{match} {value:.2f}' for word, (match, _, value) in pairs)
