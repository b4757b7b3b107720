"""What sparse techniques add to passages: predicted queries (doc2query, docTTTTTquery) and weights.

The weights are DeepCT's. Both kinds of file follow the order of the corpus, line by line; only JSON
lines of weights name their passage.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pyserini_repbert.data.values import (
    HALF_PAIR,
    decimal,
    has_surrogates,
    identifier_of,
    parse_json,
)
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, numbered_lines

WEIGHT_SCALE = 100  # DeepCT: a term's weight y becomes the term frequency round(100 y)
MAX_TERMS = 1_000_000  # in a passage: greater weights are not term frequencies
SAMPLES = 40  # docTTTTTquery appends the first 40 of its 80 sampled queries
_SPECIAL = ('[CLS]', '[SEP]', '[PAD]', '[UNK]')
# A file of docTTTTTquery's archive: the number of the sample, then of the part of the corpus.
_SAMPLE_FILE = re.compile(r'.*sample(\d+)\.txt(\d+)')
# doc2query writes the queries of a passage as 'one / two'.
_SEPARATOR = re.compile(r'\t| / ')


def lines_of(paths: Sequence[Path], what: str) -> Iterator[tuple[str, int, str]]:
    """(file, line number from 1, line) of several files, one after the other."""
    for path in paths:
        for number, line in numbered_lines(path, what):
            yield str(path), number, line


def listed(files: StrPath | Sequence[StrPath]) -> list[Path]:
    """One path or several as a list."""
    if isinstance(files, str) or not isinstance(files, Sequence):
        return [Path(files)]
    return [Path(file) for file in files]


def predicted_queries(
    files: StrPath | Sequence[StrPath], docids: Callable[[], Iterable[str]], topk: int | None = None
) -> Iterator[str]:
    """The queries to append to each passage, joined by spaces, in the order of the corpus.

    A file has one line a passage, or the same number of lines for every passage, which is found by
    counting. A line may hold several queries, separated by tabs or ' / '. A folder is
    docTTTTTquery's unpacked archive, in which each file has one sampled query a passage for one
    part of the corpus.

    Parameters
    ----------
    files : a file, several, or a folder
    docids : gives the corpus's docids, from the start, each time it is called
    topk : how many queries of each passage are used; default: all; of a folder, the first 40
    """
    paths = listed(files)
    if len(paths) == 1 and paths[0].is_dir():
        yield from _sampled_queries(paths[0], topk or SAMPLES, docids)
        return
    per_passage = lines_per_passage(paths, 'predictions', docids)
    lines = lines_of(paths, 'predictions')
    while True:
        queries: list[str] = []
        for _, _, line in islice(lines, per_passage):
            queries += [query.strip() for query in _SEPARATOR.split(line)]
        if not queries:
            return
        yield ' '.join(queries[:topk]).strip()


def lines_per_passage(paths: Sequence[Path], what: str, docids: Callable[[], Iterable[str]]) -> int:
    """The number of lines of each passage, at least 1.

    Raises InputError when it is not an integer.
    """
    n_lines = sum(1 for _ in lines_of(paths, what))
    n_passages = sum(1 for _ in docids())
    if not n_lines or not n_passages or n_lines % n_passages:
        raise InputError(
            f'the {what} in {paths[-1]} have {n_lines} lines for {n_passages} passages, expected '
            'as many or a multiple of that: give the file that was made from this corpus'
        )
    return n_lines // n_passages


def _sampled_queries(folder: Path, topk: int, docids: Callable[[], Iterable[str]]) -> Iterator[str]:
    """The first `topk` samples of every passage, read side by side."""
    parts = _sample_files(folder, topk)
    first_files = [files[0] for files in parts]
    if lines_per_passage(first_files, 'predictions', docids) != 1:
        raise InputError(
            f'the samples in {folder} have more lines than the corpus has passages: give the right '
            'corpus'
        )
    for files in parts:
        streams = [numbered_lines(file, 'predictions') for file in files]
        try:
            for numbered in zip(*streams, strict=True):
                yield ' '.join(line.strip() for _, line in numbered)
        except ValueError as error:
            wrong = f'the samples beside {files[0]} differ in their number of lines'
            raise InputError(f'{wrong}: unpack the archive again') from error


def _sample_files(folder: Path, topk: int) -> list[list[Path]]:
    """For each part of the corpus, the files of its first `topk` samples.

    Files are named '…sample007.txt012…': sample 007 of part 012.
    """
    parts: dict[str, dict[str, Path]] = {}
    samples: set[str] = set()
    for path in sorted(folder.iterdir()):
        match = _SAMPLE_FILE.match(path.name)
        if match:
            sample, part = match.groups()
            samples.add(sample)
            parts.setdefault(part, {})[sample] = path
    if not parts:
        problem = "has no files named '…sample000.txt000…'"
        raise InputError(f"folder {folder} {problem}: give docTTTTTquery's folder, or a file")
    used = sorted(samples)[:topk]
    files = []
    for part, file_of in sorted(parts.items()):
        for sample in used:
            if sample not in file_of:
                raise InputError(
                    f'folder {folder} lacks sample {sample} of part {part}: unpack the archive '
                    'again'
                )
        files.append([file_of[sample] for sample in used])
    return files


def weighted_texts(
    files: StrPath | Sequence[StrPath], docids: Callable[[], Iterable[str]], sqrt: bool = False
) -> Iterator[str]:
    """Each passage as its terms repeated by their weight, in the order of the corpus.

    A line that starts with '{' is JSON: `id`, and `contents` (terms repeated already) or `weights`
    (a weight for each term). Any other is of DeepCT's test_results.tsv: tab-separated 'wordpiece
    weight' pairs. A weight y becomes the term frequency round(100 y), with `sqrt` round(100
    sqrt(y)).
    """
    paths = listed(files)
    if lines_per_passage(paths, 'weights', docids) != 1:
        raise InputError(
            f'{paths[0]} has more lines of weights than the corpus has passages: give the right '
            'corpus'
        )
    for (path, number, line), docid in zip(lines_of(paths, 'weights'), docids(), strict=True):
        try:
            if line.lstrip().startswith('{'):
                yield _from_json(line, docid, sqrt)
            else:
                yield repeated(word_weights(line), sqrt)
        except ValueError as error:
            message = f"expected 'token weight' pairs or JSON ({error}): {line[:60]!r}"
            raise InputError.at(path, number, message) from error


def _from_json(line: str, docid: str, sqrt: bool) -> str:
    record = parse_json(line)
    if not isinstance(record, dict):
        raise ValueError('no JSON object')
    named_id = identifier_of(record, ('id',))
    if named_id != docid:
        raise ValueError(f"id '{named_id[:60]}', but the corpus has '{docid}' here")
    weights = record.get('weights')
    contents = record.get('contents')
    if isinstance(weights, dict) and all(map(_is_weight, weights.values())):
        contents = repeated(weights, sqrt)
    elif weights is not None or not isinstance(contents, str):
        raise ValueError("no 'weights', a number for each term, and no 'contents', a text")
    if has_surrogates(contents):
        raise ValueError(HALF_PAIR)
    return contents


def _is_weight(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < MAX_TERMS


def word_weights(line: str) -> dict[str, float]:
    """Words and weights of one line of test_results.tsv, in the order of their first occurrence.

    Wordpieces are joined; a word weighs what its first piece weighs, and a word that occurs again
    what its heaviest occurrence weighs, as in DeepCT's released script. Special tokens are left
    out.
    """
    words: list[tuple[str, float]] = []
    for pair in line.split('\t'):
        if not pair.strip():
            continue
        token, weight = pair.split()
        value = decimal(weight)
        if token.startswith('##') and words:
            word, first_value = words[-1]
            words[-1] = (word + token[2:], first_value)
        else:
            words.append((token, value))
    weights: dict[str, float] = {}
    for word, value in words:
        if word not in _SPECIAL:
            weights[word] = max(value, weights.get(word, value))
    return weights


def repeated(weights: dict[str, float], sqrt: bool = False) -> str:
    """Each word repeated by its term frequency, round(100 y) or round(100 sqrt(y)).

    A word is left out where this is below 1 unrounded. DeepCT's paper rounds every weight. Its
    released script, which made the published index, drops weights below 1.
    """
    text: list[str] = []
    for word, weight in weights.items():
        root = math.sqrt(weight) if sqrt and weight > 0 else weight
        scaled = WEIGHT_SCALE * root
        if scaled > MAX_TERMS - len(text):
            raise ValueError(
                f"the weight {weight:g} of '{word[:60]}' makes a passage of more than {MAX_TERMS} "
                'terms'
            )
        if scaled >= 1:
            text.extend([word] * round(scaled))
    return ' '.join(text)
