"""duoBERT (Nogueira et al., 2019, section 3.3): reads every ordered pair of candidates.

Use it as a last stage, on the few dozen best candidates of monoBERT: k candidates take k(k - 1)
model inputs. https://arxiv.org/abs/1910.14424
"""

from collections.abc import Mapping
from typing import Any

from pyserini_repbert.data.values import integer
from pyserini_repbert.systems.registry import StageOption, System


def count_pairs(k: int, options: Mapping[str, Any]) -> int:
    """The ordered pairs of k candidates; with `samples`, at most so many for each."""
    competitors = k - 1
    samples = options.get('samples')
    if samples:
        competitors = min(competitors, samples)
    return k * competitors


SYSTEM = System(
    name='duobert',
    title='duoBERT',
    reranker='pyserini_repbert.systems.duobert.reranker:DuoBertReranker',
    task='pyserini_repbert.systems.duobert.training:DuoBertTask',
    group_size=2,
    stage_options=(
        StageOption('METHOD', 'method', str),
        StageOption('sample=M', 'samples', integer, implies={'method': 'sample'}),
        StageOption('seed=N', 'seed', integer),
        StageOption('layout=NAME', 'layout', str),
        StageOption('max-length=N', 'max_length', integer),
    ),
    client_options=('method', 'samples', 'seed'),
    count_inputs=count_pairs,
)
