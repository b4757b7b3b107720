"""What the scores of a command depend on is read from its record."""

import shlex

import pytest

from pyserini_repbert.commands import command
from pyserini_repbert.commands.encode import main as encode
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.regression.environment import condition_fingerprint

PACKAGE = 'python -m pyserini_repbert.'


def words(text):
    return shlex.split(PACKAGE + text)


@pytest.fixture
def encoded(tiny_checkpoint, corpus_file, tmp_path):
    """encode(flags) -> the words of the command that was run; `checkpoint` is its model."""

    def run(flags=''):
        given = (
            f'--corpus {corpus_file(3)} --encoder {checkpoint} --output {tmp_path / "out"} '
            f'--overwrite {flags}'
        )
        assert command.run(encode, [*shlex.split(given), '--quiet']) == 0
        return words(f'encode {given}')

    checkpoint = tiny_checkpoint()
    run.checkpoint = checkpoint
    return run


def fingerprint(encoded, flags=''):
    values = condition_fingerprint([encoded(flags)])
    assert values
    return {name.replace(f'{encoded.checkpoint} ', ''): value for name, value in values.items()}


def test_the_fingerprint_changes_with_the_files(encoded):
    before = fingerprint(encoded)
    assert list(before)[:4] == ['weights', 'tokenizer', 'config', 'encode precision']
    assert before['weights'] == open_checkpoint(encoded.checkpoint).weights_sha256[:16]
    assert before['encode precision'] == 'float32'
    assert before['encode shard_size'] == '65536'
    vocabulary = encoded.checkpoint / 'vocab.txt'
    vocabulary.write_text(vocabulary.read_text().replace('cat', 'cow'), encoding='utf-8')
    after = fingerprint(encoded)
    assert {name for name, value in after.items() if value != before[name]} == {'tokenizer'}


@pytest.mark.parametrize(
    ('flags', 'expected'),
    [('', 'float32'), ('--bf16', 'bfloat16'), ('--precision auto', 'bfloat16')],
)
def test_the_fingerprint_says_what_was_used(flags, expected, encoded, native_bfloat16):
    native_bfloat16(True)
    assert fingerprint(encoded, flags)['encode precision'] == expected


def test_the_record_of_another_command_is_not_taken(encoded):
    ran = encoded()
    assert condition_fingerprint([ran])
    assert not condition_fingerprint([[*ran, '--bf16']])
    assert not condition_fingerprint([shlex.split('python -m pyserini.search.faiss --encoder a')])


def test_the_record_of_another_output_is_not_taken(encoded, tmp_path):
    ran = encoded()
    manifest = tmp_path / 'out' / 'manifest.json'
    manifest.write_text(manifest.read_text() + ' ')
    assert not condition_fingerprint([ran])
