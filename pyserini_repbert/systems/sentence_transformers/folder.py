"""What a folder of sentence-transformers says, as far as this package's engine can run it.

`Unsupported` says why it cannot: sentence-transformers then runs the model. Anything that is not
known to give the same vectors is unsupported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyserini_repbert.data.values import parse_json, read_object
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.folder import WEIGHTS, Checkpoint
from pyserini_repbert.models.numpy_bert import POOLINGS
from pyserini_repbert.systems.sentence_transformers.layers import ACTIVATION_NAMES, DenseSizes
from pyserini_repbert.systems.sentence_transformers.recognising import MODULES, SETTINGS

_PACKAGE = 'sentence_transformers.'
# Files of a body's settings, the first that is there; names of early releases.
_BODY_SETTINGS = (
    'sentence_bert_config.json',
    'sentence_roberta_config.json',
    'sentence_xlm-roberta_config.json',
)
# The keys of these files, with the values that the engine knows; None for any value.
_KNOWN_SETTINGS: Mapping[str, tuple[Any, ...] | None] = {
    'max_seq_length': None,
    'do_lower_case': None,
    'unpad_inputs': None,
    'transformer_task': ('feature-extraction', 'sequence-classification'),
    'module_output_name': ('token_embeddings', 'scores'),
    'modality_config': (
        {'text': {'method': 'forward', 'method_output_name': 'last_hidden_state'}},
        {'text': {'method': 'forward', 'method_output_name': 'logits'}},
    ),
}
# Activations of a cross-encoder's score, by their names in files.
SCORE_ACTIVATIONS = {
    'torch.nn.modules.linear.Identity': 'identity',
    'torch.nn.modules.activation.Sigmoid': 'sigmoid',
}
# Poolings, by their keys in early releases, in the order of their vectors.
_EARLY_POOLINGS = {
    'pooling_mode_cls_token': 'cls',
    'pooling_mode_max_tokens': 'max',
    'pooling_mode_mean_tokens': 'mean',
    'pooling_mode_mean_sqrt_len_tokens': 'mean_sqrt_len_tokens',
    'pooling_mode_weightedmean_tokens': 'weightedmean',
    'pooling_mode_lasttoken': 'lasttoken',
}
# What a config.json may not have: other computations than a plain BERT's.
_OTHER_COMPUTATIONS = (
    'is_decoder',
    'add_cross_attention',
    'quantization_config',
    'auto_map',
    'pruned_heads',
)


class Unsupported(Exception):
    """Why this package's engine does not run a folder."""


@dataclass(frozen=True)
class Module:
    """A module of a folder: the last word of its class, and its own folder."""

    kind: str
    folder: Path


@dataclass(frozen=True)
class Body:
    """A BERT, RoBERTa or XLM-R of a folder.

    Attributes
    ----------
    checkpoint : its config.json and its weights
    config : its sizes
    max_length : tokens of the longest input, special tokens included; None: the folder sets none
    lowercase : whether texts are put into lower case before the tokenizer reads them
    """

    checkpoint: Checkpoint
    config: BertConfig
    max_length: int | None
    lowercase: bool


@dataclass(frozen=True)
class DenseLayer:
    """A Dense module: its sizes, and the folder with its weights."""

    sizes: DenseSizes
    folder: Path


@dataclass(frozen=True)
class BiEncoder:
    """A bi-encoder that the engine runs.

    Attributes
    ----------
    body : its BERT
    poolings : names in `POOLINGS`; their vectors are joined
    layers : what follows: dense layers, and None for each Normalize
    """

    body: Body
    poolings: tuple[str, ...]
    layers: tuple[DenseLayer | None, ...]

    @property
    def dimension(self) -> int:
        """Of the vectors."""
        dimension = self.body.config.hidden_size * len(self.poolings)
        for layer in self.layers:
            if layer is not None:
                dimension = layer.sizes.size_out
        return dimension


def read_bi_encoder(folder: Path, name: str) -> BiEncoder:
    """The bi-encoder in a folder. Raises Unsupported for one that the engine does not run.

    Parameters
    ----------
    folder : with `modules.json`
    name : of the folder, as the user gave it
    """
    modules = read_modules(folder)
    kinds = [module.kind for module in modules]
    if kinds[:2] != ['Transformer', 'Pooling']:
        raise Unsupported(f'its modules are {", ".join(kinds)}')
    layers: list[DenseLayer | None] = []
    for module in modules[2:]:
        if module.kind == 'Dense':
            layers.append(read_dense(module.folder, SENTENCE_VECTOR))
        elif module.kind == 'Normalize':
            check_values(module.folder / 'config.json', SENTENCE_VECTOR)
            layers.append(None)
        else:
            raise Unsupported(f'it has a module {module.kind}')
    body = read_body(modules[0].folder, name)
    return BiEncoder(body, _read_pooling(modules[1].folder), tuple(layers))


@dataclass(frozen=True)
class CrossEncoderFolder:
    """A cross-encoder that the engine runs.

    Attributes
    ----------
    body : its BERT
    activation : of a single label: 'identity' or 'sigmoid'; None: the folder names none
    """

    body: Body
    activation: str | None


def read_cross_encoder(folder: Path, name: str) -> CrossEncoderFolder:
    """The cross-encoder in a folder. Raises Unsupported for one that the engine does not run.

    Parameters
    ----------
    folder : with config.json and weights, and `modules.json` from release 6 on
    name : of the folder, as the user gave it
    """
    if not (folder / MODULES).is_file():
        body = read_body(folder, name, settings={})
        return CrossEncoderFolder(body, _read_activation(body, {}))
    modules = read_modules(folder)
    kinds = [module.kind for module in modules]
    if kinds != ['Transformer']:
        raise Unsupported(f'its modules are {", ".join(kinds)}')
    body_settings = read_body_settings(modules[0].folder)
    if body_settings.get('transformer_task') != 'sequence-classification':
        raise Unsupported('its body is not a classifier')
    settings = read_settings(folder)
    prompts = read_prompts(settings, 'CrossEncoder')
    if prompts.get(settings.get('default_prompt_name', '')):
        raise Unsupported('it has a prompt')
    body = read_body(modules[0].folder, name, body_settings)
    return CrossEncoderFolder(body, _read_activation(body, settings))


def _read_activation(body: Body, settings: Mapping[str, Any]) -> str | None:
    """The activation of a cross-encoder, from the place where sentence-transformers looks first."""
    config = body.checkpoint.config
    of_config = config.get('sentence_transformers') or {}
    named = settings.get('activation_fn')
    if named is None and 'activation_fn' in of_config:
        named = of_config['activation_fn']
    elif named is None:
        named = config.get('sbert_ce_default_activation_function')
    # Activations from outside PyTorch are not trusted, and ignored.
    if named is None or not str(named).startswith('torch.'):
        return None
    if named not in SCORE_ACTIVATIONS:
        raise Unsupported(f'its activation is {named}')
    return SCORE_ACTIVATIONS[named]


def read_modules(folder: Path) -> Sequence[Module]:
    """The modules of a folder. Raises Unsupported for modules of other packages."""
    modules = []
    for entry in _list_of_objects(folder / MODULES):
        kind = entry.get('type')
        path = entry.get('path')
        if not isinstance(kind, str) or not isinstance(path, str) or entry.get('kwargs'):
            raise Unsupported(f'{MODULES} has an entry {entry}')
        if not kind.startswith(_PACKAGE):
            raise Unsupported(f'it has a module {kind}')
        if Path(path).is_absolute() or '..' in Path(path).parts:
            raise Unsupported(f'a module is outside of it: {path}')
        modules.append(Module(kind.rpartition('.')[2], folder / path))
    return modules


def read_body(folder: Path, name: str, settings: Mapping[str, Any] | None = None) -> Body:
    """The BERT in a folder.

    Parameters
    ----------
    folder : with config.json and weights
    name : of the model, as the user gave it
    settings : what sentence-transformers would read of it; default: as its file says

    Raises Unsupported for another architecture, and for a folder without weights in safetensors.
    """
    if settings is None:
        settings = read_body_settings(folder)
    _check_settings(settings)
    values = _read_config(folder)
    for key in _OTHER_COMPUTATIONS:
        if values.get(key):
            raise Unsupported(f'its config.json has {key}')
    try:
        config = BertConfig.from_dict(values, takes_roberta=True)
    except InputError as error:
        raise Unsupported(str(error)) from error
    if (folder / 'adapter_config.json').exists():
        raise Unsupported('it is an adapter')
    if not any((folder / file).is_file() for file in (WEIGHTS, f'{WEIGHTS}.index.json')):
        raise Unsupported(f'it has no {WEIGHTS}')
    is_lowercase = bool(settings.get('do_lower_case', False))
    return Body(
        Checkpoint(name, folder, values), config, settings.get('max_seq_length'), is_lowercase
    )


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Raise Unsupported for a setting that sentence-transformers would follow otherwise."""
    for key, value in settings.items():
        known = _KNOWN_SETTINGS.get(key, ())
        if known is not None and value not in known and value not in (None, {}):
            raise Unsupported(f'its setting {key} is {value}')
    length = settings.get('max_seq_length')
    if length is not None and not (isinstance(length, int) and length > 0):
        raise Unsupported(f'its max_seq_length is {length}')


def read_settings(folder: Path) -> Mapping[str, Any]:
    """The settings of a whole model: prompts, similarity; empty if there is no such file."""
    path = folder / SETTINGS
    if not path.is_file():
        return {}
    return read_object(path)


def read_prompts(settings: Mapping[str, Any], model_type: str) -> Mapping[str, str]:
    """The prompts of a model by name.

    Parameters
    ----------
    settings : of the model
    model_type : what it has to be, if its settings name a type

    Raises Unsupported for another type, and for invalid prompts.
    """
    if settings.get('model_type', model_type) != model_type:
        raise Unsupported(f'it is a {settings["model_type"]}')
    prompts = settings.get('prompts') or {}
    if not isinstance(prompts, dict):
        raise Unsupported('its prompts are not an object')
    for prompt in prompts.values():
        if not isinstance(prompt, str | None):
            raise Unsupported(f'it has a prompt {prompt}')
    default = settings.get('default_prompt_name')
    if default is not None and default not in ('query', 'document', *prompts):
        raise Unsupported(f'it has no prompt {default}')
    return {name: prompt or '' for name, prompt in prompts.items()}


def read_truncation(settings: Mapping[str, Any], name: str) -> int | None:
    """How many values of each vector a model of this name keeps; None: all.

    Raises Unsupported for a number below 0, which counts from the end, and InputError for anything
    but a number of values: sentence-transformers fails there, when it encodes.
    """
    kept = settings.get('truncate_dim')
    if kept is None:
        return None
    if not isinstance(kept, int) or isinstance(kept, bool) or kept == 0:
        raise InputError(
            f"the settings of '{name}' have truncate_dim {kept!r}, where an integer of values "
            'is expected: correct it in config_sentence_transformers.json'
        )
    if kept < 0:
        raise Unsupported(f'its truncate_dim is {kept}')
    return kept


def read_body_settings(folder: Path) -> Mapping[str, Any]:
    """The settings that sentence-transformers would read from a body; empty if there is no such
    file.
    """
    for file in _BODY_SETTINGS:
        if (folder / file).is_file():
            settings = _read_values(folder / file)
            if settings:
                return settings
    return {}


def _read_config(folder: Path) -> Mapping[str, Any]:
    path = folder / 'config.json'
    if not path.is_file():
        raise Unsupported('its body has no config.json')
    values = _read_values(path)
    if 'model_type' not in values:
        raise Unsupported('its config.json names no model_type')
    return values


def read_values_if_there(path: Path) -> Mapping[str, Any]:
    """A JSON object, empty if there is no such file. Raises Unsupported for another one."""
    return _read_values(path) if path.is_file() else {}


def _read_values(path: Path) -> Mapping[str, Any]:
    """A JSON object; sentence-transformers refuses anything else."""
    try:
        return read_object(path)
    except DamagedFileError as error:
        raise Unsupported(str(error)) from error


def _list_of_objects(path: Path) -> list[dict[str, Any]]:
    try:
        values = parse_json(path.read_text(encoding='utf-8'))
    except ValueError as error:
        raise Unsupported(f'{path.name} is not JSON ({error})') from error
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise Unsupported(f'{path.name} is not a list of modules')
    return values


# Of a module that reads and writes the vector of a text.
SENTENCE_VECTOR: Mapping[str, tuple[Any, ...]] = {
    'module_input_name': (None, 'sentence_embedding'),
    'module_output_name': (None, 'sentence_embedding'),
    'use_residual': (None, False),
}


def check_values(path: Path, expected: Mapping[str, tuple[Any, ...]]) -> None:
    """Raises Unsupported for a file with other values; one that does not exist has none."""
    if not path.is_file():
        return
    values = _read_values(path)
    for key, known in expected.items():
        if values.get(key) not in known:
            raise Unsupported(f'{path.parent.name} has {key} {values.get(key)}')


def _read_pooling(folder: Path) -> tuple[str, ...]:
    """The names of a Pooling module's methods."""
    path = folder / 'config.json'
    if not path.is_file():
        raise Unsupported('its Pooling has no config.json')
    values = _read_values(path)
    if values.get('include_prompt', True) is not True:
        raise Unsupported('its Pooling leaves prompts out')
    modes = values.get('pooling_mode')
    if modes is None:
        early = [mode for key, mode in _EARLY_POOLINGS.items() if values.get(key)]
        modes = early or ['mean']
    if isinstance(modes, str):
        modes = [modes]
    if not isinstance(modes, list) or not modes:
        raise Unsupported(f'its pooling is {modes}')
    for mode in modes:
        if mode not in POOLINGS:
            raise Unsupported(f'its pooling is {mode}')
    return tuple(modes)


def read_dense(folder: Path, expected: Mapping[str, tuple[Any, ...]]) -> DenseLayer:
    """A Dense module whose settings have these values. Raises Unsupported for another."""
    path = folder / 'config.json'
    if not path.is_file() or not (folder / WEIGHTS).is_file():
        raise Unsupported(f'{folder.name} has no config.json or no {WEIGHTS}')
    check_values(path, expected)
    values = _read_values(path)
    activation = values.get('activation_function', 'torch.nn.modules.activation.Tanh')
    if not isinstance(activation, str) or activation not in ACTIVATION_NAMES:
        raise Unsupported(f'{folder.name} has the activation {activation}')
    sizes = [values.get('in_features'), values.get('out_features')]
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise Unsupported(f'{folder.name} has the sizes {sizes}')
    has_bias = bool(values.get('bias', True))
    return DenseLayer(
        DenseSizes(values['in_features'], values['out_features'], activation, has_bias), folder
    )
