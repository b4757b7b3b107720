"""Stages as users write them, 'duobert-large@50:binary', and the opening of the rerankers that they name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyserini_repbert.data.values import integer
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.models.cedr.settings import FIRST_STAGES
from pyserini_repbert.rerank.base import Reranker

_FORM = (
    "'NAME@K' or 'NAME@K:OPTION,…' with OPTION one of METHOD, sample=M, seed=N, layout=NAME, max-length=N, layers=N, "
    'index=FOLDER, missing=encode|refuse, prune=N'
)
SYSTEMS = {
    'monobert': ('monobert', 'MonoBertReranker'),
    'duobert': ('duobert', 'DuoBertReranker'),
    'epic': ('epic', 'EpicReranker'),
    'cedr': ('cedr', 'CedrReranker'),
}
_SENTENCE = ('sentence', 'SentenceCrossEncoderReranker')  # of sentence-transformers
_OPTIONS: dict[str, Callable[[str], Any]] = {
    'sample': integer,
    'seed': integer,
    'layout': str,
    'max-length': integer,
    'layers': integer,
    'index': str,
    'missing': str,
    'prune': integer,
}
_PARAMETERS = {'max-length': 'max_length', 'layers': 'n_layers'}  # options whose parameter has another name


@dataclass(frozen=True)
class StageSpec:
    """A stage: a reranker by name, and how many candidates it takes.

    Attributes
    ----------
    name : catalog name or checkpoint folder
    k : number of best candidates that it reranks
    options : keyword arguments of the reranker: method, samples, seed, layout, max_length, n_layers, index,
        missing, prune
    """

    name: str
    k: int
    options: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        settings = ','.join(f'{key}={value}' for key, value in self.options)
        return f'{self.name}@{self.k}' + (f':{settings}' if settings else '')

    @property
    def label(self) -> str:
        """A short name for reports: 'duobert-large@50', the last part of a folder."""
        return f'{Path(self.name).name}@{self.k}'


def parse_stage(text: str) -> StageSpec:
    """A stage from its text: 'monobert-large@1000', 'duobert-large@50:binary', 'duobert-large@50:sample=10,seed=1'.

    K may be the name of one of CEDR's settings: 'FOLDER@robust04' takes 150 candidates, '@webtrack' 100.

    Raises
    ------
    InputError
        for anything else; an unknown METHOD is refused when the reranker is opened
    """
    name, at, rest = text.rpartition('@')
    k, colon, settings = rest.partition(':')
    if k in FIRST_STAGES:
        k = str(FIRST_STAGES[k].depth)
    try:
        depth = integer(k, 1)
    except ValueError:
        depth = 0
    if not (at and name and depth) or (colon and not settings):
        raise InputError(f"stage '{text}': expected {_FORM}, K at least 1")
    options: dict[str, Any] = {}
    for setting in settings.split(',') if colon else []:
        key, equals, value = setting.partition('=')
        if not equals:
            key, value = 'method', setting
        elif key not in _OPTIONS:
            raise InputError(f"stage '{text}': '{key}' is no option: expected {_FORM}")
        try:
            parsed = _OPTIONS.get(key, str)(value)
        except ValueError as error:
            raise InputError(f"stage '{text}': '{setting}' is not a whole number: expected {_FORM}") from error
        new = {'method': 'sample', 'samples': parsed} if key == 'sample' else {_PARAMETERS.get(key, key): parsed}
        if twice := sorted(new.keys() & options.keys()):
            raise InputError(f"stage '{text}' has more than one {twice[0]}: give one")
        options |= new
    return StageSpec(name, depth, tuple(options.items()))


def open_reranker(
    name: str | Path,
    device: str = 'cpu',
    options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Reranker:
    """Open the reranker of a checkpoint: monoBERT, duoBERT, EPIC or CEDR, by its config.json or catalog entry.

    A checkpoint that names no system is taken for a cross-encoder of sentence-transformers if it has one label, else
    for monoBERT.

    Parameters
    ----------
    options : keyword arguments that the reranker must have
    settings : keyword arguments (precision, backend, token_budget), each passed on if the reranker has it

    Raises
    ------
    UnknownNameError, MissingResourceError, DamagedFileError
        for a checkpoint that is not there or not whole
    MismatchError
        for a checkpoint of another system
    InputError
        for an option that the reranker does not have
    """
    from inspect import signature

    from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
    from pyserini_repbert.rerank.sentence import is_cross_encoder

    checkpoint = open_checkpoint(name, 'rerankers')
    system = checkpoint.config.get('ranking', {}).get('system', 'monobert')
    if system not in SYSTEMS:
        raise MismatchError(
            f"checkpoint '{name}' is for the system '{system}', a reranker was expected: {', '.join(SYSTEMS)}"
        )
    module, attribute = _SENTENCE if is_cross_encoder(checkpoint) else SYSTEMS[system]
    kind = getattr(importlib.import_module(f'pyserini_repbert.rerank.{module}'), attribute)
    known = signature(kind).parameters
    for key in options or {}:
        if key not in known:
            raise InputError(f"reranker '{name}' is one of {system}, which has no option '{key}': leave it out")
    passed = {key: value for key, value in settings.items() if key in known and value is not None}
    made: Reranker = kind(checkpoint, device, **passed, **(options or {}))
    return made
