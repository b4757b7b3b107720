from collections import Counter

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.fusion import main
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.evaluate.measures import parse_measures
from pyserini_repbert.evaluate.studies.fusion import RunFusion, settings, tune_fusion
from pyserini_repbert.fusion import FusionSettings
from pyserini_repbert.ranking import Ranking

(MRR,) = parse_measures(['MRR@10'])
TOPICS = [str(number) for number in range(10)]
QRELS = {qid: {'good': 1} for qid in TOPICS}


def ranking(*docids):
    return Ranking(docids, [1.0 / rank for rank in range(1, len(docids) + 1)])


@pytest.fixture
def runs():
    """'right' has the relevant document first, 'wrong' has it nowhere; interleaved, the leader
    decides.
    """
    return {
        'wrong': {qid: ranking('a', 'b', 'c') for qid in TOPICS},
        'right': {qid: ranking('good', 'a', 'b') for qid in TOPICS},
    }


def test_the_order_that_is_right_is_chosen_in_every_fold(runs):
    tuned = tune_fusion(runs, QRELS, MRR, folds=5, methods=['interleave'])
    right = RunFusion(('right', 'wrong'), FusionSettings())
    assert tuned.whole == right
    assert tuned.held_out == 1.0
    qids = []
    for fold in tuned.folds:
        assert (fold.setting, fold.training, len(fold.topics)) == (right, 1.0, 2)
        qids += fold.topics
    assert sorted(qids) == TOPICS


def test_held_out_values_are_compared_with_runs_alone_and_untuned_fusion(runs):
    """Untuned, 'wrong' leads: a, good, b, c."""
    tuned = tune_fusion(runs, QRELS, MRR, folds=5, methods=['interleave'])
    baselines = {name: comparison.baseline for name, comparison in tuned.against.items()}
    assert baselines == {'right': 1.0, 'interleave wrong+right (untuned)': 0.5, 'wrong': 0.0}
    assert tuned.against['wrong'].difference == 1.0


def test_the_run_is_fused_by_the_chosen_settings(runs):
    tuned = tune_fusion(runs, QRELS, MRR, folds=5, methods=['interleave'])
    assert list(tuned.run) == TOPICS
    assert tuned.run['3'].docids == ('good', 'a', 'b', 'c')


def test_held_out_topics_do_not_choose(runs):
    """One topic prefers the other order; alone in its fold, it is reported under what the others
    choose.
    """
    odd = '7'
    runs['right'][odd] = ranking('a', 'b')
    runs['wrong'][odd] = ranking('good', 'c')
    tuned = tune_fusion(runs, QRELS, MRR, folds=10, methods=['interleave'])
    (fold,) = [fold for fold in tuned.folds if fold.topics == (odd,)]
    assert fold.setting.order == ('right', 'wrong')
    assert (fold.training, fold.held_out) == (1.0, 0.5)
    assert tuned.held_out == pytest.approx((9 + 0.5) / 10)


def test_interpolation_learns_the_weight(runs):
    """'wrong' has greater scores: only a small weight for it leaves the relevant document first."""
    runs['wrong'] = {qid: Ranking(('a',), [10.0]) for qid in TOPICS}
    runs['right'] = {qid: Ranking(('good', 'a'), [1.0, 0.5]) for qid in TOPICS}
    tuned = tune_fusion(runs, QRELS, MRR, folds=2, methods=['interpolation'])
    # as they are, .05 * 10 + .95 * .5 = .975 > .95; between 0 and 1, .05 * 1 < .95 * 1
    assert str(tuned.whole) == 'interpolation wrong+right alpha=0.05 minmax'
    assert tuned.held_out == 1.0


def test_two_runs_are_tried_in_both_orders():
    names = [str(setting) for setting in settings(['a', 'b'], ['interleave', 'rrf'])]
    assert names[:4] == ['interleave a+b', 'interleave b+a', 'rrf a+b k=1', 'rrf a+b k=5']


def test_all_subsets_of_three_runs_are_tried():
    """Three pairs in two orders and three runs in six; 19 weights for a pair, of scores as they are
    and normalised, and 10 sums of three sixths; 7 constants for each of the four sets.
    """
    counts = Counter(setting.settings.method for setting in settings(['a', 'b', 'c']))
    assert counts == {
        'interleave': 3 * 2 + 6,
        'interpolation': 3 * 2 * 19 + 10,
        'rrf': 4 * 7,
    }


def test_of_five_runs_pairs_and_all_are_tried():
    names = ['a', 'b', 'c', 'd', 'e']
    orders = [setting.order for setting in settings(names, ['interleave'])]
    n_of_pairs = 10 * 2
    assert orders[:2] == [('a', 'b'), ('b', 'a')]
    assert [order[0] for order in orders[n_of_pairs:]] == names


def test_a_pair_of_three_runs_is_chosen_and_shown_untuned(runs):
    """'noise' pushes the relevant document down in whatever it is fused with; the scores of the
    others find it.
    """
    runs['wrong'] = {qid: Ranking(('a', 'good'), [5.0, 4.9]) for qid in TOPICS}
    runs['right'] = {qid: Ranking(('b', 'good'), [5.0, 4.9]) for qid in TOPICS}
    runs['noise'] = {qid: Ranking(('a', 'b', 'x', 'y'), [9.0, 8.0, 7.0, 6.0]) for qid in TOPICS}
    tuned = tune_fusion(runs, QRELS, MRR, folds=2)
    assert str(tuned.whole) == 'rrf wrong+right k=1'
    assert tuned.held_out == 1.0
    rivals = list(tuned.against)
    assert len(rivals) == 3 + 4 * 2 + 3
    best = {'rrf wrong+right k=60 (untuned)', 'interpolation wrong+right alpha=0.5 (untuned)'}
    assert set(rivals[:2]) == best
    assert tuned.against[rivals[0]].difference == 0


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = [f'{qid} Q0 a 1 2 t\n{qid} Q0 b 2 1 t\n' for qid in TOPICS]
    right = [f'{qid} Q0 good 1 2 t\n{qid} Q0 a 2 1 t\n' for qid in TOPICS]
    judged = [f'{qid} 0 good 1\n{qid} 0 b 0\n' for qid in TOPICS]
    (tmp_path / 'wrong.txt').write_text(''.join(wrong))
    (tmp_path / 'right.txt').write_text(''.join(right))
    (tmp_path / 'qrels.txt').write_text(''.join(judged))
    return tmp_path


def test_the_command(files, capsys):
    command = (
        'tune --runs wrong.txt best=right.txt --qrels qrels.txt --measure MRR@10 --folds 2 '
        '--output held.txt'
    )
    assert run(main, [*command.split(), '--methods', 'interleave']) == 0
    shown = capsys.readouterr().out
    assert 'Held out, MRR@10 1.0000 over 10 judged topics' in shown
    assert 'All topics choose: interleave best+wrong' in shown and '| wrong ' in shown
    assert read_run('held.txt')['4'].docids == ('good', 'a', 'b')


def test_pyserinis_spellings(files):
    ours = '--runs wrong.txt right.txt --method rrf --rrf-k 3 --tag x --output ours.txt'
    theirs = '--runs wrong.txt right.txt --method rrf --rrf.k 3 --runtag x --output theirs.txt'
    assert run(main, ours.split()) == run(main, theirs.split()) == 0
    assert (files / 'ours.txt').read_bytes() == (files / 'theirs.txt').read_bytes()
