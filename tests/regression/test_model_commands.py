"""What commands ran is read from their records, and changed in their words."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from pyserini_repbert.commands import command
from pyserini_repbert.commands.encode import main as encode
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.record import Input, Model, Record
from pyserini_repbert.regression.blame import model_commands, probe
from pyserini_repbert.regression.blame.retokenized import READINGS, SameTokenizerError, retokenized
from pyserini_repbert.regression.environment import condition_fingerprint, recorded

PACKAGE = 'python -m pyserini_repbert.'
NONE = '0' * 64


def words(text: str) -> list[str]:
    return shlex.split(PACKAGE + text)


def record(text: str, models: str = '', inputs: tuple[Input, ...] = (), **settings: object) -> Record:
    """The record of a command that ran these models."""
    ran = tuple(Model(name, NONE, NONE, NONE, 'float32') for name in models.split())
    return Record(tuple(words(text)), NONE, ran, inputs, settings, {})


def test_another_precision() -> None:
    encode = 'encode --encoder a --fp32 --batch-tokens 64'
    expected = words('encode --encoder a --batch-tokens 64 --precision bfloat16')
    assert model_commands.with_precision(words(encode), record(encode, 'a'), 'bfloat16') == expected


def test_the_same_command_set_otherwise() -> None:
    search = 'search --index i --batch-size=9 --threads 8'
    ran = record(search, 'a', batch_size=9, batch_tokens=None, threads=8)
    one = words(f'{search} --batch-size 1 --batch-tokens 1')
    assert model_commands.with_batches_of_one(words(search), ran) == one
    assert model_commands.with_threads(words(search), ran, 2) == words(f'{search} --threads 2')
    for text in ('search --sparse bm25 --index i', 'fusion --runs a b', 'index lucene --corpus c'):
        ran = record(text, batch_size=512, threads=1)
        for changed in (
            model_commands.with_precision(words(text), ran, 'float16'),
            model_commands.with_batches_of_one(words(text), ran),
            model_commands.with_threads(words(text), ran, 2),
            model_commands.with_checkpoints(words(text), ran, {'a': 'b'}),
        ):
            assert changed == words(text)


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('rerank --run r --reranker a/m@9 --reranker=d@3:sum', 'rerank --run r --reranker A/M@9 --reranker=D@3:sum'),
        ('search --index demo', 'search --index demo --encoder A/M --encoder D'),
        ('search --index i --encoder a/m --rerank d@5', 'search --index i --encoder A/M --rerank D@5'),
        ('index d --encoder d --output o/d', 'index d --encoder D --output o/d'),
    ],
)
def test_checkpoints_are_renamed_where_they_are_named(text: str, expected: str) -> None:
    renamed = model_commands.with_checkpoints(words(text), record(text, 'a/m d'), {'a/m': 'A/M', 'd': 'D'})
    assert renamed == words(expected)


def test_a_catalog_index_may_have_been_built(tmp_path: Path) -> None:
    by_name = (Input('index', 'demo'),)
    assert model_commands.builds_named_index(record('search --index demo', 'repbert-demo', by_name))
    assert not model_commands.builds_named_index(record('search --index demo --sparse bm25', '', by_name))
    assert not model_commands.builds_named_index(record('search --index i', 'a', (Input('index', str(tmp_path)),)))


@pytest.fixture
def encoded(tiny_checkpoint: Callable[..., Path], corpus_file: Callable[..., Path], tmp_path: Path):
    """encode(flags) -> the words of the command that was run; `checkpoint` is its model."""

    def run(flags: str = '') -> list[str]:
        given = f'--corpus {corpus_file(3)} --encoder {checkpoint} --output {tmp_path / "out"} --overwrite {flags}'
        assert command.run(encode, [*shlex.split(given), '--quiet']) == 0
        return words(f'encode {given}')

    checkpoint = tiny_checkpoint()
    run.checkpoint = checkpoint
    return run


def fingerprint(encoded, flags: str = '') -> dict[str, str]:
    found = recorded(encoded(flags))
    assert found is not None
    return {name.replace(f'{encoded.checkpoint} ', ''): value for name, value in condition_fingerprint([found]).items()}


def test_the_fingerprint_changes_with_the_files(encoded) -> None:
    before = fingerprint(encoded)
    assert list(before)[:4] == ['weights', 'tokenizer', 'config', 'encode precision']
    assert before['weights'] == open_checkpoint(encoded.checkpoint).weights_sha256[:16]
    assert before['encode precision'] == 'float32' and before['encode shard_size'] == '65536'
    vocabulary = encoded.checkpoint / 'vocab.txt'
    vocabulary.write_text(vocabulary.read_text().replace('cat', 'cow'), encoding='utf-8')
    after = fingerprint(encoded)
    assert {name for name, value in after.items() if value != before[name]} == {'tokenizer'}


def test_the_fingerprint_changes_with_a_default(encoded, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyserini_repbert.commands import encode as module

    before = fingerprint(encoded)
    made = module.make_parser

    def changed():
        parser = made()
        parser.set_defaults(shard_size=2)
        return parser

    monkeypatch.setattr(module, 'make_parser', changed)
    after = fingerprint(encoded)
    assert {name: value for name, value in after.items() if value != before[name]} == {'encode shard_size': '2'}


@pytest.mark.parametrize(
    ('flags', 'expected'), [('', 'float32'), ('--bf16', 'bfloat16'), ('--precision auto', 'bfloat16')]
)
def test_the_fingerprint_says_what_was_used(
    flags: str, expected: str, encoded, native_bfloat16: Callable[[bool], None]
) -> None:
    native_bfloat16(True)
    assert fingerprint(encoded, flags)['encode precision'] == expected


def test_the_record_of_another_command_or_output_is_not_taken(encoded, tmp_path: Path) -> None:
    ran = encoded()
    assert recorded(ran) is not None
    assert recorded([*ran, '--bf16']) is None
    manifest = tmp_path / 'out' / 'manifest.json'
    manifest.write_text(manifest.read_text() + ' ')
    assert recorded(ran) is None
    assert recorded(shlex.split('python -m pyserini.search.faiss --encoder a')) is None


def test_readings_of_a_tokenizer(tiny_checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    folder = tiny_checkpoint()
    checkpoint = open_checkpoint(folder)
    cat, unknown = (checkpoint.tokenizer().backend.token_to_id(piece) for piece in ('cat', '[UNK]'))
    for reading, texts in (('other case', ['Cat', 'cát']), ('other accents', ['cát', 'Cat'])):
        retokenized(checkpoint, reading, tmp_path / reading)
        made = open_checkpoint(tmp_path / reading)
        assert made.weights_sha256 == checkpoint.weights_sha256
        assert made.tokenizer().ids(texts) == [[unknown], [cat]]
    with pytest.raises(InputError, match='not both'):
        retokenized(checkpoint, 'vocab.txt', tmp_path / 'no')
    with pytest.raises(SameTokenizerError):
        retokenized(checkpoint, 'transformers', tmp_path / 'no')
    assert not (tmp_path / 'no').exists()
    checkpoint.tokenizer().backend.save(str(folder / 'tokenizer.json'))
    with pytest.raises(SameTokenizerError):
        retokenized(checkpoint, 'vocab.txt', tmp_path / 'no')
    (folder / 'tokenizer_config.json').write_text(json.dumps({'do_lower_case': False}), encoding='utf-8')
    retokenized(checkpoint, 'vocab.txt', tmp_path / 'vocab')
    assert open_checkpoint(tmp_path / 'vocab').tokenizer().ids(['Cat']) == [[unknown]]
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
