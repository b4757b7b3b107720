"""Evaluation of runs: measures, paired tests, and the papers' tables and figures."""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily

if TYPE_CHECKING:
    from pyserini_repbert.evaluate.latex import latex_table as latex_table
    from pyserini_repbert.evaluate.measures import (
        Evaluation as Evaluation,
        evaluate as evaluate,
        parse_measures as parse_measures,
    )
    from pyserini_repbert.evaluate.significance import (
        bootstrap_interval as bootstrap_interval,
        compare as compare,
        holm as holm,
        paired_t_test as paired_t_test,
        randomization_test as randomization_test,
    )
    from pyserini_repbert.evaluate.studies.depths import (
        consistency_factors as consistency_factors,
        evaluate_depths as evaluate_depths,
        recall_at_depths as recall_at_depths,
    )
    from pyserini_repbert.evaluate.studies.fusion import evaluate_fusions as evaluate_fusions

_NAMES = {
    'pyserini_repbert.evaluate.measures': ('Evaluation', 'evaluate', 'parse_measures'),
    'pyserini_repbert.evaluate.latex': ('latex_table',),
    'pyserini_repbert.evaluate.significance': (
        'bootstrap_interval',
        'compare',
        'holm',
        'paired_t_test',
        'randomization_test',
    ),
    'pyserini_repbert.evaluate.studies.depths': (
        'consistency_factors',
        'evaluate_depths',
        'recall_at_depths',
    ),
    'pyserini_repbert.evaluate.studies.fusion': ('evaluate_fusions',),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
