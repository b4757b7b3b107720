"""Questions are searched by passages that a language model writes as their answers.

HyDE: Gao et al. 2022, https://arxiv.org/abs/2212.10496. A dense ranking searches for the mean of
the vectors of 8 passages and the question's.
query2doc: Wang et al. 2023, https://arxiv.org/abs/2303.07678. A ranking of words searches for the
question, five times, and a passage; a dense one for 'question [SEP] passage'.
"""

from __future__ import annotations

import re
import threading
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.values import Choice, integer
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.language_models.model import LanguageModel, Reply, Sampling
from pyserini_repbert.extensions.language_models.permutation import without_thought
from pyserini_repbert.extensions.language_models.prompts import read_prompt
from pyserini_repbert.extensions.language_models.settings import LanguageModelSettings
from pyserini_repbert.ranking import Query, QueryRewriting
from pyserini_repbert.systems.encoders import document_encoder
from pyserini_repbert.trace import SILENT, StageCost, Trace

# Of HyDE's code (texttron/hyde, `generator.py`): passages, their tokens, and the temperature.
HYDE_PASSAGES = 8
_TOKENS = 512
_TEMPERATURE = 0.7
# How often the question comes in what words are searched for (query2doc section 2).
_REPEATS = 5
# Wordpieces of 'question [SEP] passage' that a dense encoder reads (query2doc, appendix A).
_EXPANDED_LIMIT = 144
# A comma in a file's name does not begin a setting.
_SETTING_BEGINS = re.compile(r',(?=[a-z]*=)')
# What a setting may be at most: each passage of a question is one request.
_MOST = {'passages': 100, 'tokens': 100_000}


class RewritingMethod(Choice, what='method of rewriting'):
    """What becomes of a question."""

    HYDE = 'hyde'
    QUERY2DOC = 'query2doc'


@dataclass(frozen=True)
class RewritingSettings:
    """How questions are rewritten.

    Attributes
    ----------
    method : 'hyde' or 'query2doc'
    passages : that HyDE asks for
    tokens : of a passage, at most
    prompt : a text file instead of the shipped prompt, with {query}
    """

    method: RewritingMethod
    passages: int = HYDE_PASSAGES
    tokens: int = _TOKENS
    prompt: str | None = None

    def __post_init__(self) -> None:
        """Raises InputError for an unknown method."""
        object.__setattr__(self, 'method', RewritingMethod(self.method))

    @classmethod
    def parse(cls, text: str) -> Self:
        """The settings given as text, such as 'hyde' or 'hyde:passages=4,tokens=256,prompt=FILE'.

        Raises InputError for anything else.
        """
        name, colon, rest = text.partition(':')
        settings = cls(RewritingMethod(name))
        known = ['tokens', 'prompt']
        if settings.method is RewritingMethod.HYDE:
            known.append('passages')
        for part in _SETTING_BEGINS.split(rest) if colon else ():
            key, _, value = part.partition('=')
            if key not in known or not value:
                forms = ', '.join(f'{setting}=…' for setting in known)
                raise InputError(
                    f"rewriting '{text[:80]}': expected {name}:{forms}", parameters=('rewrite',)
                )
            settings = replace(settings, **{key: _read(text, key, value)})
        return settings


def _read(text: str, key: str, value: str) -> Any:
    """The value of a setting. Raises InputError if it must be a number, but is not."""
    if key == 'prompt':
        return value
    try:
        return integer(value, 1, _MOST[key])
    except ValueError as error:
        raise InputError(
            f"rewriting '{text[:80]}': {key}: {error}", parameters=('rewrite',)
        ) from error


class _Rewriting(QueryRewriting):
    """Asks a language model for passages, once for each question.

    Parameters
    ----------
    llm : which model, where, and the file of its answers
    settings : how questions are rewritten
    """

    n_passages = 1
    temperature = 0.0

    def __init__(self, llm: LanguageModelSettings, settings: RewritingSettings) -> None:
        self.name = str(settings.method)
        self._model = LanguageModel(llm)
        self._tokens = settings.tokens
        self._prompt = read_prompt(f'rewrite-{settings.method}', settings.prompt, ('query',))
        self._passages: dict[str, tuple[str, ...]] = {}
        # Rankings search at the same time.
        self._lock = threading.Lock()

    def identity(self) -> Mapping[str, Any]:
        return {
            'rewriting': self.name,
            'model': self._model.name,
            'passages': self.n_passages,
            'temperature': self.temperature,
            'tokens': self._tokens,
            'prompt_sha256': self._prompt.sha256,
        }

    def prepare(self, topics: Sequence[Query], trace: Trace = SILENT) -> None:
        start = time.perf_counter()
        texts = dict.fromkeys(topic.text for topic in topics)
        trace.begins('rewrite', len(texts), 'questions')
        replies: list[Reply] = []
        with self._lock:
            for text in texts:
                replies += self._write(text)
                trace.advance(1)
        tokens = [reply.answer.prompt_tokens + reply.answer.answer_tokens for reply in replies]
        cost = StageCost(
            stage=self.name,
            queries=len(topics),
            inferences=len(replies),
            seconds=time.perf_counter() - start,
            tokens=sum(tokens),
            candidates=0,
            truncated=None,
            calls=sum(reply.is_new for reply in replies),
            repaired=sum(not _passage_of(reply) for reply in replies),
            answer_tokens=sum(reply.answer.answer_tokens for reply in replies),
        )
        trace.spent(cost)

    def passages(self, question: str) -> tuple[str, ...]:
        """The passages that the model writes about a question, without those that are empty."""
        with self._lock:
            if question not in self._passages:
                self._write(question)
            return self._passages[question]

    def _write(self, question: str) -> list[Reply]:
        """Let the model write passages about a question, and remember them."""
        prompt = self._prompt.fill({'query': question})
        replies = []
        for number in range(self.n_passages):
            sampling = None
            if self.temperature:
                sampling = Sampling(self.temperature, seed=number)
            replies.append(self._model.ask(question, prompt, self._tokens, sampling=sampling))
        passages = [_passage_of(reply) for reply in replies]
        self._passages[question] = tuple(passage for passage in passages if passage)
        return replies

    @abstractmethod
    def query_encoder(self, encoder: Any) -> Any: ...


def _passage_of(reply: Reply) -> str:
    """The passage in an answer, single spaces between its words; '' if it has none."""
    return ' '.join(without_thought(reply.answer.text).split())


class HydeRewriting(_Rewriting):
    """HyDE: dense rankings search for passages and the question; words are the question's."""

    temperature = _TEMPERATURE
    rewrites_words = False

    def __init__(self, llm: LanguageModelSettings, settings: RewritingSettings) -> None:
        super().__init__(llm, settings)
        self.n_passages = settings.passages

    def words(self, question: str) -> str:
        return question

    def query_encoder(self, encoder: Any) -> Any:
        return _HydeEncoder(encoder, self)


class Query2docRewriting(_Rewriting):
    """query2doc: rankings search for the question with a passage."""

    rewrites_words = True

    def words(self, question: str) -> str:
        return ' '.join([question] * _REPEATS + list(self.passages(question)))

    def query_encoder(self, encoder: Any) -> Any:
        return _Query2docEncoder(encoder, self)


class _RewritingEncoder:
    """A query encoder that replaces another one and has its other attributes.

    Parameters
    ----------
    encoder : of questions
    rewriting : gives passages
    """

    def __init__(self, encoder: Any, rewriting: _Rewriting) -> None:
        self._encoder = encoder
        self._rewriting = rewriting

    def __getattr__(self, name: str) -> Any:
        # Records, and checks against the index, ask for the name and the checksums.
        return getattr(self._encoder, name)

    def encode(self, query: str) -> NDArray[np.float32]:
        """One question's vector, float32 (d,)."""
        vector: NDArray[np.float32] = self.encode_batch([query])[0]
        return vector

    @abstractmethod
    def encode_batch(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of questions, float32 (n, d)."""


class _HydeEncoder(_RewritingEncoder):
    """The mean of a question's vector and its passages' vectors.

    Passages are encoded like the index's.
    """

    def __init__(self, encoder: Any, rewriting: _Rewriting) -> None:
        super().__init__(encoder, rewriting)
        checkpoint = getattr(encoder, 'checkpoint', encoder.name)
        documents = document_encoder(
            checkpoint, str(encoder.device), precision=encoder.precision, open_encoder=encoder
        )
        if encoder.is_truncated:
            documents = documents.truncated(encoder.dimension)
        self._documents = documents

    def encode_batch(self, queries: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.array(self._encoder.encode_batch(queries), np.float32)
        for row, query in enumerate(queries):
            passages = self._rewriting.passages(query)
            if passages:
                of_passages = self._documents.encode(passages)
                vectors[row] = np.vstack([vectors[row], of_passages]).mean(axis=0)
        return vectors


class _Query2docEncoder(_RewritingEncoder):
    """The vector of 'question [SEP] passage', which is read as a question."""

    def encode_batch(self, queries: Sequence[str]) -> NDArray[np.float32]:
        separator = f' {self._separator()} '
        texts = [separator.join([query, *self._rewriting.passages(query)]) for query in queries]
        longest = min(_EXPANDED_LIMIT, self._encoder.max_length)
        limit = max(self._encoder.limit, longest)
        vectors: NDArray[np.float32] = self._encoder.encode_batch(texts, max_length=limit)
        return vectors

    def _separator(self) -> str:
        """The token that separates two texts: '[SEP]' of BERT."""
        tokenizer = getattr(self._encoder, 'tokenizer', None)
        if tokenizer is None:
            return '[SEP]'
        (token,) = tokenizer.tokens([tokenizer.sep])
        return str(token)


_REWRITINGS = {
    RewritingMethod.HYDE: HydeRewriting,
    RewritingMethod.QUERY2DOC: Query2docRewriting,
}


def open_rewriting(text: str, llm: LanguageModelSettings | None) -> QueryRewriting:
    """What rewrites questions, as a user says it: 'hyde:passages=4'.

    Raises InputError without a language model, and for anything but a rewriting.
    """
    settings = RewritingSettings.parse(text)
    if llm is None:
        raise InputError(
            f"rewriting by '{settings.method}' asks a language model, and none was named: give its "
            'name and its address',
            parameters=('llm_model', 'llm'),
        )
    return _REWRITINGS[settings.method](llm, settings)
