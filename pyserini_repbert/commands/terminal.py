"""What a person sees: hits and their reasons, a prompt, progress with advice, costs."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyserini_repbert.addresses import FILE_SCHEME
from pyserini_repbert.commands.command import progress
from pyserini_repbert.commands.console import printable
from pyserini_repbert.data.origins import docid_of_path, readable_docid
from pyserini_repbert.data.suffixes import (
    PAGES,
    SOURCES,
    has_suffix_or_packed,
    without_suffix,
)
from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.ranking import Candidate, Excerpt, Ranking
from pyserini_repbert.trace import Notes, StageCost, StageTimes

if TYPE_CHECKING:
    from pathlib import Path

    from pyserini_repbert.data.unread_files import UnreadFile, UnreadFiles
    from pyserini_repbert.lucene.query_words import WordFinder
    from pyserini_repbert.models.tokenizer import WordPieceTokenizer
    from pyserini_repbert.names.indexes import NamedIndex

STAGES = ('reading', 'tokenising', 'computing', 'writing')
_INDENT = '      '
_LINES = 4
_CODE_LINES = 6
_STEP = 4  # characters
_MOST_NAMED = 3


def hits_text(
    query: str,
    hits: Ranking,
    reasons: Sequence[Sequence[str]] = (),
    find_words: WordFinder | None = None,
    lines_below: Sequence[str] = (),
    marks: Sequence[Sequence[str]] = (),
    scores: Sequence[str] = (),
    copies: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """The query and its hits as lines of text, each hit's reasons below it.

    Parameters
    ----------
    query : a question
    hits : a long passage is cut to a few lines around the words of the query
    reasons : lines below each hit
    find_words : finds the words of the query in a passage; default: as in English
    lines_below : lines about the question
    marks : a mark for each hit, beside its score
    scores : of each hit; default: its score
    copies : the docids of files with the same text, by the docid of a hit; None: none
    """
    lines = [f'? {printable(query)}']
    lines += [f'   {line}' for line in lines_below]
    width = max(40, min(shutil.get_terminal_size().columns, 110))
    titles = [hit.title for hit in hits]
    for row, hit in enumerate(hits):
        said = [scores[row] if scores else score_text(hit.score)]
        if marks:
            said += marks[row]
        score = f'({", ".join(said)})'
        name = printable(readable_docid(hit.docid))
        lines.append(f'{row + 1:4d}. {name}  {score}{_title_text(hit, titles)}')
        below = []
        if copies and hit.docid in copies:
            others = ', '.join(map(readable_docid, copies[hit.docid]))
            below.append(printable(f'the same in {others}'))
        below += _text_lines(hit, query, width - len(_INDENT), find_words)
        if reasons:
            below += reasons[row]
        lines += [_INDENT + line for line in below]
    return '\n'.join(lines)


def _text_lines(hit: Candidate, query: str, width: int, find_words: WordFinder | None) -> list[str]:
    """A hit's text, cut to a few lines of a width; of a document, its passage and its position.

    Empty if the index stores no texts.
    """
    if hit.excerpts:
        best = hit.excerpts[0]
        if has_suffix_or_packed(best.file, SOURCES):
            lines = _code_lines(query, best.shown_text, width, find_words)
        else:
            lines = _passage_lines(query, best.shown_text, width, find_words)
        return [*_place_lines(hit.docid, best), *lines]
    if hit.text is None:
        return []
    return _passage_lines(query, hit.text, width, find_words)


def score_text(score: float) -> str:
    """A score as a person reads it."""
    return f'{score:.4f}'


def scores_in_rankings(hits: Ranking, rankings: Mapping[str, Ranking]) -> list[str]:
    """The scores of each hit in the rankings that were fused, by their names: 'bm25 2.1034'.

    A ranking that does not have a hit among those that it found is left out.
    """
    scores_of = {
        name: dict(zip(ranking.docids, ranking.scores, strict=True))
        for name, ranking in rankings.items()
    }
    texts = []
    for docid in hits.docids:
        known = [
            f'{printable(name)} {score_text(scores[docid])}'
            for name, scores in scores_of.items()
            if docid in scores
        ]
        texts.append(', '.join(known))
    return texts


def _place_lines(docid: str, passage: Excerpt) -> list[str]:
    """Where a passage is, in up to two lines: its headings with its file, and its address.

    A passage at the beginning of a file has no first line: the docid says where it is. A record's
    docid, such as a table row's, does not say it, nor on which printed page the answer is.
    """
    lines = []
    start, _ = passage.shown_span
    has_place = passage.headings or start or _page_text(passage)
    if has_place or not _names_file(docid, passage.file):
        lines.append(_place_text(passage))
    if not passage.url.startswith(FILE_SCHEME):
        lines.append(passage.url)
    return [printable(line) for line in lines if line]


def _names_file(docid: str, file: str) -> bool:
    """Whether a docid, possibly with a prefix, belongs to a whole file."""
    name = docid_of_path(file)
    return docid.endswith((name, without_suffix(name, PAGES)))


def _place_text(passage: Excerpt) -> str:
    """The headings of a passage, and its location in its file; '' if neither is known."""
    place = passage.file
    if passage.line is not None:
        place += f':{passage.line}'
    if passage.row is not None:
        place += f', row {passage.row}'
    place += _page_text(passage)
    headings = ' › '.join(passage.headings)
    if headings and place:
        return f'{headings} ({place})'
    return headings or place


def _page_text(passage: Excerpt) -> str:
    """', page 3' for a passage of a printed page, which is its address, or ', pages 1 to 3'; '' for
    others.
    """
    name, _, number = passage.anchor.partition('=')
    is_page = name == 'page' and number.isdecimal() and not passage.headings
    if not is_page:
        return ''
    if passage.last_page is not None:
        return f', pages {number} to {passage.last_page}'
    return f', page {number}'


def _title_text(hit: Candidate, titles: Sequence[str]) -> str:
    """The title of a document, after its docid and score; '' if it has none.

    If other hits have the same title, a docid that is not a path does not tell them apart. Then the
    file's name is added. `titles` are all hits' titles.
    """
    title = hit.title
    if not title:
        return ''
    name = hit.excerpts[0].file.rpartition('/')[2]
    if titles.count(title) > 1 and name and name not in hit.docid:
        title = f'{title} ({name})'
    return f'  {printable(title)}'


def _passage_lines(query: str, text: str, width: int, find_words: WordFinder | None) -> list[str]:
    """A few lines of a passage: all of it, or the part around the query's words."""
    from pyserini_repbert.data.snippets import cut_around
    from pyserini_repbert.data.spelling import mended

    whole = ' '.join(mended(printable(text)).split())
    matches = None if find_words is None else find_words(query, whole)
    # Lines are seldom full: a text is cut until its lines are few enough.
    for most in range(_LINES * width, 0, -_STEP):
        lines = textwrap.wrap(cut_around(query, whole, most, matches), width)
        if len(lines) <= _LINES:
            break
    return lines


def _code_lines(query: str, text: str, width: int, find_words: WordFinder | None) -> list[str]:
    """A few lines of a program: the first ones, or those around the query's words."""
    from pyserini_repbert.data import snippets

    find = find_words or snippets.find_words
    filled = [line.rstrip() for line in text.expandtabs(_STEP).split('\n') if line.strip()]
    whole = textwrap.dedent('\n'.join(filled))
    matches = find(query, whole)
    cut = snippets.cut_lines_around(whole, _CODE_LINES * width, matches, most_lines=_CODE_LINES)
    lines = []
    for line in cut.split('\n'):
        indentation = ' ' * (len(line) - len(line.lstrip()))
        lines.append((indentation + printable(line))[:width])
    return lines


def answer_questions(answer: Callable[[str], str]) -> None:
    """Answer the questions that are typed, until Ctrl-D, Ctrl-C or an empty line; errors are
    printed.
    """
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - gives `input` a history and the keys that edit a line
    print('Type a question. An empty line ends the search.')
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while query := input('? ').strip():
            try:
                print(answer(query))
            except PyseriniRepbertError as error:
                print(f'error: {printable(str(error))}')


def piped_questions() -> Iterator[str]:
    """The questions that come through a pipe, one a line; empty lines are passed over.

    Raises InputError for a line that is not UTF-8, and if there is no question at all.
    """
    n_questions = 0
    lines: Iterable[bytes] = () if sys.stdin is None else sys.stdin.buffer
    for number, line in enumerate(lines, 1):
        try:
            question = line.decode('utf-8-sig').strip()
        except UnicodeDecodeError as error:
            raise InputError(
                f'line {number} of the questions is not UTF-8: convert them, for example with iconv'
            ) from error
        if question:
            n_questions += 1
            yield question
    if not n_questions:
        raise InputError(
            'no question was given: give one (--query), a file of topics (--topics), or questions '
            'through a pipe, one on each line'
        )


def say_device(options: argparse.Namespace) -> None:
    """Say on stderr which GPU --device auto found, and whether bfloat16 is faster on it. A CPU is
    not mentioned.
    """
    from pyserini_repbert.models.precision import bfloat16_gain, may_have_gpu

    if options.device != 'auto' or options.quiet or not may_have_gpu():
        return
    import torch

    if torch.cuda.is_available():
        gain = bfloat16_gain(torch.device('cuda')) if options.precision == 'float32' else ''
        hint = f'; bfloat16 is {gain} faster: --bf16' if gain else ''
        print(f'device: cuda ({torch.cuda.get_device_name()}){hint}', file=sys.stderr)


class ProgressBars(contextlib.ExitStack, Notes):
    """Keeps what rankers report, and when a step began; shows one progress bar at a time."""

    def __init__(self, options: argparse.Namespace) -> None:
        contextlib.ExitStack.__init__(self)
        Notes.__init__(self, progress=self)  # which the notes of all parts share
        self.options = options
        # When each step began, in seconds of `time.perf_counter`.
        self.began: dict[str, float] = {}

    def begins(self, step: str, total: int | None, unit: str) -> None:
        self.close()
        self.began[step] = time.perf_counter()
        # A bar of one question would jump from nothing to all.
        is_hidden = self.options.quiet or total == 1
        self._bar = self.enter_context(progress(total, step, unit, is_hidden))

    def advance(self, n: int) -> None:
        self._bar.update(n)

    def building(self, index: NamedIndex | Path) -> Callable[[int], object]:
        """Say on stderr what is being built; returns a progress callback."""
        from pyserini_repbert.names.indexes import NamedIndex

        if not isinstance(index, NamedIndex):
            print(f'building a Lucene index in {index}', file=sys.stderr)
            return int
        print(
            f"building index '{index.entry.name}' for encoder '{index.encoder}' in {index.folder}",
            file=sys.stderr,
        )
        n_passages = None if self.options.corpus else index.collection.values['passages']
        self.begins('encode', n_passages, 'passages')
        return self.advance


def cut_text(encoder: Any) -> str:
    """', 3 cut to 256 wordpieces' for the texts that an encoder cut; '' for none, or where it
    does not count them.
    """
    n_cut = getattr(getattr(encoder, 'tokenizer', None), 'n_cut', 0)
    return f', {n_cut} cut to {encoder.limit} wordpieces' if n_cut else ''


def skipped_text(n_skipped: int) -> str:
    """', 3 skipped' for the lines or files of a corpus that could not be used; '' for none."""
    return f', {n_skipped} skipped' if n_skipped else ''


def say_unread(unread: UnreadFiles, listed: Iterable[UnreadFile]) -> None:
    """Say on stderr how many files of a corpus were not read; nothing where all were.

    Each of those that are `listed` has a line with its reason.
    """
    if unread:
        print(printable(str(unread)), file=sys.stderr)
    for file in listed:
        print(f'  {printable(str(file.path))}: {printable(file.reason)}', file=sys.stderr)


def say_encodings(encodings: Mapping[Path, str]) -> None:
    """Say on stderr which files were not in UTF-8, and in which encodings they were read."""
    if not encodings:
        return
    files = sorted(encodings.items())
    named = [f'{path} ({encoding})' for path, encoding in files[:_MOST_NAMED]]
    if len(files) > _MOST_NAMED:
        named.append(f'{len(files) - _MOST_NAMED:,} others')
    print(printable(f'not in UTF-8, so read as: {", ".join(named)}'), file=sys.stderr)


def costs_text(costs: Sequence[StageCost]) -> str:
    """The costs as lines of text, one per stage, and a line of sums if there are several stages."""
    lines = [_cost_text(cost) for cost in costs]
    if len(costs) > 1:
        inferences = sum(cost.inferences_per_query for cost in costs)
        seconds = sum(cost.seconds / (cost.queries or 1) for cost in costs)
        lines.append(f'all stages: {inferences:.1f} inferences, {seconds:.3f} s a query')
    return '\n'.join(lines)


def _cost_text(cost: StageCost) -> str:
    """What a stage spent on a query; the precision, and the shares of candidates that it did not
    read in full.
    """
    n_queries = cost.queries or 1
    spent = [f'{cost.inferences_per_query:.1f} inferences']
    if cost.tokens is not None:
        spent.append(f'{cost.tokens / n_queries:.0f} tokens')
    spent.append(f'{cost.seconds / n_queries:.3f} s')
    queries = 'query' if cost.queries == 1 else 'queries'
    parts = [f'{cost.stage}: {", ".join(spent)} a query over {cost.queries} {queries}']
    if cost.precision is not None:
        parts.append(cost.precision)
    if cost.stored:
        parts.append(f'{100 * cost.stored / cost.candidates:.1f}% of candidates by stored vectors')
    if cost.truncated_share is not None:
        among = 'of the others' if cost.stored else 'of candidates'
        parts.append(f'{100 * cost.truncated_share:.1f}% {among} truncated')
    if cost.calls is not None:
        parts.append(f'{cost.calls} answers asked for, {cost.inferences - cost.calls} kept')
        parts.append(f'{cost.repaired} repaired')
    return '; '.join(parts)


def stages_text(times: StageTimes, tokenizers: Sequence[WordPieceTokenizer]) -> str:
    """What each stage took of the time until now, and which the others waited for."""
    total = time.perf_counter() - times.start
    seconds = _seconds_by_stage(times, tokenizers)
    slowest = max(seconds, key=lambda stage: seconds[stage])
    advice = ': more --workers' if slowest == 'tokenising' else ''
    shares = [f'{stage} {seconds[stage] / total:.0%}' for stage in STAGES if seconds.get(stage)]
    return f'{", ".join(shares)} of {total:.1f} s; {slowest} was the slowest{advice}'


def _seconds_by_stage(
    times: StageTimes, tokenizers: Sequence[WordPieceTokenizer]
) -> dict[str, float]:
    """The seconds of each stage; a model that tokenises itself spent them on both."""
    seconds = dict(times.seconds)
    seconds['writing'] = seconds.get('writing', 0.0) - seconds.pop('waiting', 0.0)
    pools = {tokenizer.workers for tokenizer in tokenizers if tokenizer.workers}
    in_process = sum(tokenizer.seconds for tokenizer in tokenizers)
    seconds['tokenising'] = in_process + sum(pool.seconds for pool in pools)
    seconds['computing'] -= in_process
    return seconds
