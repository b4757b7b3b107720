"""`LanguageModel`: asks a model, or finds the answer that it gave before."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert.extensions.language_models.answers import AnswerFile
from pyserini_repbert.extensions.language_models.client import ChatClient, ModelAnswer
from pyserini_repbert.extensions.language_models.errors import LanguageModelError
from pyserini_repbert.extensions.language_models.permutation import is_thought_open
from pyserini_repbert.extensions.language_models.settings import LanguageModelSettings
from pyserini_repbert.offline import OFFLINE_VARIABLE

# How many of the likeliest first tokens are requested: the most that OpenAI's servers give.
TOP_TOKENS = 20
_SHOWN = 60  # characters of a question, in an error


@dataclass(frozen=True)
class Sampling:
    """How an answer is sampled; without it, each token is the likeliest one.

    Attributes
    ----------
    temperature : above 0
    seed : of the draw: another one gives another answer
    """

    temperature: float
    seed: int


@dataclass(frozen=True)
class Reply:
    """An answer, and whether the model was asked for it now.

    Attributes
    ----------
    answer : of the model
    is_new : False if it was kept from before
    """

    answer: ModelAnswer
    is_new: bool


class LanguageModel:
    """A language model whose answers are stored: in the file of the settings, otherwise in memory.

    Parameters
    ----------
    settings : which model, where, and the file of answers
    """

    def __init__(self, settings: LanguageModelSettings) -> None:
        self.settings = settings
        self.name = settings.model
        self._file: AnswerFile | None = None
        if settings.answers is not None:
            self._file = AnswerFile(Path(settings.answers))
        self._client: ChatClient | None = None
        if settings.address is not None and os.environ.get(OFFLINE_VARIABLE, '') in ('', '0'):
            self._client = ChatClient(settings.address)
        self._remembered: dict[str, ModelAnswer] = {}

    def ask(
        self,
        question: str,
        prompt: str,
        max_tokens: int,
        top_tokens: int = 0,
        sampling: Sampling | None = None,
    ) -> Reply:
        """The model's answer to a prompt, always the same once it is kept.

        Parameters
        ----------
        question : that the prompt is about, for errors
        prompt : all that the model reads
        max_tokens : of the answer
        top_tokens : how many of the likeliest first tokens are requested; 0: none
        sampling : how the answer is drawn

        Raises LanguageModelError if no answer is kept and none may be asked for, and the
        errors of `ChatClient.complete` and of `AnswerFile`.
        """
        body: dict[str, object] = {
            'model': self.name,
            'messages': [{'role': 'user', 'content': prompt}],
            'temperature': 0,
            'max_tokens': max_tokens,
        }
        if top_tokens:
            body |= {'logprobs': True, 'top_logprobs': top_tokens}
        if sampling is not None:
            body |= {'temperature': sampling.temperature, 'seed': sampling.seed}
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        kept = self._find(digest)
        if kept is not None:
            return Reply(kept, is_new=False)
        if self._client is None:
            raise self._missing(digest, question)
        answer = self._client.complete(body)
        if is_thought_open(answer.text):
            # Not a valid answer, so the model is asked again next time.
            return Reply(answer, is_new=True)
        return Reply(self._keep(digest, answer), is_new=True)

    def _find(self, digest: str) -> ModelAnswer | None:
        if self._file is not None:
            return self._file.find(digest)
        return self._remembered.get(digest)

    def _keep(self, digest: str, answer: ModelAnswer) -> ModelAnswer:
        """The answer that is kept: another process may have been faster."""
        if self._file is not None:
            return self._file.store(digest, self.name, answer)
        return self._remembered.setdefault(digest, answer)

    def _missing(self, digest: str, question: str) -> LanguageModelError:
        """The error about an answer that does not exist, while none may be asked for."""
        source = 'no file of answers was given, which'
        if self._file is not None:
            source = f'{self._file.path}'
        why = 'no address was given'
        parameter = 'llm'
        if self.settings.address is not None:
            why = 'this process is offline'
            parameter = 'llm_answers'
        return LanguageModelError(
            f"{source} has no answer of '{self.name}' about {question[:_SHOWN]!r} (sha256 of the "
            f'request {digest[:12]}…), and {why}: run it once with the model',
            parameters=(parameter,),
        )
