import json

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.evaluate import main
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.evaluate.folds import Split, join_runs, read_folds, split_folds
from pyserini_repbert.ranking import Ranking

FOLDS = [['1', '2'], ['3'], ['4', '5'], ['6'], ['7']]


def hits(*docids):
    return Ranking(list(docids), [1.0 / rank for rank in range(1, len(docids) + 1)])


def test_three_folds_train_the_one_before_validates():
    splits = split_folds(FOLDS)
    assert splits[0] == Split(['3', '4', '5', '6'], ['7'], ['1', '2'])
    assert splits[2] == Split(['1', '2', '6', '7'], ['3'], ['4', '5'])
    assert [qid for split in splits for qid in split.test] == list('1234567')
    for split in splits:
        assert sorted(split.train + split.validation + split.test) == list('1234567')


def test_runs_are_joined():
    runs = [{'2': hits('a'), '1': hits('b', 'c')}] + [{qid: hits(f'd{qid}')} for qid in '3567']
    joined = join_runs(runs, FOLDS)
    assert list(joined) == ['1', '2', '3', '5', '6', '7']
    assert joined['1'] == hits('b', 'c')
    with pytest.raises(MismatchError, match="run 1 has topic '3', which is in fold 2"):
        join_runs([runs[1], runs[0], *runs[2:]], FOLDS)


def test_fold_files(tmp_path):
    (tmp_path / 'a.run').write_text('1 Q0 d 1 2 t\n1 Q0 e 2 1 t\n2 Q0 d 1 1 t\n')
    (tmp_path / 'b').write_text('query\t3\ttext\n\n')
    (tmp_path / 'c.pairs').write_text('4\td\n5\td\n')
    paths = [tmp_path / name for name in ('a.run', 'b', 'c.pairs')]
    assert read_folds(paths) == FOLDS[:3]
    (tmp_path / 'folds.json').write_text(json.dumps([[1, 2], ['3'], ['4', '5']]))
    assert read_folds([tmp_path / 'folds.json']) == FOLDS[:3]
    (tmp_path / 'folds.json').write_text('{"f1": [1]}')
    with pytest.raises(InputError, match='is no JSON list of lists of qids'):
        read_folds([tmp_path / 'folds.json'])


def test_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'folds.json').write_text(json.dumps(FOLDS))
    (tmp_path / 'queries.tsv').write_text(
        ''.join(f'query\t{qid}\ttext of {qid}\n' for qid in '7654321')
    )
    (tmp_path / 'bm25.run').write_text(''.join(f'{qid} Q0 d{qid} 1 {qid} t\n' for qid in '123467'))
    split = (
        'split-folds --folds folds.json --topics queries.tsv --run bm25.run --output out'.split()
    )
    assert run(main, split) == 0
    assert 'fold 1: 4 train, 1 validation, 2 test' in capsys.readouterr().out
    assert [query.qid for query in read_topics('out/fold-2/train.tsv')] == ['4', '5', '6', '7']
    assert (tmp_path / 'out/fold-2/validation.tsv').read_text() == '1\ttext of 1\n2\ttext of 2\n'
    assert list(read_run('out/fold-3/test.run')) == ['4']
    assert run(main, split) == 2
    assert 'out exists' in capsys.readouterr().err

    runs = ' '.join(f'out/fold-{number}/test.run' for number in range(1, 6))
    assert (
        run(
            main,
            f'join-folds --folds folds.json --topics queries.tsv --runs {runs} --output '
            f'all.run'.split(),
        )
        == 0
    )
    assert 'all.run: 6 topics of 5 folds; 1 topics have no hits' in capsys.readouterr().out
    assert read_run('all.run') == read_run('bm25.run')
    assert (tmp_path / 'all.run').read_text().splitlines()[0] == '1 Q0 d1 1 1.000000 all'
    runs = ' '.join(f'out/fold-{number}/test.run' for number in (2, 1, 3, 4, 5))
    assert run(main, f'join-folds --folds folds.json --runs {runs} --output no.run'.split()) == 2
    assert "run 1 has topic '3', which is in fold 2" in capsys.readouterr().err
    assert not (tmp_path / 'no.run').exists()
