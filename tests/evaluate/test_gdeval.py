"""nDCG and ERR as gdeval.pl computes them.

The values are what version 1.3 of gdeval.pl, of CEDR's repository, prints for these judgments and
this run, with `-k 20` and `-k 3`; each is computed by hand as well. The folder `gdeval` has runs of
CEDR's authors.
"""

import csv
import shutil
from math import log2
from pathlib import Path

import pytest

from pyserini_repbert.data.qrels import read_qrels
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.evaluate import evaluate, parse_measures

pytestmark = pytest.mark.skipif(shutil.which('perl') is None, reason='gdeval.pl needs perl')

# Grades of 0 and of -2, spam, gain nothing; topic 3 has no relevant document.
QRELS = """\
1 0 a 4
1 0 b 0
1 0 c 1
1 0 d 2
1 0 e -2
2 0 a 1
2 0 b 3
2 0 f -2
3 0 a 0
"""
# Of equal scores, the later docid comes first: c, a in topic 1, and f, b in topic 2.
RUN = """\
1 Q0 b 1 9.0 t
1 Q0 e 2 8.0 t
1 Q0 a 3 7.0 t
1 Q0 c 4 7.0 t
1 Q0 x 5 1.0 t
2 Q0 a 1 3.0 t
2 Q0 b 2 2.5 t
2 Q0 f 3 2.5 t
3 Q0 a 1 1.0 t
"""
NDCG = "nDCG(dcg='exp-log2')"
AUTHORS = Path(__file__).parent / 'gdeval'


@pytest.fixture
def evaluation(tmp_path):
    (tmp_path / 'qrels').write_text(QRELS)
    (tmp_path / 'run').write_text(RUN)
    names = [f'{NDCG}@20', 'ERR@20', f'{NDCG}@3', 'ERR@3', 'nDCG@20']
    return evaluate(
        read_run(tmp_path / 'run'), read_qrels(tmp_path / 'qrels'), parse_measures(names)
    )


def of_topics(evaluation, measure):
    return [round(value, 5) for value in evaluation.values[measure].values()]


def test_the_gain_is_exponential(evaluation):
    assert of_topics(evaluation, f'{NDCG}@20') == [0.40017, 0.58971, 0]
    assert of_topics(evaluation, f'{NDCG}@3') == [0.02875, 0.58971, 0]
    ideal = 15 + 3 / log2(3) + 1 / log2(4)
    assert round((1 / log2(4) + 15 / log2(5)) / ideal, 5) == 0.40017
    assert round((1 / log2(4)) / ideal, 5) == 0.02875
    assert round((1 + 7 / log2(4)) / (7 + 1 / log2(3)), 5) == 0.58971


def test_the_greatest_grade_of_err_is_4(evaluation):
    assert of_topics(evaluation, 'ERR@20') == [0.24056, 0.19922, 0]
    assert of_topics(evaluation, 'ERR@3') == [0.02083, 0.19922, 0]
    assert round(1 / 16 / 3 + 15 / 16 * 15 / 16 / 4, 5) == 0.24056
    assert round(1 / 16 + 15 / 16 * 7 / 16 / 3, 5) == 0.19922


def test_trec_evals_gain_is_another(evaluation):
    linear = (1 / log2(4) + 4 / log2(5)) / (4 + 2 / log2(3) + 1 / log2(4))
    assert evaluation.values['nDCG@20']['1'] == pytest.approx(linear)


def test_a_topic_without_relevant_documents_counts_0(evaluation):
    """gdeval.pl leaves it out of its mean, which is .49494 here."""
    assert evaluation.means[f'{NDCG}@20'] == pytest.approx((0.40017 + 0.58971) / 3)


def test_the_authors_runs_score_as_their_script_scores_them():
    run = read_run(AUTHORS / 'run.txt.gz')
    qrels = read_qrels(AUTHORS / 'qrels.txt.gz')
    evaluation = evaluate(run, qrels, parse_measures([f'{NDCG}@20', 'ERR@20']))
    with open(AUTHORS / 'gdeval.csv', encoding='utf-8') as stream:
        printed = {row.pop('topic'): row for row in csv.DictReader(stream)}
    scores = {}
    for topic in run:
        ndcg = evaluation.values[f'{NDCG}@20'][topic]
        err = evaluation.values['ERR@20'][topic]
        scores[topic] = {'nDCG@20': f'{ndcg:.5f}', 'ERR@20': f'{err:.5f}'}
    assert scores == printed
