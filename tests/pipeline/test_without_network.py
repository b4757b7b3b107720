"""Dense search, encode and rerank need no Pyserini, and so none of the tables that Pyserini 2.x
fetches.
"""

import json
import os
import subprocess
import sys

import pytest

# In a process of its own: every use of the network fails, and what was imported can be seen
_SCRIPT = """
import json, socket, sys
def refuse(*arguments, **options):
    raise AssertionError(f'the network was used: {arguments}')
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
from pyserini_repbert.commands import command, dispatcher
statuses = [command.run(dispatcher.main, arguments) for arguments in json.loads(sys.argv[1])]
print(json.dumps([statuses, sorted({name.split('.')[0] for name in sys.modules} & {'pyserini', 'jnius'})]))
"""  # noqa: E501


@pytest.mark.slow
def test_dense_search_encode_and_rerank_without_network_and_tables(
    world, tiny_checkpoint, tmp_path
):
    dense = str(tmp_path / 'dense')
    encoder = str(tiny_checkpoint())
    topics = str(world.topics)
    run = str(tmp_path / 'run.txt')
    reranked = str(tmp_path / 'reranked.txt')
    commands = [
        f'encode --corpus {world.corpus} --encoder {encoder} --output {dense} --store-text'.split(),
        f'search --index {dense} --encoder {encoder} --topics {topics} --output {run} --hits '
        f'5'.split(),
        f'rerank --run {run} --topics {topics} --reranker {world.mono}@5 --index {dense} --output '
        f'{reranked}'.split(),
    ]
    environment = {name: value for name, value in os.environ.items() if name != 'PYSERINI_SEED'}
    environment['PYSERINI_REPBERT_OFFLINE'] = '0'
    done = subprocess.run(
        [sys.executable, '-c', _SCRIPT, json.dumps(commands)],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [[0, 0, 0], []]
    assert len((tmp_path / 'reranked.txt').read_text().splitlines()) == 15
