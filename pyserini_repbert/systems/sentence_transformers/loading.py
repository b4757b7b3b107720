"""Models of sentence-transformers, opened by that package: any architecture, no remote code."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from pyserini_repbert.checksums import digest
from pyserini_repbert.errors import InputError, MissingDependencyError, needs
from pyserini_repbert.files import StrPath
from pyserini_repbert.models.checkpoints.checkpoint import verify
from pyserini_repbert.models.precision import Precision, usable_device

MODULES = 'modules.json'
BATCH = 32  # texts in a batch, sentence-transformers' own default
SAFE_RELEASE = 6  # earlier ones run the code that lies in a local folder
_PURPOSE = 'a model of sentence-transformers'
_NO_PART = ('README.md', 'sha256sums')


def open_model(kind: str, folder: StrPath, device: str, precision: Precision) -> Any:
    """A model of the class `kind` of sentence-transformers, on `device`, in the dtype of
    `precision`.

    Raises MissingDependencyError without sentence-transformers from release 6 on, InputError for a
    folder that it cannot open.
    """
    with needs('sentence-transformers', _PURPOSE, 'sentence-transformers'):
        import sentence_transformers
    if int(sentence_transformers.__version__.split('.')[0]) < SAFE_RELEASE:
        why = f'release {sentence_transformers.__version__} runs code from folders'
        install = f"'sentence-transformers>={SAFE_RELEASE}'"
        raise MissingDependencyError.of('sentence-transformers', _PURPOSE, install, why)
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # of loading weights
    verify(Path(folder))
    place = usable_device(device)
    try:
        model = getattr(sentence_transformers, kind)(
            str(folder),
            device=str(place),
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={'use_safetensors': True},
        )
    except (
        Exception
    ) as error:  # transformers, tokenizers and safetensors raise errors of many classes
        why = ' '.join(str(error).split())[:200] or type(error).__name__
        raise InputError(
            f"sentence-transformers cannot open '{folder}' without remote code: {why}"
        ) from error
    return model.to(precision.dtype(place)).eval()


def folder_digest(folder: StrPath) -> str:
    """A sha256 over the names and contents of a model's files, those of its modules included.

    Its card, its checksums and hidden files are left out.
    """
    root = Path(folder)
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob('*') if path.is_file())
    parts = [
        name
        for name in names
        if not name.startswith('.') and '/.' not in name and name not in _NO_PART
    ]
    return hashlib.sha256(
        '\n'.join(f'{digest(root / name)}  {name}' for name in parts).encode()
    ).hexdigest()
