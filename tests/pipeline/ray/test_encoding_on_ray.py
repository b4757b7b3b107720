"""`--ray` of encode and `index epic`: the same bundle as on one machine, and refusals; without
Ray itself.
"""

import socket

import pytest
from folders import tree

from pyserini_repbert.commands import command, encode, index
from pyserini_repbert.errors import ClusterError, InputError
from pyserini_repbert.pipeline.ray_workers import MachineCapacity, capacity_of, ray_worker_pool


@pytest.fixture
def call(capsys):
    def run(main, *arguments):
        status = command.run(main, [*map(str, arguments), '--quiet'])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def test_the_bundle_is_the_one_made_in_one_go(
    tiny_checkpoint, corpus_file, call, local_pool, connect, tmp_path
):
    made = [
        '--corpus',
        corpus_file(11),
        '--encoder',
        tiny_checkpoint(),
        '--shard-size',
        2,
        '--store-text',
    ]
    made += ['--threads', 1]  # with more, a last bit can differ on some processors
    assert call(encode.main, *made, '--output', tmp_path / 'whole')[0] == 0
    workers = local_pool(2, (1, 3))
    asked = connect(workers)
    folder = tmp_path / 'many'
    done = call(encode.main, *made, '--output', folder, '--ray', 'auto')
    assert done == (0, f'{folder}: 11 passages x 16 float32 in 6 shards\n', '')
    assert asked == [('auto', 1, False)] and len(workers.asked) == 8
    assert tree(folder) == tree(tmp_path / 'whole')
    assert (tmp_path / 'many.record.json').is_file()


def test_the_same_for_epic(tiny_epic, corpus_file, call, local_pool, connect, tmp_path):
    made = [
        'epic',
        '--corpus',
        corpus_file(5),
        '--encoder',
        tiny_epic(),
        '--shard-size',
        2,
        '--prune',
        5,
    ]
    assert call(index.main, *made, '--output', tmp_path / 'whole')[0] == 0
    connect(local_pool(2, (0,)))
    status, printed, error = call(index.main, *made, '--output', tmp_path / 'many', '--ray', 'auto')
    assert (status, error) == (0, '') and '5 passages x 5 terms' in printed
    assert tree(tmp_path / 'many') == tree(tmp_path / 'whole')


def test_what_was_stopped_goes_on(
    tiny_checkpoint, corpus_file, call, local_pool, connect, tmp_path
):
    made = ['--corpus', corpus_file(6), '--encoder', tiny_checkpoint(), '--shard-size', 2]
    connect(local_pool(1))
    assert (
        call(encode.main, *made, '--output', tmp_path / 'whole', '--ray', 'auto', '--shard-num', 2)[
            0
        ]
        == 0
    )
    folder = tmp_path / 'many'
    connect(local_pool(1, range(1, 20)))  # one part is made
    status, _, error = call(encode.main, *made, '--output', folder, '--ray', 'auto')
    assert status == 2 and 'was tried 5 times' in error and len(error.splitlines()) == 1
    before = tree(folder)
    assert 'part-0-of-3/manifest.json' in before and 'manifest.json' not in before
    connect(local_pool(1))
    assert call(encode.main, *made, '--output', folder, '--ray', 'auto')[0] == 0
    assert tree(folder) == tree(tmp_path / 'whole')


def test_a_line_that_cannot_be_used_is_refused_before_parts_begin(
    tiny_checkpoint, call, local_pool, connect, tmp_path
):
    corpus = tmp_path / 'corpus.tsv'
    corpus.write_text('1\tthe cat\n2 no tab\n')
    connect(local_pool(1))
    made = ['--corpus', corpus, '--encoder', tiny_checkpoint(), '--output', tmp_path / 'many']
    status, _, error = call(encode.main, *made, '--ray', 'auto')
    assert status == 2 and 'corpus.tsv:2: expected' in error and not (tmp_path / 'many').exists()
    assert not (tmp_path / 'many' / 'manifest.json').exists()


@pytest.mark.parametrize(
    'flag', [('--shard', '0/2'), ('--shard-id', '0'), ('--resume',), ('--finish',)]
)
def test_flags_that_do_not_go_together(call, tmp_path, flag):
    made = ['--corpus', 'c', '--encoder', 'e', '--output', tmp_path / 'many', '--ray', 'auto']
    status, _, error = call(encode.main, *made, *flag)
    assert status == 2 and '--ray' in error and len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ('resources', 'threads', 'gpu', 'room'),
    [
        ({'CPU': 2.0}, None, False, (1, 2)),
        ({'CPU': 64.0}, None, False, (8, 8)),
        ({'CPU': 12.0}, None, False, (1, 8)),
        ({'CPU': 12.0}, 4, False, (3, 4)),
        ({'CPU': 2.0}, 4, False, (0, 4)),
        ({'CPU': 0.0}, None, False, (0, 0)),
        ({}, None, False, (0, 0)),
        ({'CPU': 16.0}, None, True, (0, 0)),
        ({'CPU': 16.0, 'GPU': 4.0}, None, True, (4, 4)),
        ({'CPU': 2.0, 'GPU': 4.0}, None, True, (2, 1)),
        ({'CPU': 128.0, 'GPU': 8.0}, 32, True, (8, 16)),
    ],
)
def test_the_room_of_a_machine(resources, threads, gpu, room):
    assert capacity_of(resources, threads, gpu) == MachineCapacity(*room)


@pytest.mark.parametrize(
    'address', ['here', 'host:', ':1', 'host:x', 'ray://host:10001', 'host:999999']
)
def test_what_is_no_address(address):
    with pytest.raises(InputError, match="expected 'auto' or HOST:PORT"), ray_worker_pool(address):
        pass


def test_an_address_that_does_not_answer():
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))  # and does not listen
        address = f'127.0.0.1:{free.getsockname()[1]}'
        with (
            pytest.raises(ClusterError, match=f'nothing answers at Ray address {address}'),
            ray_worker_pool(address),
        ):
            pass
