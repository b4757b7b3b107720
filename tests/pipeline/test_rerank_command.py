import json

import pytest

from pyserini_repbert.commands import command
from pyserini_repbert.commands.rerank import main
from pyserini_repbert.data.runs import read_run, write_run
from pyserini_repbert.pipeline.part_file import open_part_file


def arguments(world, output, *more):
    given = [
        '--run',
        world.run_file,
        '--topics',
        world.topics,
        '--corpus',
        world.corpus,
        '--output',
        output,
        '--quiet',
    ]
    return [*map(str, given), '--reranker', f'{world.mono}@10', *more]


def test_mono_and_duo_with_pairs_and_costs(world, tmp_path, capsys):
    output = tmp_path / 'out.txt'
    pairs = tmp_path / 'pairs.npz'
    cost = tmp_path / 'cost.json'
    duo = [
        '--reranker',
        f'{world.duo}@4:binary',
        '--pairs',
        str(pairs),
        '--cost',
        str(cost),
        '--replay-k0',
        '6',
    ]
    main(arguments(world, output, *duo))
    run = read_run(output)
    assert {qid: len(ranked.docids) for qid, ranked in run.items()} == {'q1': 12, 'q2': 12, 'q3': 4}
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith('monobert-tiny@10: 8.0 inferences, ')
    assert 'of candidates truncated' in lines[0]
    assert lines[2].startswith('all stages: ')
    stages = json.loads(cost.read_text())['stages']
    assert [stage['queries'] for stage in stages] == [3, 3]
    assert not (tmp_path / 'out.txt.part').exists()
    again = tmp_path / 'again.txt'
    main(['--from-pairs', str(pairs), '--output', str(again), '--method', 'binary', '--tag', 'out'])
    assert again.read_bytes() == output.read_bytes()
    assert '3 queries replayed' in capsys.readouterr().out
    replay = ['--from-pairs', str(pairs), '--output', str(again), '--k0', '6', '--k1', '0']
    main([*replay, '--overwrite'])
    shallow = tmp_path / 'shallow.txt'
    given = arguments(world, shallow)
    given[given.index(f'{world.mono}@10')] = f'{world.mono}@6'
    main(given)
    assert read_run(again)['q1'].docids == read_run(shallow)['q1'].docids


def test_the_rest_can_be_dropped_and_hits_limited(world, tmp_path):
    output = tmp_path / 'out.tsv'
    main(arguments(world, output, '--drop-rest', '--output-format', 'msmarco'))
    assert len(read_run(output)['q1'].docids) == 10
    main(arguments(world, output, '--hits', '2', '--overwrite'))
    assert len(read_run(output)['q1'].docids) == 2


def test_a_refused_reranking_leaves_nothing_and_can_be_said_again(world, tmp_path, capsys):
    lacking = tmp_path / 'lacking.jsonl'
    lacking.write_text(world.corpus.read_text().replace('"d0"', '"x0"'))
    output = tmp_path / 'new' / 'out.txt'
    given = arguments(world, output)
    wrong = [str(lacking) if word == str(world.corpus) else word for word in given]
    assert command.run(main, wrong) == 2
    assert "'d0'" in capsys.readouterr().err
    assert not output.parent.exists()
    assert command.run(main, given) == 0
    assert sorted(path.name for path in output.parent.iterdir()) == [
        'out.txt',
        'out.txt.record.json',
    ]


def test_two_rerankings_of_one_output(world, tmp_path, capsys):
    import os

    output = tmp_path / 'out.txt'
    with open_part_file(output, {}):
        for more in ([], ['--resume'], ['--overwrite']):
            assert command.run(main, arguments(world, output, *more)) == 2
            assert (
                f'out.txt.part is being written by process {os.getpid()} on host'
                in capsys.readouterr().err
            )
    assert not list(tmp_path.glob('*out.txt*'))


def test_a_damaged_part_file_is_refused_in_one_line(world, tmp_path, capsys):
    output = tmp_path / 'out.txt'
    (tmp_path / 'out.txt.part').write_text('{"stages": []}\n')  # as earlier releases wrote it
    assert command.run(main, arguments(world, output, '--resume')) == 2
    assert (
        'out.txt.part:1: the line is damaged, or another release wrote it: start again '
        '(--overwrite)' in capsys.readouterr().err
    )
    assert command.run(main, arguments(world, output, '--overwrite')) == 0


@pytest.mark.parametrize('change', ['text', 'format'])
def test_resuming_refuses_other_passages(change, world, tmp_path, monkeypatch, capsys):
    output = tmp_path / 'out.txt'

    def be_killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as killing:
        killing.setattr('pyserini_repbert.data.runs.write_run', be_killed)
        with pytest.raises(KeyboardInterrupt):
            main(arguments(world, output))
    assert (tmp_path / 'out.txt.part').is_file()
    more = ['--resume']
    if change == 'text':
        world.corpus.write_text(world.corpus.read_text().replace('cat', 'dog'))
    else:
        more += ['--corpus-format', 'jsonl']
    assert command.run(main, arguments(world, output, *more)) == 2
    expected = {'text': 'passages_sha256 was', 'format': 'corpus_format was "auto"'}
    assert f'begun with other settings: {expected[change]}' in capsys.readouterr().err


def test_a_run_without_scores_has_none_to_mix(world, tmp_path, capsys):
    ranks = tmp_path / 'ranks.tsv'
    write_run(ranks, world.run, 'msmarco')
    given = arguments(world, tmp_path / 'out.txt')
    given[given.index(str(world.run_file))] = str(ranks)
    given[given.index(f'{world.mono}@10')] = f'{world.mono}@10:weight=0.5'
    assert command.run(main, given) == 2
    assert f'run file {ranks} has no scores, which the first reranker' in capsys.readouterr().err
    given[given.index(str(ranks))] = str(world.run_file)
    assert command.run(main, given) == 0


def test_a_run_without_hits_stays_one(world, tmp_path, caplog):
    """A search of topics that match nothing writes such a run."""
    (tmp_path / 'empty.txt').touch()
    given = [
        '--topics',
        str(world.topics),
        '--corpus',
        str(world.corpus),
        '--reranker',
        f'{world.mono}@10',
        '--quiet',
    ]
    main(['--run', str(tmp_path / 'empty.txt'), *given, '--output', str(tmp_path / 'out.txt')])
    assert (tmp_path / 'out.txt').read_bytes() == b''
    assert 'counts as a run without hits' in caplog.text
