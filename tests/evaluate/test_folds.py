import json

import pytest
from folders import write_files

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


# The run of each fold; topic 4 has no hits.
RUNS = [
    {'2': hits('a'), '1': hits('b', 'c')},
    {'3': hits('d3')},
    {'5': hits('d5')},
    {'6': hits('d6')},
    {'7': hits('d7')},
]


def test_three_folds_train_the_one_before_validates():
    splits = split_folds(FOLDS)
    assert splits[0] == Split(['3', '4', '5', '6'], ['7'], ['1', '2'])
    assert splits[2] == Split(['1', '2', '6', '7'], ['3'], ['4', '5'])
    assert [split.test for split in splits] == FOLDS
    for split in splits:
        assert sorted(split.train + split.validation + split.test) == list('1234567')


def test_runs_are_joined():
    joined = join_runs(RUNS, FOLDS)
    assert list(joined) == ['1', '2', '3', '5', '6', '7']
    assert joined['1'] == hits('b', 'c')


def test_runs_in_another_order_than_the_folds_are_refused():
    first, second, *others = RUNS
    with pytest.raises(MismatchError, match="run 1 has topic '3', which is in fold 2"):
        join_runs([second, first, *others], FOLDS)


def test_a_file_for_each_fold(tmp_path):
    write_files(
        tmp_path,
        {
            'a.run': '1 Q0 d 1 2 t\n1 Q0 e 2 1 t\n2 Q0 d 1 1 t\n',
            'b': 'query\t3\ttext\n\n',
            'c.pairs': '4\td\n5\td\n',
        },
    )
    paths = [tmp_path / name for name in ('a.run', 'b', 'c.pairs')]
    assert read_folds(paths) == [['1', '2'], ['3'], ['4', '5']]


def test_one_file_of_all_folds(tmp_path):
    path = tmp_path / 'folds.json'
    path.write_text('[[1, 2], ["3"], ["4", "5"]]')
    assert read_folds([path]) == [['1', '2'], ['3'], ['4', '5']]
    path.write_text('{"f1": [1]}')
    with pytest.raises(InputError, match='list of lists of qids'):
        read_folds([path])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with folds, topics and a run that lacks topic 5."""
    monkeypatch.chdir(tmp_path)
    topics = [f'query\t{qid}\ttext of {qid}\n' for qid in '7654321']
    hits_of_topics = [f'{qid} Q0 d{qid} 1 {qid} t\n' for qid in '123467']
    write_files(
        tmp_path,
        {
            'folds.json': json.dumps(FOLDS),
            'queries.tsv': ''.join(topics),
            'bm25.run': ''.join(hits_of_topics),
        },
    )
    return tmp_path


SPLIT = 'split-folds --folds folds.json --topics queries.tsv --run bm25.run --output out'.split()


def join(output, order):
    """Join the test runs of the folds, in this order; the exit status."""
    runs = [f'out/fold-{number}/test.run' for number in order]
    words = ['--folds', 'folds.json', '--topics', 'queries.tsv', '--output', output]
    return run(main, ['join-folds', *words, '--runs', *runs])


def test_the_command_splits_topics_and_a_run(folder, capsys):
    assert run(main, SPLIT) == 0
    assert 'fold 1: 4 train, 1 validation, 2 test' in capsys.readouterr().out
    assert [query.qid for query in read_topics('out/fold-2/train.tsv')] == ['4', '5', '6', '7']
    assert (folder / 'out/fold-2/validation.tsv').read_text() == '1\ttext of 1\n2\ttext of 2\n'
    assert list(read_run('out/fold-3/test.run')) == ['4']


def test_folds_that_are_there_are_not_replaced(folder, capsys):
    assert run(main, SPLIT) == 0
    assert run(main, SPLIT) == 2
    assert 'out exists' in capsys.readouterr().err


def test_the_command_joins_what_was_split(folder, capsys):
    assert run(main, SPLIT) == 0
    assert join('all.run', order=[1, 2, 3, 4, 5]) == 0
    assert 'all.run: 6 topics of 5 folds; 1 topic without hits' in capsys.readouterr().out
    assert read_run('all.run') == read_run('bm25.run')
    assert (folder / 'all.run').read_text().splitlines()[0] == '1 Q0 d1 1 1.000000 all'


def test_the_command_refuses_runs_in_another_order(folder, capsys):
    assert run(main, SPLIT) == 0
    assert join('no.run', order=[2, 1, 3, 4, 5]) == 2
    assert "run 1 has topic '3', which is in fold 2" in capsys.readouterr().err
    assert not (folder / 'no.run').exists()


YEARS = [['3'], ['4', '5'], ['6']]


def test_other_years_train_and_one_validates_every_fold():
    splits = split_folds(YEARS, validation=['2'], others=['1', '7'])
    assert splits[0] == Split(['1', '7', '4', '5', '6'], ['2'], ['3'])
    assert splits[1] == Split(['1', '7', '3', '6'], ['2'], ['4', '5'])
    with pytest.raises(MismatchError, match="topic '3' is in fold 1 and in fold 4"):
        split_folds(YEARS, validation=['3'])


def test_the_command_splits_years_with_pairs_and_several_runs(folder, capsys):
    write_files(
        folder,
        {
            'years.json': json.dumps(YEARS),
            'valid.run': '2 Q0 v 1 1.0 t\n',
            'test.run': '3 Q0 d 1 1.0 t\n',
            'train.pairs': '1\ta\n1\tb\n1\ta\n3 c\n4\td\n2\te\n',
        },
    )
    words = '--folds years.json --topics queries.tsv --validation valid.run --output years'
    files = '--run test.run valid.run --pairs train.pairs'
    assert run(main, ['split-folds', *words.split(), *files.split()]) == 0
    assert 'fold 1: 5 train, 1 validation, 1 test' in capsys.readouterr().out
    assert (folder / 'years/fold-1/train.pairs').read_text() == '1\ta\n1\tb\n4\td\n'
    assert (folder / 'years/fold-2/train.pairs').read_text() == '1\ta\n1\tb\n3\tc\n'
    assert list(read_run('years/fold-3/validation.run')) == ['2']
    assert list(read_run('years/fold-1/test.run')) == ['3']
    overwritten = ['split-folds', *words.split(), *files.split(), '--overwrite']
    assert run(main, overwritten) == 0


def test_a_topic_of_two_runs_is_refused(folder, capsys):
    assert run(main, [*SPLIT[:-2], 'bm25.run', '--output', 'out']) == 2
    assert "bm25.run has topic '1', and so has a run before it" in capsys.readouterr().err
    assert not (folder / 'out').exists()


def test_pairs_of_another_form_are_refused(folder, capsys):
    (folder / 'bad.pairs').write_text('1\ta\n1\ta\t0\n')
    assert run(main, [*SPLIT, '--pairs', 'bad.pairs']) == 2
    assert "bad.pairs:2: expected 'qid docid', found 3 columns" in capsys.readouterr().err
    assert not (folder / 'out').exists()
