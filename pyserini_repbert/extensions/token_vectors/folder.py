"""Which folders are a `MultiVectorEncoder` of sentence-transformers, and their settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyserini_repbert import catalog
from pyserini_repbert.data.values import read_object
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.models.checkpoints.checkpoint import (
    AnyCheckpoint,
    Checkpoint,
    folder_of,
    unlisted_folder,
)
from pyserini_repbert.systems.sentence_transformers.folder import (
    BiEncoder,
    DenseLayer,
    Unsupported,
    check_values,
    read_body,
    read_body_settings,
    read_dense,
    read_modules,
    read_prompts,
    read_settings,
    read_values_if_there,
)
from pyserini_repbert.systems.sentence_transformers.recognising import (
    MODULES,
    SETTINGS,
    module_types,
)

NAME = 'multi-vector'
_KIND = 'MultiVectorEncoder'
# The names that such a folder may give itself; PyLate's releases before 4 say ColBERT.
_KINDS = (_KIND, 'ColBERT')
# The packages of modules that only such models have.
_PACKAGES = ('sentence_transformers.multi_vector_encoder.', 'pylate.')
# The architecture in the config.json of the authors' checkpoints.
_AUTHORS = 'HF_ColBERT'
# Keys of the settings that this package's engine knows. Others belong to earlier formats.
_KNOWN_SETTINGS = ('__version__', 'default_prompt_name', 'model_type', 'prompts')
_SIMILARITY = 'similarity_fn_name'
# A key of a body's settings.
_EXPANSION = 'query_expansion'
_TOKEN_VECTORS: Mapping[str, tuple[Any, ...]] = {
    'module_input_name': (None, 'token_embeddings'),
    'module_output_name': (None, 'token_embeddings'),
    'use_residual': (None, False),
}
# Of a Normalize, which does nothing to token vectors by default.
_NORMALIZED: Mapping[str, tuple[Any, ...]] = {
    'module_input_name': ('token_embeddings',),
    'module_output_name': (None, 'token_embeddings'),
}


def is_multi_vector_folder(name: AnyCheckpoint) -> bool:
    """Whether a name means a folder, or a repository in the hub's cache, of a `MultiVectorEncoder`.

    Such a folder says so in the settings of sentence-transformers, or lists a module that only
    such models have, or is a checkpoint of ColBERT's authors.
    """
    folder = unlisted_folder(name)
    if folder is None:
        return False
    if _read_kind(folder / SETTINGS, 'model_type') in _KINDS:
        return True
    architectures = _read_kind(folder / 'config.json', 'architectures')
    if isinstance(architectures, list) and _AUTHORS in architectures:
        return True
    return any(kind.startswith(_PACKAGES) for kind in module_types(folder))


def is_trained(name: AnyCheckpoint) -> bool:
    """Whether a name means a checkpoint of this package's `train` for late interaction."""
    if isinstance(name, Checkpoint):
        ranking = name.config.get('ranking')
    else:
        entry = catalog.find('rerankers', str(name))
        if entry is not None:
            ranking = entry.values.get('ranking')
        else:
            ranking = _read_kind(folder_of(name) / 'config.json', 'ranking')
    return isinstance(ranking, Mapping) and ranking.get('system') == NAME


def _read_kind(path: Path, key: str) -> Any:
    """A value of a JSON file; None without it, and for a file of another form."""
    if not path.is_file():
        return None
    try:
        return read_object(path).get(key)
    except DamagedFileError:
        return None


def has_mean_similarity(folder: Path) -> bool:
    """Whether a folder's score is the mean of the maxima, 'meanmaxsim', rather than their sum.

    sentence-transformers takes every other similarity for the sum.
    """
    return read_settings(folder).get(_SIMILARITY) == 'meanmaxsim'


@dataclass(frozen=True)
class Expansion:
    """How queries are filled up with a token (ColBERT section 3.2, query augmentation).

    Attributes
    ----------
    length : of the shortest query, special tokens included
    is_longest : whether longer queries are cut to this length ('fixed', against 'min')
    is_attended : whether other tokens attend to those that were filled in
    token : the name of the token; None: the tokenizer's mask
    """

    length: int
    is_longest: bool
    is_attended: bool
    token: str | None


@dataclass(frozen=True)
class MultiVectorModel:
    """A `MultiVectorEncoder` that this package's engine runs.

    Attributes
    ----------
    network : its BERT, and the layers over the vector of each token
    query_prompt, passage_prompt : put before each text
    query_length, passage_length : tokens kept, special tokens included; None: the folder says none
    expansion : of queries; None: they are not filled up
    skipped : the names of tokens whose vectors are left out
    skips_in_queries, skips_in_passages : where they are left out
    """

    network: BiEncoder
    query_prompt: str
    passage_prompt: str
    query_length: int | None
    passage_length: int | None
    expansion: Expansion | None
    skipped: Sequence[str]
    skips_in_queries: bool
    skips_in_passages: bool


def read_multi_vector(folder: Path, name: str) -> MultiVectorModel:
    """The model in a folder. Raises Unsupported for one that the engine does not run.

    Parameters
    ----------
    folder : with `modules.json`
    name : of the folder, as the user gave it
    """
    if not (folder / MODULES).is_file():
        raise Unsupported(f'it has no {MODULES}')
    settings = read_settings(folder)
    for key in settings:
        if key not in (*_KNOWN_SETTINGS, _SIMILARITY):
            raise Unsupported(f'its settings have {key}')
    prompts = read_prompts(settings, _KIND)
    modules = read_modules(folder)
    kinds = [module.kind for module in modules]
    if kinds[:1] != ['Transformer'] or kinds.count('MultiVectorMask') != 1:
        raise Unsupported(f'its modules are {", ".join(kinds)}')
    layers: list[DenseLayer | None] = []
    mask: Mapping[str, Any] = {}
    for module in modules[1:]:
        if module.kind == 'Dense':
            layers.append(read_dense(module.folder, _TOKEN_VECTORS))
        elif module.kind == 'Normalize' and (module.folder / 'config.json').is_file():
            check_values(module.folder / 'config.json', _NORMALIZED)
            layers.append(None)
        elif module.kind == 'MultiVectorMask':
            mask = read_values_if_there(module.folder / 'config.json')
        else:
            raise Unsupported(f'it has a module {module.kind}')
    body_settings = dict(read_body_settings(modules[0].folder))
    # The reader of bodies handles everything that is not removed here.
    query_length = _read_length(body_settings.pop('query_length', None))
    passage_length = _read_length(body_settings.pop('document_length', None))
    expansion = _read_expansion(body_settings.pop(_EXPANSION, None))
    tasks = _read_tasks(mask)
    return MultiVectorModel(
        network=BiEncoder(read_body(modules[0].folder, name, body_settings), (), tuple(layers)),
        query_prompt=prompts.get('query', ''),
        passage_prompt=prompts.get('document', ''),
        query_length=query_length,
        passage_length=passage_length,
        expansion=expansion,
        skipped=_read_skipped(mask),
        skips_in_queries='query' in tasks,
        skips_in_passages='document' in tasks,
    )


def _read_length(length: Any) -> int | None:
    """How many tokens of a text are kept; None: the folder does not say."""
    if length is None:
        return None
    if type(length) is not int or length < 1:
        raise Unsupported(f'it keeps {length!r} tokens of a text')
    return length


def _read_expansion(values: Any) -> Expansion | None:
    if values is None:
        return None
    if not isinstance(values, dict) or set(values) - {'strategy', 'attend', 'token', 'length'}:
        raise Unsupported(f'its {_EXPANSION} is {values!r}')
    strategy = values.get('strategy')
    attend = values.get('attend', False)
    token = values.get('token')
    length = values.get('length')
    is_known = strategy in ('fixed', 'min') and isinstance(attend, bool)
    if not is_known or not isinstance(token, str | None) or type(length) is not int or length < 1:
        raise Unsupported(f'its {_EXPANSION} is {values!r}')
    return Expansion(length, strategy == 'fixed', attend, token)


def _read_skipped(mask: Mapping[str, Any]) -> Sequence[str]:
    """The names of tokens that a MultiVectorMask leaves out."""
    if mask.get('keep_only_token_ids'):
        raise Unsupported('its MultiVectorMask has keep_only_token_ids')
    words = mask.get('skiplist_words') or []
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise Unsupported(f'its skiplist_words are {words!r}')
    return words


def _read_tasks(mask: Mapping[str, Any]) -> Sequence[str]:
    """Where a MultiVectorMask leaves tokens out: 'query', 'document'."""
    tasks = mask.get('skiplist_tasks')
    if tasks is None:
        return ['document']
    if isinstance(tasks, str):
        return [tasks]
    if not isinstance(tasks, list):
        raise Unsupported(f'its skiplist_tasks are {tasks!r}')
    return tasks
