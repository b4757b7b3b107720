"""`rerank --ray`: the same ranking as in one process, resumed after a loss; without Ray itself."""

import pytest
import torch

from pyserini_repbert.commands import command, rerank
from pyserini_repbert.errors import ClusterError
from pyserini_repbert.pipeline import Machine
from tests.pipeline.conftest import run_stages


@pytest.fixture(autouse=True)
def _one_thread():
    """As a worker has it: the last bit of a score may depend on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def reranked(world):
    """reranked(pool=None, output=None, resume=False): mono and duo, in a batch for each query."""

    def make(workers=None, output=None, resume=False):
        settings = {'save_scores': True, 'batch_inputs': 1, 'output': output, 'resume': resume}
        stages = [f'{world.mono}@10', f'{world.duo}@4:binary']
        return run_stages(world, stages, machine=workers and Machine(ray=workers), **settings)

    return make


@pytest.mark.parametrize('loses', [(), (0,), (2, 3)])
def test_the_same_ranking_and_saved_scores(reranked, local_pool, loses):
    one = reranked()
    workers = local_pool(2, loses)
    many = reranked(workers)
    assert many.run == one.run and len(many.done) == 3
    assert [saved.qid for saved in many.saved] == [saved.qid for saved in one.saved]
    assert [saved.scores.tobytes() for saved in many.saved] == [
        saved.scores.tobytes() for saved in one.saved
    ]
    assert [cost.inferences for cost in many.costs] == [cost.inferences for cost in one.costs]
    assert [name for _, name in workers.asked].count('opening the stages') == (
        2 if 0 in loses else 1
    )


def test_what_was_lost_is_resumed(reranked, local_pool, tmp_path):
    one = reranked()
    with pytest.raises(ClusterError, match='query batch 1 was tried 5 times'):
        reranked(local_pool(1, range(2, 99)), tmp_path / 'out.txt')
    workers = local_pool(1)
    many = reranked(workers, tmp_path / 'out.txt', resume=True)
    assert many.run == one.run
    assert [name for _, name in workers.asked] == [
        'opening the stages',
        'query batch 1',
        'query batch 2',
    ]


def test_the_command_writes_the_same_run(world, local_pool, connect, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(world.mono.parent)
    given = [
        '--run',
        world.run_file,
        '--topics',
        world.topics,
        '--corpus',
        world.corpus,
        '--quiet',
        '--tag',
        'one',
    ]
    given = [*map(str, given), '--reranker', f'{world.mono.name}@10', '--output']
    assert command.run(rerank.main, [*given, 'one.txt']) == 0
    called = connect(local_pool(2))
    assert command.run(rerank.main, [*given, 'many.txt', '--ray', 'auto']) == 0
    assert (world.mono.parent / 'one.txt').read_bytes() == (
        world.mono.parent / 'many.txt'
    ).read_bytes()
    assert called == [('auto', None, False)]
    assert (
        command.run(rerank.main, [*given, 'no.txt', '--ray', 'auto', '--devices', 'cpu,cpu']) == 2
    )
    assert '--devices does not go with --ray' in capsys.readouterr().err
