"""Plan, encode, finish: the same bundle as in one go, whoever encodes which shard, and refusals by name."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from folders import tree

from pyserini_repbert.commands import command, index
from pyserini_repbert.index import DenseBundle
from pyserini_repbert.record import read_record


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
    own, other = (read_record(tmp_path / name).settings for name in ('planned', 'whole'))
    assert {**own, 'max_length': None, 'corpus_format': 'auto'} == other


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
    assert status == 2 and 'corpus.tsv:3: expected' in error and error.endswith('(--plan, --on-error skip)\n')
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
