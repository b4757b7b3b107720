"""What a person sees: hits and their reasons, a prompt, progress with advice, costs."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands.command import printable, progress
from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.trace import Notes, StageCost, StageTimes

if TYPE_CHECKING:
    from pathlib import Path

    from pyserini_repbert.data.passages import Corpus
    from pyserini_repbert.models.tokenizer import WordPieceTokenizer
    from pyserini_repbert.names.indexes import NamedIndex

STAGES = ('reading', 'tokenising', 'computing', 'writing')
_INDENT = '      '
_LINES = 4


def shown_hits(query: str, hits: Ranking, reasons: Sequence[Sequence[str]] = ()) -> str:
    """The query and its hits as lines of text, each hit's reasons below it; a passage is cut to
    a few lines.
    """
    from pyserini_repbert.data.spelling import mended

    width = max(40, min(shutil.get_terminal_size().columns, 110))
    lines = [f'? {printable(query)}'] + ([] if hits else ['   no hits'])
    for rank, hit in enumerate(hits, 1):
        lines.append(f'{rank:4d}. {printable(hit.docid)}  ({hit.score:.4f})')
        if hit.text is not None:
            text = mended(printable(hit.text))
            wrapped = textwrap.wrap(text, width - len(_INDENT), max_lines=_LINES, placeholder=' …')
            lines += [_INDENT + line for line in wrapped]
        if reasons:
            lines += [_INDENT + reason for reason in reasons[rank - 1]]
    return '\n'.join(lines)


def ask(answer: Callable[[str], str]) -> None:
    """Answer the questions that are typed, until Ctrl-D, Ctrl-C or an empty line; errors are
    printed.
    """
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - gives `input` a history and the keys that edit a line
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while query := input('? ').strip():
            try:
                print(answer(query))
            except PyseriniRepbertError as error:
                print(f'error: {printable(str(error))}')


def say_device(options: argparse.Namespace) -> None:
    """Say on stderr which GPU --device auto found, and whether bfloat16 is faster on it; a CPU
    needs no word.
    """
    import torch

    from pyserini_repbert.models.precision import bfloat16_gain

    if options.device == 'auto' and torch.cuda.is_available() and not options.quiet:
        gain = bfloat16_gain(torch.device('cuda')) if options.precision == 'float32' else ''
        hint = f'; bfloat16 is {gain} faster: --bf16' if gain else ''
        print(f'device: cuda ({torch.cuda.get_device_name()}){hint}', file=sys.stderr)


class Bars(contextlib.ExitStack, Notes):
    """Keeps what rankers report, and when a step began; shows one progress bar at a time."""

    def __init__(self, options: argparse.Namespace) -> None:
        contextlib.ExitStack.__init__(self)
        Notes.__init__(self, progress=self)  # which the notes of all parts share
        self.options = options
        self.began: dict[str, float] = {}  # seconds, by step

    def begins(self, step: str, total: int | None, unit: str) -> None:
        self.close()
        self.began[step] = time.perf_counter()
        self._bar = self.enter_context(progress(total, step, unit, self.options.quiet))

    def advance(self, n: int) -> None:
        self._bar.update(n)

    def building(self, index: NamedIndex | Path) -> Callable[[int], object]:
        """Say on stderr what is built; returns a progress callback."""
        from pyserini_repbert.names.indexes import NamedIndex

        if not isinstance(index, NamedIndex):
            print(f'building a Lucene index in {index}', file=sys.stderr)
            return int
        print(
            f"building index '{index.entry.name}' for encoder '{index.encoder}' in {index.folder}",
            file=sys.stderr,
        )
        self.begins(
            'encode',
            None if self.options.corpus else index.collection.values['passages'],
            'passages',
        )
        return self.advance


def cut_text(encoder: Any) -> str:
    """', 3 cut to 256 wordpieces' for the texts that an encoder cut; '' for none, or where it
    does not count them.
    """
    n_cut = getattr(getattr(encoder, 'tokenizer', None), 'n_cut', 0)
    return f', {n_cut} cut to {encoder.limit} wordpieces' if n_cut else ''


def skipped_text(corpus: Corpus) -> str:
    """', 3 skipped' for the lines or files of a corpus that could not be used; '' for none."""
    return f', {corpus.skipped} skipped' if corpus.skipped else ''


def costs_text(costs: Sequence[StageCost]) -> str:
    """The costs as lines of text, one a stage, with a line of sums where there are several
    stages.
    """
    lines = []
    for cost in costs:
        n = cost.queries or 1
        tokens = '' if cost.tokens is None else f' {cost.tokens / n:.0f} tokens,'
        spent = f'{cost.inferences_per_query:.1f} inferences,{tokens} {cost.seconds / n:.3f} s'
        notes = [] if cost.precision is None else [cost.precision]
        if cost.stored:
            notes.append(
                f'{100 * cost.stored / cost.candidates:.1f}% of candidates by stored vectors'
            )
        if cost.truncated_share is not None:
            among = ' of the others' if cost.stored else ' of candidates'
            notes.append(f'{100 * cost.truncated_share:.1f}%{among} truncated')
        lines.append(
            '; '.join([f'{cost.stage}: {spent} a query over {cost.queries} queries', *notes])
        )
    if len(costs) > 1:
        inferences = sum(cost.inferences_per_query for cost in costs)
        seconds = sum(cost.seconds / (cost.queries or 1) for cost in costs)
        lines.append(f'all stages: {inferences:.1f} inferences, {seconds:.3f} s a query')
    return '\n'.join(lines)


def stages_text(times: StageTimes, tokenizers: Sequence[WordPieceTokenizer]) -> str:
    """What each stage took of the time until now, and which the others waited for."""
    total = time.perf_counter() - times.start
    seconds = dict(times.seconds)
    seconds['writing'] = seconds.get('writing', 0.0) - seconds.pop('waiting', 0.0)
    workers = {tokenizer.workers for tokenizer in tokenizers if tokenizer.workers}
    here = sum(tokenizer.seconds for tokenizer in tokenizers)
    seconds['tokenising'] = here + sum(pool.seconds for pool in workers)
    seconds['computing'] -= here
    slowest = max(seconds, key=lambda stage: seconds[stage])
    advice = ': more --workers' if slowest == 'tokenising' else ''
    shares = ', '.join(
        f'{stage} {seconds[stage] / total:.0%}' for stage in STAGES if seconds.get(stage)
    )
    return f'{shares} of {total:.1f} s; {slowest} was the slowest{advice}'
