import json
import re

import pytest

from pyserini_repbert.commands import command
from pyserini_repbert.commands.encode import main as encode
from pyserini_repbert.commands.rerank import main as rerank
from pyserini_repbert.commands.search import main as search
from pyserini_repbert.data.runs import read_run


@pytest.fixture
def index(world, tiny_checkpoint, tmp_path):
    """(index folder, its encoder)"""
    checkpoint = str(tiny_checkpoint('dense'))
    folder = str(tmp_path / 'index')
    arguments = [
        '--corpus',
        str(world.corpus),
        '--encoder',
        checkpoint,
        '--output',
        folder,
        '--store-text',
    ]
    assert command.run(encode, arguments) == 0
    return folder, checkpoint


def test_searching_with_stages_is_searching_and_then_reranking(world, index, tmp_path, capsys):
    where = ['--index', index[0], '--topics', str(world.topics)]
    stages = [f'{world.mono}@8', f'{world.duo}@3:binary']
    first, both, after = (str(tmp_path / f'{name}.txt') for name in ('first', 'both', 'after'))
    assert command.run(search, [*where, '--output', first]) == 0
    cost = tmp_path / 'cost.json'
    given = [part for stage in stages for part in ('--rerank', stage)]
    assert (
        command.run(
            search, [*where, *given, '--output', both, '--cost', str(cost), '--tag', 'first']
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert 'inferences' in printed
    times = r'3 topics, ([\d.]+) ms each: ([\d.]+) searching \(.+\), ([\d.]+) reranking\n'
    total, searching, reranking = map(float, re.search(times, printed).groups())
    assert total == pytest.approx(searching + reranking, abs=0.11)  # each is rounded
    given = [part for stage in stages for part in ('--reranker', stage)]
    arguments = [
        '--run',
        first,
        '--topics',
        str(world.topics),
        '--corpus',
        str(world.corpus),
        *given,
    ]
    assert command.run(rerank, [*arguments, '--output', after]) == 0
    left = read_run(both)
    right = read_run(after)
    assert {qid: ranked.docids for qid, ranked in left.items()} == {
        qid: list.docids for qid, list in right.items()
    }
    assert [stage['inferences'] for stage in json.loads(cost.read_text())['stages']] == [
        3 * 8,
        3 * 3 * 2,
    ]


def test_the_first_stage_gives_as_many_as_the_reranker_takes(world, index, tmp_path, capsys):
    where = ['--index', index[0], '--topics', str(world.topics)]
    runs = {}
    for hits in ('2', '20'):
        output = str(tmp_path / f'{hits}.txt')
        cost = tmp_path / f'{hits}.json'
        given = ['--rerank', f'{world.mono}@9', '--output', output, '--cost', str(cost)]
        assert command.run(search, [*where, *given, '--hits', hits]) == 0
        assert [stage['inferences'] for stage in json.loads(cost.read_text())['stages']] == [3 * 9]
        runs[hits] = read_run(output)
    assert {qid: ranked.docids for qid, ranked in runs['2'].items()} == {
        q: r.docids[:2] for q, r in runs['20'].items()
    }
    best = runs['20']['q1'].docids[:2]
    capsys.readouterr()
    question = [
        '--index',
        index[0],
        '--query',
        world.queries[0].text,
        '--hits',
        '2',
        '--rerank',
        f'{world.mono}@9',
    ]
    assert command.run(search, question) == 0
    shown = [
        line.split()[1]
        for line in capsys.readouterr().out.splitlines()
        if line.lstrip()[:2] in ('1.', '2.')
    ]
    assert tuple(shown) == best
