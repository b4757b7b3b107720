"""How good runs are: measures on ir_measures, paired tests, and the analyses of RepBERT's tables and figures."""

from typing import TYPE_CHECKING

from pyserini_repbert.lazy import exports

if TYPE_CHECKING:
    from pyserini_repbert.evaluate.consistency import consistency_factors as consistency_factors
    from pyserini_repbert.evaluate.fusion_tables import fusion_table as fusion_table
    from pyserini_repbert.evaluate.measures import Evaluation as Evaluation
    from pyserini_repbert.evaluate.measures import evaluate as evaluate
    from pyserini_repbert.evaluate.measures import parse_measures as parse_measures
    from pyserini_repbert.evaluate.recall_depth import recall_at_depths as recall_at_depths
    from pyserini_repbert.evaluate.rerank_depth import rerank_at_depths as rerank_at_depths
    from pyserini_repbert.evaluate.significance import compare as compare
    from pyserini_repbert.evaluate.significance import paired_t_test as paired_t_test

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        'Evaluation': '.measures',
        'evaluate': '.measures',
        'parse_measures': '.measures',
        'compare': '.significance',
        'paired_t_test': '.significance',
        'fusion_table': '.fusion_tables',
        'consistency_factors': '.consistency',
        'recall_at_depths': '.recall_depth',
        'rerank_at_depths': '.rerank_depth',
    },
)
