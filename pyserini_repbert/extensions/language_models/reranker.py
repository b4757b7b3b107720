"""Reranking by a language model: a list at a time, or passage by passage."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.values import Choice
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.language_models.client import ModelAnswer
from pyserini_repbert.extensions.language_models.errors import LanguageModelError
from pyserini_repbert.extensions.language_models.model import TOP_TOKENS, LanguageModel, Reply
from pyserini_repbert.extensions.language_models.permutation import parse_permutation
from pyserini_repbert.extensions.language_models.prompts import cut_words, is_cut, read_prompt
from pyserini_repbert.extensions.language_models.settings import NAME, LanguageModelSettings
from pyserini_repbert.extensions.language_models.windows import (
    DEFAULT_STEP,
    DEFAULT_WINDOW,
    sliding_windows,
)
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank.base import Progress, Reranker, Scores, Work

# Words kept of a passage, as in RankGPT's code (`run_ranking.py`, max_length=300).
WORDS = 300
# More than an order of 20 passages takes; a model that thinks first needs the rest.
_LISTWISE_TOKENS = 4096
_POINTWISE_TOKENS = 1
# Some servers show a token as in the vocabulary, with the sign for a preceding space:
# SentencePiece's or byte-level BPE's. Some models begin with quotes or bold.
_SIGNS_AROUND = '▁Ġ"\'*'


class RankingMethod(Choice, what='method of a language model'):
    """What a language model reads at a time."""

    LISTWISE = 'listwise'
    POINTWISE = 'pointwise'


_PLACES = {
    RankingMethod.LISTWISE: ('query', 'passages', 'n'),
    RankingMethod.POINTWISE: ('query', 'passage'),
}


@dataclass(slots=True)
class LanguageModelWork(Work):
    """What a language model did in a call.

    Attributes
    ----------
    calls, repaired, answer_tokens : counted as in `trace.StageCost`
    """

    calls: int = 0
    repaired: int = 0
    answer_tokens: int = 0


class LanguageModelReranker(Reranker, recorded_as='LanguageModelReranker'):
    """Orders candidates by what a language model answers.

    Listwise (RankGPT): the model reads a window of passages and gives their order; windows slide
    from the end of the ranking to its top. A score is the number of candidates below, plus 1.
    Pointwise: the model reads one passage and answers yes or no. A score is ln P(yes) - ln P(no),
    the log-odds of P(yes) / (P(yes) + P(no)).

    Its work counts an answer as an inference, and the tokens of prompts and answers.

    Parameters
    ----------
    name : 'llm'
    device : of other rerankers; not used
    llm : which model, where, and the file of its answers
    method : 'listwise' or 'pointwise'
    window, step : of listwise: passages in a window, and by how many a window is nearer to the top
        than the one before; default: 20 and 10
    words : kept of a passage
    prompt : a text file instead of the shipped prompt, with {query}, {passages} and {n};
        pointwise, with {query} and {passage}

    Raises InputError without a model, and for settings that do not go together.
    """

    def __init__(
        self,
        name: str = NAME,
        device: str = 'cpu',
        llm: LanguageModelSettings | None = None,
        method: RankingMethod | str = RankingMethod.LISTWISE,
        window: int | None = None,
        step: int | None = None,
        words: int = WORDS,
        prompt: str | None = None,
    ) -> None:
        self.method = RankingMethod(method)
        if llm is None:
            raise InputError(
                f"'{name}' is a language model, and none was named: give its name and its address",
                parameters=('llm_model', 'llm'),
            )
        self.name = name
        self.model = LanguageModel(llm)
        self.compares = self.method is RankingMethod.LISTWISE
        self.window = window or DEFAULT_WINDOW
        self.step = step or min(DEFAULT_STEP, self.window)
        self._check_windows(window, step)
        self.words = words
        self.prompt = read_prompt(f'rank-{self.method}', prompt, _PLACES[self.method])
        self.work = LanguageModelWork()

    def _check_windows(self, window: int | None, step: int | None) -> None:
        """Raises InputError for a step that leaves candidates out, and windows of one passage."""
        if not self.compares:
            if window is not None or step is not None:
                raise InputError("'window' and 'step' are for listwise reranking: leave them out")
            return
        if self.window < 2 or not 1 <= self.step <= self.window:
            raise InputError(
                f'window={self.window}, step={self.step}: a window has 2 passages or more, and '
                'the step is from 1 to the window'
            )

    def with_options(self, **options: Any) -> Self:
        if options:
            raise InputError(f"'{self.name}' takes no {', '.join(options)} here: leave it out")
        return self

    def identity(self) -> Mapping[str, object]:
        identity = {
            **super().identity(),
            'model': self.model.name,
            'method': str(self.method),
            'words': self.words,
            'prompt_sha256': self.prompt.sha256,
        }
        if self.compares:
            identity |= {'window': self.window, 'step': self.step}
        return identity

    def inferences(self, n: int) -> int:
        if self.compares:
            return len(sliding_windows(n, self.window, self.step))
        return n

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress = int
    ) -> Scores:
        """The score of each candidate, float64 (n,) a query."""
        score = self._score_list if self.compares else self._score_each
        return [
            score(query, candidates, on_progress)
            for query, candidates in zip(queries, lists, strict=True)
        ]

    def _score_list(
        self, query: str, candidates: Ranking, on_progress: Progress
    ) -> NDArray[np.float64]:
        """n for the first of n candidates, 1 for the last."""
        n = len(candidates)
        texts = [self._cut(candidate) for candidate in candidates]
        order = list(range(n))
        for window in sliding_windows(n, self.window, self.step):
            rows = [order[rank] for rank in window]
            passages = [f'[{number}] {texts[row]}' for number, row in enumerate(rows, 1)]
            prompt = self.prompt.fill(
                {'query': query, 'passages': '\n'.join(passages), 'n': str(len(rows))}
            )
            reply = self.model.ask(query, prompt, _LISTWISE_TOKENS)
            permutation = parse_permutation(reply.answer.text, len(rows))
            self._count(reply, permutation.is_repaired)
            order[window.start : window.stop] = [rows[row] for row in permutation.rows]
            on_progress(1)
        scores = np.empty(n, np.float64)
        scores[order] = np.arange(n, 0, -1)
        return scores

    def _score_each(
        self, query: str, candidates: Ranking, on_progress: Progress
    ) -> NDArray[np.float64]:
        """The log-odds that each candidate answers the query."""
        scores = np.empty(len(candidates), np.float64)
        for row, candidate in enumerate(candidates):
            prompt = self.prompt.fill({'query': query, 'passage': self._cut(candidate)})
            reply = self.model.ask(query, prompt, _POINTWISE_TOKENS, TOP_TOKENS)
            if not reply.answer.top_tokens:
                raise LanguageModelError(
                    f"the server of '{self.model.name}' gives no log-probabilities, by which "
                    f"pointwise reranking scores: rerank listwise, '{self.name}@K'"
                )
            log_odds = yes_log_odds(reply.answer)
            self._count(reply, log_odds is None)
            scores[row] = 0.0 if log_odds is None else log_odds
            on_progress(1)
        return scores

    def _cut(self, candidate: Candidate) -> str:
        """The words of a candidate that the model reads."""
        text = candidate.text or ''
        if self.work is not None:
            self.work.candidates += 1
            self.work.truncated += is_cut(text, self.words)
        return cut_words(text, self.words)

    def _count(self, reply: Reply, is_repaired: bool) -> None:
        """Count an answer."""
        work = self.work
        if isinstance(work, LanguageModelWork):
            work.inferences += 1
            work.tokens += reply.answer.prompt_tokens + reply.answer.answer_tokens
            work.answer_tokens += reply.answer.answer_tokens
            work.calls += reply.is_new
            work.repaired += is_repaired

    def reason(self, query: str, hit: Candidate) -> str:
        """Which model gave the hit its rank."""
        return f"ranked by the language model '{self.model.name}', {self.method}"


def yes_log_odds(answer: ModelAnswer) -> float | None:
    """ln P(yes) - ln P(no) of an answer's first token; None if both are not among the likeliest.

    Tokens that differ only in case, or in white space, quotes or space signs around them, count as
    one. If one of the two is not among the likeliest, it counts as likely as the least likely of
    those.
    """
    yes = _log_probability(answer, 'yes')
    no = _log_probability(answer, 'no')
    if yes is None and no is None:
        return None
    least = min(logprob for _, logprob in answer.top_tokens)
    return (least if yes is None else yes) - (least if no is None else no)


def _log_probability(answer: ModelAnswer, word: str) -> float | None:
    """ln of the probability of a word as the first token; None if it is not listed."""
    logprobs = [
        logprob
        for token, logprob in answer.top_tokens
        if token.strip().strip(_SIGNS_AROUND).casefold() == word
    ]
    if not logprobs:
        return None
    greatest = max(logprobs)
    return greatest + math.log(sum(math.exp(logprob - greatest) for logprob in logprobs))
