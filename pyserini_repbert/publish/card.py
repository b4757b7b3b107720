"""The card of a hub repository: licence, tags, and results as the hub shows them (`model-index`)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.models.checkpoints.folder import Checkpoint

_HEAD = re.compile(r'---\n(.*?)\n---\n', re.DOTALL)
_TASKS = {'repbert': 'sentence-similarity', 'monobert': 'text-ranking', 'duobert': 'text-ranking'}
_LIBRARIES = {'repbert': 'sentence-transformers', 'monobert': 'transformers', 'duobert': 'transformers'}
_USE = """\
## Use

With pyserini_repbert, from the folder where its files are:

```python
from pyserini_repbert.{where} import {what}

model = {what}('{name}')
```
"""
_SENTENCE = """
With sentence-transformers:

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer('{name}')
scores = model.similarity(model.encode_query(['a question']), model.encode_document(['a passage']))
```
"""


@dataclass(frozen=True)
class Card:
    """What a card says that the checkpoint itself does not.

    Attributes
    ----------
    name : of the model
    licence : in the hub's spelling; None: as in the checkpoint's own card
    results : data set -> measure -> value
    """

    name: str
    licence: str | None = None
    results: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def text(self, checkpoint: Checkpoint, system: str) -> str:
        """The card's Markdown.

        Raises InputError if neither this nor the checkpoint's own card names a licence, or if the latter's head is not
        YAML.
        """
        from huggingface_hub import EvalResult, ModelCardData

        head, body = _existing(checkpoint.folder / 'README.md')
        licence = self.licence or head.get('license')
        if not licence:
            raise InputError(
                f"the licence of '{checkpoint.name}' is not known: name one, as apache-2.0", parameters=('licence',)
            )
        data = ModelCardData(
            license=str(licence).lower(),
            library_name=_LIBRARIES.get(system, 'pyserini_repbert'),
            pipeline_tag=_TASKS.get(system),
            tags=['information-retrieval', 'pyserini', system],
            base_model=_on_the_hub(head.get('base_model')),
            model_name=self.name,
            eval_results=[
                EvalResult('text-retrieval', data_set, data_set, measure, value)
                for data_set, values in self.results.items()
                for measure, value in values.items()
            ]
            or None,
        )
        table = _table(self.results)
        return f'---\n{data.to_yaml()}\n---\n\n{body or f"# {self.name}"}\n\n{table}{_use(system, self.name)}'


def read_results(path: StrPath) -> dict[str, float]:
    """Read measure -> value from the output of `evaluate --json` for one run.

    Raises InputError for another content, OSError for a file that cannot be read.
    """
    try:
        runs = json.loads(Path(path).read_text(encoding='utf-8'))['runs']
        measures = {str(name): float(value) for name, value in runs[0]['measures'].items()}
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise InputError(f'{path} is not what `evaluate` prints as JSON: give its output for one run') from error
    if len(runs) != 1:
        names = ', '.join(str(run.get('run')) for run in runs)
        raise InputError(f'{path} has {len(runs)} runs ({names}): evaluate that of this model alone')
    return measures


def _existing(path: Path) -> tuple[dict[str, Any], str]:
    """The head and the body of an existing card; both are empty if there is none."""
    if not path.is_file():
        return {}, ''
    text = path.read_text(encoding='utf-8')
    match = _HEAD.match(text)
    if not match:
        return {}, text.strip()
    try:
        head = yaml.safe_load(match[1])
    except yaml.YAMLError as error:
        raise InputError(f'{path}: its head is not YAML ({" ".join(str(error).split())}): mend it') from error
    return head if isinstance(head, dict) else {}, text[match.end() :].strip()


def _on_the_hub(base: object) -> str | None:
    """A base's name if it has the form OWNER/NAME of a hub repository; else None."""
    known = isinstance(base, str) and re.fullmatch(r'[\w.-]+/[\w.-]+', base)
    return base if known else None  # type: ignore[return-value]


def _table(results: Mapping[str, Mapping[str, float]]) -> str:
    if not results:
        return ''
    rows = [f'| {name} | {measure} | {value:.4f} |' for name, own in results.items() for measure, value in own.items()]
    return '\n'.join(['## Evaluation', '', '| data | measure | value |', '|---|---|---|', *rows, '', ''])


def _use(system: str, name: str) -> str:
    where, what = ('encode', 'RepBertQueryEncoder') if system == 'repbert' else ('pipeline.specs', 'open_reranker')
    return _USE.format(where=where, what=what, name=name) + (_SENTENCE.format(name=name) if system == 'repbert' else '')
