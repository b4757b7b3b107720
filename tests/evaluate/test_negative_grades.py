"""A negative grade (spam, say) is not relevant: measures have the values of their definitions."""

import shutil

import pytest

from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.ranking import Ranking

RUN = {
    'spam': Ranking(('s1', 's2'), (2.0, 1.0)),
    'mixed': Ranking(('m1', 'm2', 'm3'), (3.0, 2.0, 1.0)),
}
QRELS = {'spam': {'s1': -2, 's2': -1}, 'mixed': {'m1': -2, 'm2': 1, 'm3': 2, 'm4': 0}}


def err(gains):
    """Expected reciprocal rank: Chapelle et al. 2009, eq. 4; gains (2^g - 1) / 2^4."""
    value = 0.0
    unseen = 1.0
    for rank, gain in enumerate(gains, 1):
        value += unseen * gain / rank
        unseen *= 1 - gain
    return value


@pytest.mark.skipif(not shutil.which('perl'), reason='needs perl')
def test_err_of_negative_grades():
    evaluation = evaluate(RUN, QRELS, parse_measures(['ERR@10', 'ERR@2', 'nDCG@10', 'P@2']))
    mixed = err([0, 1 / 16, 3 / 16])
    assert evaluation.values['ERR@10'] == pytest.approx({'spam': 0, 'mixed': mixed}, abs=1e-5)
    assert evaluation.values['ERR@2']['mixed'] == pytest.approx(1 / 32, abs=1e-5)
    assert evaluation.means['ERR@10'] == pytest.approx(mixed / 2, abs=1e-5)
    assert evaluation.values['P@2'] == {'spam': 0, 'mixed': 0.5}


@pytest.mark.skipif(not shutil.which('perl'), reason='needs perl')
def test_err_where_all_topics_have_only_negative_grades():
    evaluation = evaluate(RUN, {'spam': {'s1': -1, 'other': -2}}, parse_measures(['ERR@10']))
    assert evaluation.values['ERR@10'] == {'spam': 0}
