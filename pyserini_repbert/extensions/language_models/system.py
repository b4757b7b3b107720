"""The system of language models behind an address: they rerank.

Use them as a last stage, on a few dozen candidates: a call takes seconds, and costs money or a GPU.
Listwise: RankGPT, Sun et al. 2023, https://arxiv.org/abs/2304.09542
"""

from collections.abc import Mapping
from typing import Any

from pyserini_repbert.data.values import one_or_more
from pyserini_repbert.systems.registry import StageOption, System


def count_answers(k: int, options: Mapping[str, Any]) -> int:
    """The answers for k candidates: one a window; pointwise, one a candidate."""
    if options.get('method') == 'pointwise':
        return k
    from pyserini_repbert.extensions.language_models.windows import (
        DEFAULT_STEP,
        DEFAULT_WINDOW,
        sliding_windows,
    )

    window = options.get('window', DEFAULT_WINDOW)
    return len(sliding_windows(k, window, options.get('step', min(DEFAULT_STEP, window))))


SYSTEM = System(
    name='llm',
    title='language model',
    recognises='pyserini_repbert.extensions.language_models.settings:is_language_model',
    reranker='pyserini_repbert.extensions.language_models.reranker:LanguageModelReranker',
    stage_options=(
        StageOption('METHOD', 'method', str),
        StageOption('window=N', 'window', one_or_more),
        StageOption('step=N', 'step', one_or_more),
        StageOption('words=N', 'words', one_or_more),
        StageOption('prompt=FILE', 'prompt', str),
    ),
    count_inputs=count_answers,
)
