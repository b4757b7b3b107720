"""The files of a trained checkpoint, and of the state of a training: only these are removed."""

from __future__ import annotations

import re

from pyserini_repbert.checksums import CHECKSUMS
from pyserini_repbert.folder_forms import TEMPORARY, FolderForm
from pyserini_repbert.models.checkpoints.folder import ADAPTER, ADAPTER_CONFIG, TOKENIZER, WEIGHTS

RECIPE = 'recipe.yaml'
LOG = 'log.csv'
EVENTS = 'tensorboard'  # a folder
REPLACES = 'replaces-output'  # in the state: an earlier output may be replaced when all is done
INPUTS = 'inputs.json'  # in the state: 'ROLE NAME' -> digest
_CARD = 'README.md'
_MODEL_FILES = ('config.json', WEIGHTS, ADAPTER, ADAPTER_CONFIG, *TOKENIZER, _CARD, CHECKSUMS)
# TensorBoard has a folder for each set of settings.
_EVENT_FILES = (
    f'{EVENTS}/([^/]+/)?',
    rf'{EVENTS}/([^/]+/)?events\.out\.tfevents\.[^/]+',
)
# Beside the model in a state of the Trainer's.
_TRAINER_FILES = (
    r'(optimizer|scheduler|scaler)\.(pt|bin)',
    r'rng_state(_[0-9]+)?\.pth',
    r'trainer_state\.json',
    r'training_args\.bin',
    rf'\.{CHECKSUMS}\.{TEMPORARY}',
)
_CHECKPOINT = 'checkpoint-[0-9]+'
_WRITTEN = f'({"|".join(map(re.escape, (RECIPE, LOG, INPUTS)))})'

TRAINED_FORM = FolderForm(
    'trained checkpoint', (*map(re.escape, (*_MODEL_FILES, RECIPE, LOG)), *_EVENT_FILES)
)
CHECKPOINT_FORM = FolderForm(
    'saved state of a training', (*map(re.escape, _MODEL_FILES), *_TRAINER_FILES)
)
STATE_FORM = FolderForm(
    'state of a training',
    (
        _WRITTEN,
        rf'\.{_WRITTEN}\.{TEMPORARY}',
        REPLACES,
        *_EVENT_FILES,
        *CHECKPOINT_FORM.below(rf'({_CHECKPOINT}|\.{_CHECKPOINT}\.{TEMPORARY}|tmp-{_CHECKPOINT})'),
    ),
)
