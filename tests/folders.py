"""The tiny vocabulary of most tests, and what they ask of folders and do to them."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

# The sizes of the BERT of most tests, and its vocabulary.
TINY = {
    'model_type': 'bert',
    'vocab_size': 40,
    'hidden_size': 16,
    'num_hidden_layers': 2,
    'num_attention_heads': 2,
    'intermediate_size': 32,
    'max_position_embeddings': 64,
    'initializer_range': 0.3,
}
WORDS = (
    '[PAD] [UNK] [CLS] [SEP] [MASK] cat dog fish bird sat ate ran mat hat red blue the a on in '
    'big small old new run '
    'eat sea sky sun moon tree leaf root seed ##s ##ing ##ed . , ?'
).split()

# The questions of the fixture `mine`.
N_QUESTIONS = 24

# Seconds after which a process or a thread hangs: a busy machine takes minutes to import PyTorch.
HANGS = 900


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for what another thread or process does."""
    end = time.monotonic() + HANGS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def question_documents() -> list[tuple[str, str]]:
    """Two documents for each question of the fixture `mine`, the second one relevant."""
    documents = []
    for number in range(N_QUESTIONS):
        documents.append((f'plain{number}', f'w{number} cat'))
        documents.append((f'wanted{number}', f'w{number} mat'))
    return documents


def write_files(folder: Path, contents: Mapping[str, str | bytes | bytearray]) -> Path:
    """Write files by their paths in a folder."""
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


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


def passage_vectors(generation, spans):
    """The vectors of passages of a collection, as its shards have them: (n, d)."""
    return np.stack([generation.shards[span.shard].shard.vectors[span.row] for span in spans])


def all_documents(generation):
    """All documents of a generation, in the order of their numbers."""
    from pyserini_repbert.collection.store import ALIVE

    numbers = generation.select(f'SELECT docno FROM fields WHERE {ALIVE} ORDER BY docno')
    docids = generation.docids([docno for (docno,) in numbers])
    return [document for document in generation.documents(docids) if document is not None]
