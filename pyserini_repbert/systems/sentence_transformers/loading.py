"""Models of sentence-transformers, opened by that package: any architecture, no remote code."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from pyserini_repbert.checksums import remembered_digest
from pyserini_repbert.errors import InputError, MissingDependencyError, needs
from pyserini_repbert.files import StrPath
from pyserini_repbert.models.checkpoints.checkpoint import verify
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.models.tokenizer import panics_as_errors

# What runs a model, as records have it.
ENGINE = 'sentence-transformers'
# Texts in a batch: sentence-transformers' own default.
BATCH = 32
# Earlier releases run the code in a local folder.
SAFE_RELEASE = 6
_PURPOSE = 'a model of sentence-transformers'
_NO_PART = ('README.md', 'sha256sums')


def open_model(kind: str, folder: StrPath, device: str, precision: Precision) -> Any:
    """A model of sentence-transformers, for inference.

    Parameters
    ----------
    kind : the name of its class
    folder : the model's files
    device : where it runs
    precision : of its weights

    Raises MissingDependencyError without sentence-transformers from release 6 on, DamagedFileError
    for sizes that the weights cannot have, InputError for a folder that it cannot open.
    """
    chosen = Precision(precision)
    with needs('sentence-transformers', _PURPOSE, 'sentence-transformers'):
        import sentence_transformers
    if int(sentence_transformers.__version__.split('.')[0]) < SAFE_RELEASE:
        why = f'release {sentence_transformers.__version__} runs code from folders'
        install = f"'sentence-transformers>={SAFE_RELEASE}'"
        raise MissingDependencyError.of('sentence-transformers', _PURPOSE, install, why)
    from transformers.utils.logging import disable_progress_bar

    from pyserini_repbert.systems.sentence_transformers.sizes import check_sizes

    # It would show the loading of weights.
    disable_progress_bar()
    verify(Path(folder))
    check_sizes(Path(folder))
    usable = usable_device(device)
    model_class = getattr(sentence_transformers, kind)
    try:
        with panics_as_errors():
            model = model_class(
                str(folder),
                device=str(usable),
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={'use_safetensors': True},
            )
    # transformers, tokenizers and safetensors raise errors of many classes.
    except Exception as error:
        why = ' '.join(str(error).split())[:200] or type(error).__name__
        raise InputError(
            f"sentence-transformers cannot open '{folder}' without remote code: {why}"
        ) from error
    return model.to(chosen.dtype(usable)).eval()


def folder_digest(folder: StrPath) -> str:
    """A sha256 over the names and contents of a model's files, its modules' files included.

    Its card, its checksums and hidden files are left out. A file is read again only after a change.
    """
    root = Path(folder)
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob('*') if path.is_file())
    lines = []
    for name in names:
        is_hidden = name.startswith('.') or '/.' in name
        if not is_hidden and name not in _NO_PART:
            lines.append(f'{remembered_digest(root / name)}  {name}')
    return hashlib.sha256('\n'.join(lines).encode()).hexdigest()
