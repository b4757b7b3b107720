"""Plan, encode, finish: the same bundle as in one go, whoever encodes which shard, and refusals by name."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
import socket
from pathlib import Path

import pytest

from pyserini_repbert import moving
from pyserini_repbert.commands import command, encode, index
from pyserini_repbert.encode.output import Part, planned_output
from pyserini_repbert.encode.plan import read_plan
from pyserini_repbert.index import DenseBundle

MAIN = {'encode': encode.main, 'epic': index.main}


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob('*')) if path.is_file()}


@pytest.fixture
def call(capsys):
    """call(*arguments, kind='encode') -> status, what it printed, its error."""

    def run(*arguments, kind='encode'):
        given = [str(argument) for argument in arguments]
        status = command.run(MAIN[kind], [*(['epic'] if kind == 'epic' else []), *given, '--quiet'])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


@pytest.fixture
def made(tiny_checkpoint, corpus_file, tmp_path):
    """Arguments that make an index of 11 passages in shards of 4."""
    given = ['--corpus', corpus_file(11), '--encoder', tiny_checkpoint(), '--shard-size', 4, '--store-text']
    return [*given, '--batch-tokens', 60]


@pytest.fixture
def planned(made, call, tmp_path):
    """The folder of a plan."""
    assert call(*made, '--output', tmp_path / 'planned', '--plan')[0] == 0
    return tmp_path / 'planned'


@pytest.fixture
def whole(made, call, tmp_path):
    """The bytes of the index made in one go."""
    assert call(*made, '--output', tmp_path / 'whole')[0] == 0
    return tree(tmp_path / 'whole')


def test_a_planned_bundle_is_the_one_made_in_one_go(planned, whole, call):
    assert sorted(path.name for path in planned.iterdir()) == ['plan.json']
    for shards in ('2', '0-1', '0-2'):  # the last has nothing to do
        assert call('--output', planned, '--plan-shard', shards)[0] == 0
    status, printed, _ = call('--output', planned, '--finish')
    assert (status, printed) == (0, f'{planned}: 11 passages x 16 float32 in 3 shards\n')
    assert tree(planned) == whole
    for again in (['--finish'], ['--plan-shard', '0']):
        assert call('--output', planned, *again)[0] == 0
    assert tree(planned) == whole


def test_the_same_for_epic(tiny_epic, corpus_file, call, tmp_path):
    made = ['--corpus', corpus_file(7), '--encoder', tiny_epic(), '--shard-size', 3, '--prune', 5, '--weights', 'uint8']
    assert call(*made, '--output', tmp_path / 'whole', kind='epic')[0] == 0
    folder = tmp_path / 'planned'
    for step in ([*made, '--plan'], ['--plan-shard', '1-2'], ['--plan-shard', '0'], ['--finish']):
        status, printed, error = call('--output', folder, *step, kind='epic')
        assert status == 0, error
    assert printed.startswith(f'{folder}: 7 passages x 5 terms')
    assert tree(folder) == tree(tmp_path / 'whole')


def test_a_plan_is_made_once(planned, made, corpus_file, call, tmp_path):
    before = tree(planned)
    assert call(*made, '--output', planned, '--plan')[0] == 0
    assert tree(planned) == before
    assert call('--output', planned, '--plan-shard', '1')[0] == 0
    began = tree(planned)
    for more, what in (
        (['--shard-size', 5], "shard_size '4', not '5'"),
        (['--bf16'], "precision 'float32', not 'bfloat16'"),
        (['--corpus', corpus_file(12, 'other.jsonl')], 'with source'),
    ):
        status, _, error = call(*made, *more, '--output', planned, '--plan')
        assert status == 2 and f'{planned} holds another plan, ' in error and what in error
        assert error.endswith('(--finish, --overwrite)\n') and tree(planned) == began
    status, _, error = call(*made, '--output', planned)
    assert status == 2 and 'holds a plan' in error and tree(planned) == began
    assert call(*made, '--output', planned, '--overwrite')[0] == 0
    assert len(DenseBundle(planned)) == 11 and not (planned / 'plan.json').exists()
    status, _, error = call(*made, '--output', planned, '--plan')
    assert (status, 'is not empty: overwrite it' in error) == (2, True)
    assert call(*made, '--output', planned, '--plan', '--overwrite')[0] == 0
    assert sorted(path.name for path in planned.iterdir()) == ['plan.json']


def test_lines_that_are_left_out_when_planning(tiny_checkpoint, call, tmp_path, caplog):
    corpus = tmp_path / 'corpus.tsv'
    corpus.write_text('1\tthe cat\n2\t\n3\ta dog\n1\tagain\n4\tfish\n5\tbird\n6 no tab\n')
    made = ['--corpus', corpus, '--encoder', tiny_checkpoint(), '--shard-size', 2, '--on-error', 'skip']
    assert call(*made, '--output', tmp_path / 'whole')[0] == 0
    folder = tmp_path / 'planned'
    status, printed, _ = call(*made, '--output', folder, '--plan')
    assert (status, '4 passages in 2 shards, 3 lines skipped' in printed) == (0, True)
    for step in (['--plan-shard', '0-1'], ['--finish']):
        assert call('--output', folder, *step)[0] == 0
    assert tree(folder) == tree(tmp_path / 'whole')


def test_unusable_lines_and_docids_used_twice(tiny_checkpoint, call, tmp_path):
    corpus = tmp_path / 'corpus.tsv'
    corpus.write_text('1\tthe cat\n2\tdog\n3 no tab\n1\tagain\n')
    folder = tmp_path / 'planned'
    made = ['--corpus', corpus, '--encoder', tiny_checkpoint(), '--shard-size', 2, '--output', folder, '--plan']
    assert call(*made)[0] == 0
    assert call('--output', folder, '--plan-shard', '0')[0] == 0
    status, _, error = call('--output', folder, '--plan-shard', '1')
    assert status == 2 and 'corpus.tsv:3: expected' in error and error.endswith('(--plan, --on-error)\n')
    assert sorted(path.name for path in folder.iterdir()) == ['plan.json', 'shard-00000']
    corpus.write_text('1\tthe cat\n2\tdog\n3\ttab\n1\tagain\n')
    assert call(*made, '--overwrite')[0] == 0
    assert call('--output', folder, '--plan-shard', '0-1')[0] == 0
    status, _, error = call('--output', folder, '--finish')
    assert status == 2 and "docid '1' is used in shard 0 and again in shard 1" in error
    assert not (folder / 'manifest.json').exists()


def test_an_edited_plan_is_refused(planned, call):
    path = planned / 'plan.json'
    path.write_text(path.read_text().replace('"float32"', '"float16"', 1))
    before = tree(planned)
    for step in (['--plan-shard', '0'], ['--finish']):
        status, _, error = call('--output', planned, *step)
        assert status == 2 and 'plan.json is not as it was written' in error and 'Traceback' not in error
    assert tree(planned) == before


def test_workers_that_do_not_fit_are_refused_by_name(planned, tiny_checkpoint, tmp_path, call):
    before = tree(planned)
    for more, what in (
        (['--encoder', tiny_checkpoint('other', seed=1)], 'has weights_sha256'),
        (['--encoder', tiny_checkpoint('wide', hidden_size=32)], 'has weights_sha256'),
        (['--bf16'], '--bf16 does not go with --plan-shard, which takes its settings from the plan'),
        (['--vector-dtype=float16'], '--vector-dtype does not go with'),
        (['--resume'], '--resume does not go with'),
        (['--device', 'mps'], "device 'mps' is not available"),
    ):
        status, _, error = call('--output', planned, '--plan-shard', '0', *more)
        assert (status, what in error) == (2, True), error
    status, _, error = call('--output', planned, '--plan-shard', '0', kind='epic')
    assert status == 2 and "is of kind 'dense', this command makes 'epic'" in error
    for shards, what in (('3', 'has shards 0 to 2'), ('1-3', 'shard 3: '), ('2-1', 'expected K'), ('x', 'expected K')):
        status, _, error = call('--output', planned, '--plan-shard', shards)
        assert (status, what in error) == (2, True), error
    assert tree(planned) == before
    status, _, error = call('--output', tmp_path / 'nothing', '--finish')
    assert (status, 'holds no plan' in error) == (2, True)


def test_another_copy_of_corpus_and_model(planned, whole, made, call, tmp_path):
    corpus, model = Path(made[1]), Path(made[3])
    (tmp_path / 'elsewhere').mkdir()
    moved = [shutil.move(path, tmp_path / 'elsewhere' / path.name) for path in (corpus, model)]
    status, _, error = call('--output', planned, '--plan-shard', '0')
    assert status == 2 and f'{corpus} does not exist' in error
    assert call('--output', planned, '--plan-shard', '0-2', '--corpus', moved[0], '--encoder', moved[1])[0] == 0
    assert call('--output', planned, '--finish')[0] == 0
    assert tree(planned) == whole


def test_a_corpus_that_was_changed_is_refused(planned, made, call):
    corpus = Path(made[1])
    lines = corpus.read_text().splitlines(keepends=True)
    lines[5] = lines[5].replace('"d5"', '"e5"')
    corpus.write_text(''.join(lines))
    assert call('--output', planned, '--plan-shard', '0')[0] == 0
    status, _, error = call('--output', planned, '--plan-shard', '1')
    assert status == 2 and f'{corpus} was changed from line 5 on since shard 1 was planned' in error
    corpus.write_text(''.join(lines[:-1]))
    status, _, error = call('--output', planned, '--plan-shard', '0')
    assert status == 2 and 'is not the one that was planned' in error and "'corpus.jsonl' the plan has" in error


def test_a_packed_corpus_is_refused_before_the_model_is_opened(tmp_path, call):
    packed = tmp_path / 'corpus.tsv.gz'
    packed.write_bytes(gzip.compress(b'1\ttext\n'))
    given = ['--corpus', packed, '--encoder', 'nowhere', '--output', tmp_path / 'planned', '--plan']
    status, _, error = call(*given)
    assert status == 2 and 'unpack it (gunzip -k ' in error and error.endswith('(--shard)\n')
    assert not (tmp_path / 'planned').exists()


def test_finishing_names_what_is_missing_and_what_is_damaged(planned, whole, call):
    assert call('--output', planned, '--plan-shard', '1')[0] == 0
    status, _, error = call('--output', planned, '--finish')
    assert status == 2 and 'lacks 2 of 3 shards (0, 2): encode them first (--plan-shard)' in error
    assert call('--output', planned, '--plan-shard', '0-2')[0] == 0
    path = planned / 'shard-00001' / 'vectors.npy'
    path.write_bytes(path.read_bytes()[:-1] + b'?')
    status, _, error = call('--output', planned, '--finish')
    assert status == 2 and 'vectors.npy is damaged' in error and 'encode shard 1 again' in error
    assert call('--output', planned, '--plan-shard', '1')[0] == 0
    assert call('--output', planned, '--finish')[0] == 0
    assert tree(planned) == whole


def test_two_workers_at_one_shard(planned, made, call):
    with planned_output(planned, Part(1, 3)):
        status, _, error = call('--output', planned, '--plan-shard', '0-2')
        named = f'process {os.getpid()} on host {socket.gethostname()}'
        assert status == 2 and named in error
        assert (planned / 'shard-00000').is_dir() and not (planned / 'shard-00001').exists()
        assert call('--output', planned, '--plan-shard', '2')[0] == 0
        for step in (['--finish'], [*made, '--plan', '--overwrite'], [*made, '--overwrite']):
            status, _, error = call('--output', planned, *step)
            assert (status, named in error) == (2, True), error
    assert call('--output', planned, '--plan-shard', '1')[0] == 0
    assert len(read_plan(planned).shards) == 3


def test_a_worker_that_comes_second_where_there_are_no_locks(planned, whole, call, monkeypatch, tmp_path):
    """Both wrote the shard; the second finds it there when it gives its own a name."""
    copy = tmp_path / 'copy'
    shutil.copytree(planned, copy)
    assert call('--output', copy, '--plan-shard', '0')[0] == 0
    rename = Path.rename

    def late(path, target):
        if path.name.startswith('.shard-00000') and not Path(target).exists():
            shutil.copytree(copy / 'shard-00000', target)
        return rename(path, target)

    monkeypatch.setattr(Path, 'rename', late)
    for step in (['--plan-shard', '0-2'], ['--finish']):
        status, _, error = call('--output', planned, *step)
        assert status == 0, error
    assert tree(planned) == whole


def test_a_file_system_that_cannot_rename(planned, whole, made, call, monkeypatch, tmp_path):
    written = []

    def refused(path, target):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(path))

    monkeypatch.setattr(Path, 'rename', refused)
    monkeypatch.setattr(Path, 'replace', refused)
    copy = moving._copy
    monkeypatch.setattr(moving, '_copy', lambda one, to: (written.append(to.name), copy(one, to)))
    for step in (['--plan-shard', '0-2'], ['--finish']):
        assert call('--output', planned, *step)[0] == 0
    files = ['docids.txt', 'texts.jsonl', 'texts.offsets.npy', 'vectors.npy', 'shard.json']
    assert written == [*['shard.json', *files] * 3, 'encoding.json', 'manifest.json']
    assert tree(planned) == whole


def test_a_half_copied_shard_is_encoded_again(planned, whole, call):
    assert call('--output', planned, '--plan-shard', '0-2')[0] == 0
    for name, half in (('shard-00000', None), ('shard-00002', 30)):
        record = planned / name / 'shard.json'
        text = record.read_bytes()
        record.unlink()
        if half:
            record.write_bytes(text[:half])
    assert call('--output', planned, '--plan-shard', '0-2')[0] == 0
    assert call('--output', planned, '--finish')[0] == 0
    assert tree(planned) == whole


def test_an_unfinished_index_says_what_it_lacks(planned, capsys):
    assert command.run(index.main, ['check', '--index', str(planned)]) == 2
    assert capsys.readouterr().err == (
        f'error: index {planned} is planned, not finished: encode the shards that are missing, and finish it '
        '(--plan-shard, --finish)\n'
    )


def test_the_precision_is_pinned_by_who_plans(made, call, native_bfloat16, tmp_path):
    native_bfloat16(True)
    assert call(*made, '--precision', 'auto', '--output', tmp_path / 'planned', '--plan')[0] == 0
    native_bfloat16(False)
    assert call('--output', tmp_path / 'planned', '--plan-shard', '0-2')[0] == 0
    assert call('--output', tmp_path / 'planned', '--finish')[0] == 0
    assert DenseBundle(tmp_path / 'planned').settings.precision == 'bfloat16'


def test_the_plan_pins_what_decides_the_bytes(planned):
    values = json.loads((planned / 'plan.json').read_text())
    assert list(values) == ['settings', 'corpus', 'count', 'batch_tokens', 'shards', 'kind', 'format_version', 'sha256']
    assert (values['count'], values['batch_tokens'], values['settings']['precision']) == (11, 60, 'float32')
    assert [shard['count'] for shard in values['shards']] == [4, 4, 3]
    spans = [span for shard in values['shards'] for span in shard['spans']]
    assert [span['start'] for span in spans[1:]] == [span['end'] for span in spans[:-1]]
    assert spans[-1]['end'] == values['corpus']['files'][0]['size']
