"""The settings in the files of a sentence-transformers folder; a setting that is not supported is refused by name.

Files are read as release 6.2 reads them: https://sbert.net
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyserini_repbert.data.json_values import read_json, read_object
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.models.checkpoints.folder import WEIGHTS, Checkpoint
from pyserini_repbert.models.sentence.settings import (
    MODULES,
    DenseStep,
    EncoderSettings,
    RerankerSettings,
    TextSettings,
)

ACTIVATIONS = ('Identity', 'Sigmoid', 'Tanh', 'ReLU', 'GELU')
_TRANSFORMER = 'sentence_bert_config.json'
_MODEL = 'config_sentence_transformers.json'
_UNSUPPORTED = ('processing_kwargs', 'query_length', 'document_length', 'query_expansion', 'unpad_inputs')
# Tokenizer classes of transformers that give no token types unless model_input_names has them
_WITHOUT_SEGMENTS = ('PreTrainedTokenizerFast', 'TokenizersBackend', 'AlbertTokenizer', 'AlbertTokenizerFast')
_POOLING_FLAGS = {  # in older files; pooled vectors are joined in this order
    'pooling_mode_cls_token': 'cls',
    'pooling_mode_max_tokens': 'max',
    'pooling_mode_mean_tokens': 'mean',
    'pooling_mode_mean_sqrt_len_tokens': 'mean_sqrt_len_tokens',
    'pooling_mode_weightedmean_tokens': 'weightedmean',
    'pooling_mode_lasttoken': 'lasttoken',
}
POOLINGS = tuple(_POOLING_FLAGS.values())


def encoder_settings(checkpoint: Checkpoint) -> EncoderSettings:
    """The settings of a bi-encoder's folder.

    Raises
    ------
    DamagedFileError
        for a file that is not as sentence-transformers writes it
    InputError
        naming a module, pooling, similarity or setting that is not supported
    """
    folder = checkpoint.folder
    modules = _modules(folder)
    if not modules or modules[0] != ('Transformer', ''):
        raise InputError(f'{folder / MODULES}: expected a Transformer in the folder itself first')
    poolings: tuple[str, ...] = ()
    dense: list[DenseStep] = []
    normalise = False
    for kind, path in modules[1:]:
        values = _read(folder / path / 'config.json')
        if kind == 'Pooling' and not poolings:
            poolings = _poolings(folder / path / 'config.json', values)
        elif kind == 'Dense' and poolings and not normalise:
            dense.append(_dense(folder / path, values))
        elif kind == 'Normalize' and poolings:
            normalise = True
        else:
            raise InputError(
                f"{folder / MODULES}: module '{kind}' is not supported there: expected Transformer, Pooling, then "
                'Dense and Normalize as needed'
            )
    if not poolings:
        raise InputError(f'{folder / MODULES} has no Pooling: a bi-encoder of sentence-transformers is expected')
    model = _read(folder / _MODEL)
    similarity = model.get('similarity_fn_name') or 'dot'
    if similarity not in ('dot', 'dot_product', 'cosine', 'cos_sim'):
        raise InputError(f"{folder / _MODEL}: similarity '{similarity}' is not supported: cosine or dot is expected")
    prompts = _prompts(folder, model)
    if any(prompts.values()) and not _read(folder / modules[1][1] / 'config.json').get('include_prompt', True):
        raise InputError(f'{folder}: Pooling without the prompt (include_prompt) is not supported')
    return EncoderSettings(
        _texts(checkpoint),
        poolings,
        tuple(dense),
        normalise or similarity.startswith('cos'),
        prompts.get('query', ''),
        prompts.get('document', ''),
    )


def reranker_settings(checkpoint: Checkpoint) -> RerankerSettings:
    """The settings of a cross-encoder's folder. Errors are those of `encoder_settings`."""
    folder = checkpoint.folder
    modules = _modules(folder)
    if modules not in ([], [('Transformer', '')]):
        names = ', '.join(kind for kind, _ in modules)
        raise InputError(f'{folder / MODULES} has the modules {names}: a cross-encoder with Transformer is expected')
    model = _read(folder / _MODEL)
    marked = checkpoint.config.get('sentence_transformers') or {}
    name = (
        model.get('activation_fn')
        or marked.get('activation_fn')
        or checkpoint.config.get('sbert_ce_default_activation_function')
        or 'torch.nn.Sigmoid'  # the default of sentence-transformers for one label
    )
    prompts = _prompts(folder, model)
    prompt = prompts.get(model.get('default_prompt_name') or '', '')
    return RerankerSettings(_texts(checkpoint), _activation(folder, name), prompt)


def _modules(folder: Path) -> list[tuple[str, str]]:
    """(class, folder) of each module; [] if there is no modules.json."""
    path = folder / MODULES
    if not path.is_file():
        return []
    listed = read_json(path)
    try:
        found = [(str(own['type']), str(own['path'])) for own in listed]
    except (TypeError, KeyError) as error:
        raise DamagedFileError(f'{path} is no list of modules ({error!r}): fetch the model again') from error
    for kind, place in found:
        if not kind.startswith('sentence_transformers.'):
            raise InputError(f"{path}: module '{kind}' is not one of sentence-transformers' own: it is not run")
        if Path(place).is_absolute() or '..' in Path(place).parts:
            raise DamagedFileError(f"{path}: '{place}' is not a folder of the model: fetch the model again")
    return [(kind.rpartition('.')[2], place) for kind, place in found]


def _texts(checkpoint: Checkpoint) -> TextSettings:
    folder = checkpoint.folder
    own = _read(folder / _TRANSFORMER)
    used = [name for name in _UNSUPPORTED if own.get(name)]
    if used:
        raise InputError(f'{folder / _TRANSFORMER} sets {", ".join(used)}, which is not supported')
    positions = checkpoint.config.get('max_position_embeddings') or math.inf
    tokenizer = _read(folder / 'tokenizer_config.json')
    limit = own.get('max_seq_length') or tokenizer.get('model_max_length') or math.inf
    if type(limit) not in (int, float) or limit < 4:
        raise DamagedFileError(f'{folder}: a maximum length of {limit!r} was given, expected a whole number from 4')
    most = min(limit, positions)
    if not most < 10**6:
        raise InputError(f'{folder}: neither {_TRANSFORMER} nor tokenizer_config.json says how long a text may be')
    inputs = tokenizer.get('model_input_names')
    segments = 'token_type_ids' in inputs if inputs else tokenizer.get('tokenizer_class') not in _WITHOUT_SEGMENTS
    return TextSettings(int(most), bool(own.get('do_lower_case', False)), segments)


def _poolings(path: Path, values: Mapping[str, Any]) -> tuple[str, ...]:
    flagged = [name for flag, name in _POOLING_FLAGS.items() if values.get(flag)]
    chosen = values.get('pooling_mode') or flagged or 'mean'
    names = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    for name in names:
        if name not in POOLINGS:
            raise InputError(f"{path}: pooling '{name}' is not supported: one of {', '.join(POOLINGS)}")
    return names


def _dense(folder: Path, values: Mapping[str, Any]) -> DenseStep:
    names = (values.get('module_input_name'), values.get('module_output_name'))
    if values.get('use_residual') or any(name not in (None, 'sentence_embedding') for name in names):
        raise InputError(f'{folder}: a Dense module over other things than the pooled vector is not supported')
    if not (folder / WEIGHTS).is_file():
        raise InputError(f'{folder} has no {WEIGHTS}: save the model with a newer sentence-transformers')
    sizes = values.get('in_features'), values.get('out_features')
    if not all(type(size) is int and size > 0 for size in sizes):
        raise DamagedFileError(f'{folder}/config.json has no sizes of a Dense module: fetch the model again')
    activation = _activation(folder, values.get('activation_function') or 'torch.nn.Tanh')
    return DenseStep(folder / WEIGHTS, sizes[0], sizes[1], bool(values.get('bias', True)), activation)  # type: ignore[arg-type]


def _activation(folder: Path, path: str) -> str:
    """'Sigmoid' from 'torch.nn.modules.activation.Sigmoid'. Raises InputError for one that is not in `ACTIVATIONS`."""
    module, _, name = str(path).rpartition('.')
    if not module.startswith('torch.nn') or name not in ACTIVATIONS:
        raise InputError(f"{folder}: activation '{path}' is not supported: one of {', '.join(ACTIVATIONS)} of torch.nn")
    return name


def _prompts(folder: Path, model: Mapping[str, Any]) -> dict[str, str]:
    if model.get('truncate_dim'):
        raise InputError(f'{folder / _MODEL} sets truncate_dim, which is not supported')
    prompts = model.get('prompts') or {}
    if not isinstance(prompts, dict) or not all(isinstance(text, str) for text in prompts.values()):
        raise DamagedFileError(f'{folder / _MODEL}: prompts are texts by name: fetch the model again')
    return prompts


def _read(path: Path) -> dict[str, Any]:
    """The JSON object in a file; {} if there is no file."""
    return read_object(path) if path.is_file() else {}
