"""What commands do with models is read from their words, and changed there."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.regression.blame import model_commands, probe
from pyserini_repbert.regression.blame.model_commands import Model
from pyserini_repbert.regression.blame.retokenized import READINGS, SameTokenizerError, retokenized
from pyserini_repbert.regression.checkpoints import condition_fingerprint

PACKAGE = 'python -m pyserini_repbert.'


def words(command: str) -> list[str]:
    return shlex.split(PACKAGE + command)


@pytest.mark.parametrize(
    ('command', 'expected'),
    [
        ('encode --corpus c --encoder a --output o', [Model('a', 'encoders', 'float32')]),
        ('encode --corpus c --encoder=a --precision=auto', [Model('a', 'encoders', 'auto')]),
        ('encode --corpus c --encoder=a --precision bfloat16', [Model('a', 'encoders', 'bfloat16')]),
        ('encode --corpus c --encoder=a --fp16', [Model('a', 'encoders', 'float16')]),
        ('search --index i --sparse bm25', []),
        ('search --index i', []),  # the index names its encoder, and it is that of the command which built it
        ('search --index demo', [Model('repbert-demo', 'encoders', 'float32')]),
        ('search --index demo --sparse bm25', []),
        (
            'search --index i --encoder a --rerank m/x@5 --rerank d@3:binary',
            [
                Model('a', 'encoders', 'float32'),
                Model('m/x', 'rerankers', 'float32'),
                Model('d', 'rerankers', 'float32'),
            ],
        ),
        ('rerank --run r --reranker m@1000 --bf16', [Model('m', 'rerankers', 'bfloat16')]),
        ('index epic --encoder e', [Model('e', 'rerankers', 'float32')]),
        ('index lucene --encoder e', []),
        ('evaluate epic-pruning --model e', [Model('e', 'rerankers', 'float32')]),
        ('evaluate --qrels q r', []),
    ],
)
def test_models_of_a_command(command: str, expected: list[Model]) -> None:
    assert model_commands.models(words(command)) == expected


def test_another_programs_command_has_no_models() -> None:
    assert model_commands.models(shlex.split('python -m pyserini.search.faiss --encoder a')) == []


def test_the_same_command_set_otherwise() -> None:
    encode = 'encode --encoder a --fp32 --batch-tokens 64'
    assert model_commands.with_precision(words(encode), 'bfloat16') == words(
        'encode --encoder a --batch-tokens 64 --bf16'
    )
    for given in ('--precision auto', '--precision=float16'):
        assert model_commands.with_precision(words(f'rerank {given} --reranker a@1'), 'float32') == words(
            'rerank --reranker a@1 --fp32'
        )
    assert model_commands.with_batches_of_one(words(encode)) == words('encode --encoder a --fp32 --batch-tokens 1')
    search = 'search --index i --batch-size=9 --threads 8'
    assert model_commands.with_batches_of_one(words(search)) == words(
        'search --index i --threads 8 --batch-size 1 --batch-tokens 1'
    )
    assert model_commands.with_threads(words(search), 2) == words('search --index i --batch-size=9 --threads 2')
    for command in ('search --sparse bm25 --index i', 'fusion --runs a b', 'index lucene --corpus c'):
        for changed in (
            model_commands.with_precision(words(command), 'float16'),
            model_commands.with_batches_of_one(words(command)),
            model_commands.with_threads(words(command), 2),
            model_commands.with_checkpoints(words(command), str.upper),
        ):
            assert changed == words(command)


def test_checkpoints_are_renamed_where_they_are_named() -> None:
    def renamed(command: str) -> list[str]:
        return model_commands.with_checkpoints(words(command), str.upper)

    assert renamed('rerank --run r --reranker a/m@9 --reranker=d@3:sum') == words(
        'rerank --run r --reranker A/M@9 --reranker=D@3:sum'
    )
    assert renamed('search --index demo') == words('search --index demo --encoder REPBERT-DEMO')
    assert renamed('search --index demo --encoder a') == words('search --index demo --encoder A')


def test_the_fingerprint_changes_with_the_files(tiny_checkpoint: Callable[..., Path]) -> None:
    folder = tiny_checkpoint()
    commands = [words(f'encode --corpus c --encoder {folder} --output o'), words('index lucene --threads 8')]

    def fingerprint() -> dict[str, str]:
        return {name.replace(f'{folder} ', ''): value for name, value in condition_fingerprint(commands).items()}

    before = fingerprint()
    assert list(before) == ['weights', 'tokenizer', 'settings', 'encode precision', 'index threads']
    assert before['weights'] == open_checkpoint(folder).weights_sha256[:16]
    assert before['encode precision'] == 'float32' and before['index threads'] == '8'
    (folder / 'vocab.txt').write_text((folder / 'vocab.txt').read_text().replace('cat', 'cow'), encoding='utf-8')
    changed = {name for name, value in fingerprint().items() if value != before[name]}
    assert changed == {'tokenizer'}
    (folder / 'config.json').unlink()
    assert 'is not a checkpoint' in fingerprint()['weights']


@pytest.mark.parametrize(
    ('flags', 'expected'),
    [('', 'float32'), ('--bf16', 'bfloat16'), ('--precision auto', 'bfloat16'), ('--precision=auto', 'bfloat16')],
)
def test_the_fingerprint_says_what_was_used(
    flags: str, expected: str, tiny_checkpoint: Callable[..., Path], native_bfloat16: Callable[[bool], None]
) -> None:
    native_bfloat16(True)
    command = words(f'encode --corpus c --encoder {tiny_checkpoint()} --output o {flags}')
    assert condition_fingerprint([command])['encode precision'] == expected
    elsewhere = condition_fingerprint([[*command, '--device', 'cuda:99']])['encode precision']
    assert elsewhere == ('unknown' if 'auto' in flags else expected)


def test_readings_of_a_tokenizer(tiny_checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    folder = tiny_checkpoint()
    checkpoint = open_checkpoint(folder)
    cat, unknown = (checkpoint.word_pieces().tokenizer.token_to_id(piece) for piece in ('cat', '[UNK]'))
    for reading, texts in (('other case', ['Cat', 'cát']), ('other accents', ['cát', 'Cat'])):
        retokenized(checkpoint, reading, tmp_path / reading)
        made = open_checkpoint(tmp_path / reading)
        assert made.weights_sha256 == checkpoint.weights_sha256
        assert made.word_pieces().ids(texts) == [[unknown], [cat]]
    with pytest.raises(InputError, match='not both'):
        retokenized(checkpoint, 'vocab.txt', tmp_path / 'no')
    with pytest.raises(SameTokenizerError):
        retokenized(checkpoint, 'transformers', tmp_path / 'no')
    assert not (tmp_path / 'no').exists()
    checkpoint.word_pieces().tokenizer.save(str(folder / 'tokenizer.json'))
    with pytest.raises(SameTokenizerError):
        retokenized(checkpoint, 'vocab.txt', tmp_path / 'no')
    (folder / 'tokenizer_config.json').write_text(json.dumps({'do_lower_case': False}), encoding='utf-8')
    retokenized(checkpoint, 'vocab.txt', tmp_path / 'vocab')
    assert open_checkpoint(tmp_path / 'vocab').word_pieces().ids(['Cat']) == [[unknown]]
    assert set(READINGS) == {'other case', 'other accents', 'vocab.txt', 'transformers'}


def test_a_variants_cache_holds_all_but_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = tmp_path / 'usual'
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(usual))
    for name in ('downloads', 'indexes/demo.lucene', 'indexes/demo.repbert-demo'):
        (usual / name).mkdir(parents=True)
    (usual / 'indexes/demo.repbert-demo/manifest.json').write_text('{}', encoding='utf-8')
    for _ in range(2):  # also where it is there already
        made = probe._linked_cache(tmp_path / 'own')
    assert sorted(path.name for path in made.iterdir()) == ['downloads', 'indexes']
    assert [path.name for path in (made / 'indexes').iterdir()] == ['demo.lucene']
    assert (made / 'indexes').is_symlink() is False and (made / 'downloads').is_symlink()
