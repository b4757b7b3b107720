"""A checkpoint as the files of a hub repository, which transformers opens by itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from pyserini_repbert.checksums import write_checksums
from pyserini_repbert.download import is_offline
from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.files import StrPath, atomic_folder
from pyserini_repbert.models.checkpoints.folder import HOLDS_HEADS, Checkpoint
from pyserini_repbert.models.checkpoints.unit_layer import UNIT_LAYER
from pyserini_repbert.publish.card import Card
from pyserini_repbert.publish.sentence import write_sentence_transformers

TOKENIZER = ('vocab.txt', 'tokenizer.json', 'tokenizer_config.json', 'special_tokens_map.json')
_CLASSES = {
    'repbert': 'BertModel',
    'cedr': 'BertModel',
    'epic': 'BertForMaskedLM',
    'monobert': 'BertForSequenceClassification',
    'duobert': 'BertForSequenceClassification',
}
_LABELS = {1: ['relevant'], 2: ['not relevant', 'relevant']}


def prepare(checkpoint: Checkpoint, output: StrPath, card: Card) -> list[str]:
    """Write a checkpoint as a repository, an adapter merged into its base. Returns the names of the files, sorted.

    Weights are float32. RepBERT's repository is also a model of sentence-transformers.

    Raises
    ------
    InputError
        where `output` exists, the checkpoint is of no system of this package, or no licence is known
    """
    target = Path(output)
    if target.exists():
        raise InputError(f'output {target} exists: remove it, or give another folder')
    system = checkpoint.config.get('ranking', {}).get('system')
    if system not in _CLASSES:
        raise InputError(f"'{checkpoint.name}' is for no system of this package: its config.json has no ranking.system")
    tensors = {name: value.float().contiguous() for name, value in checkpoint.tensors().items()}
    with atomic_folder(target) as folder:
        labels = len(tensors['classifier.weight']) if 'classifier.weight' in tensors else 0
        Checkpoint.write(folder, _config(checkpoint, system, labels), tensors, checkpoint.name)
        for name in TOKENIZER:
            if (source := checkpoint.tokenizer_folder / name).is_file():
                shutil.copyfile(source, folder / name)
        _complete_tokenizer(checkpoint, folder)
        if system == 'repbert':
            write_sentence_transformers(folder)
        (folder / 'README.md').write_text(card.text(checkpoint, system), encoding='utf-8')
        write_checksums(folder)
        return sorted(str(path.relative_to(folder)) for path in folder.rglob('*') if path.is_file())


def push(folder: StrPath, repository: str, private: bool = False) -> str:
    """Upload a prepared folder with the user's own token. Returns the repository's address.

    Raises MissingResourceError offline, without a token, or where the hub refuses.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    if is_offline():
        raise MissingResourceError(f"'{repository}' cannot be pushed: this process is offline", parameters=('offline',))
    try:
        made = HfApi().create_repo(repository, private=private, exist_ok=True)
        HfApi().upload_folder(repo_id=repository, folder_path=str(folder))
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        raise MissingResourceError(
            f"'{repository}' was not pushed ({str(error).splitlines()[0]}): log in with 'hf auth login'; {folder} "
            'is prepared'
        ) from error
    return str(made)


def _config(checkpoint: Checkpoint, system: str, labels: int) -> dict[str, Any]:
    left_out = (HOLDS_HEADS, UNIT_LAYER, '_name_or_path', 'transformers_version')
    config = {key: value for key, value in checkpoint.config.items() if key not in left_out}
    config |= {'model_type': 'bert', 'architectures': [_CLASSES[system]]}
    if labels:
        names = _LABELS.get(labels, [str(number) for number in range(labels)])
        config['id2label'] = {str(number): name for number, name in enumerate(names)}
        config['label2id'] = {name: number for number, name in enumerate(names)}
    return config


def _complete_tokenizer(checkpoint: Checkpoint, folder: Path) -> None:
    """Add tokenizer.json and the tokenizer's class, which other packages would have to guess."""
    if not (folder / 'tokenizer.json').is_file():
        checkpoint.tokenizer().backend.save(str(folder / 'tokenizer.json'))
    path = folder / 'tokenizer_config.json'
    settings = json.loads(path.read_text(encoding='utf-8')) if path.is_file() else {}
    settings.setdefault('tokenizer_class', 'BertTokenizer')
    settings['model_max_length'] = checkpoint.config['max_position_embeddings']
    path.write_text(json.dumps(settings, indent=2) + '\n', encoding='utf-8')
