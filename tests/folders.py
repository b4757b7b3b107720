"""What tests ask of folders, and do to them."""

import json
from pathlib import Path


def tree(folder: Path) -> dict[str, bytes]:
    """The bytes of every file under a folder, by relative path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob('*'))
        if path.is_file()
    }


def change_model(checkpoint: Path, part: str) -> None:
    """Change a checkpoint's 'configuration' or 'tokenizer'; its weights, and the names of its
    wordpieces, stay.
    """
    if part == 'tokenizer':
        (checkpoint / 'tokenizer_config.json').write_text(
            '{"do_lower_case": false}', encoding='utf-8'
        )
        return
    path = checkpoint / 'config.json'
    path.write_text(
        json.dumps(json.loads(path.read_text('utf-8')) | {'hidden_act': 'relu'}), encoding='utf-8'
    )
