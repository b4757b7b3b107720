"""What chosen conditions would take: downloads, disk, memory and hours, each shared step once.

Hours of models follow from the rate, measured on this machine, at which BERT-Base encodes passages; models of other
sizes and inputs of other lengths count by their weights and tokens. Lucene's hours follow from the rates below.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.regression.fetching.needs import Need, Pair, cheapest_first
from pyserini_repbert.regression.workspace import Workspace

# `index lucene` of 1% of MS MARCO's passages (benchmarks/real_size_memory.py makes them): 17.3 s of CPU, 68.2 MB
LUCENE_RATE = 5_000  # passages a second that one core indexes
LUCENE_BYTES = 770  # of index a passage, with texts and term vectors stored
SEARCH_RATE = 20  # topics a second over millions of passages: an assumption, not measured at that size
RUN_BYTES = 45  # of a line of a TREC run before it is compressed to a quarter
TEXT_BYTES = 620  # of memory a passage whose text is held (benchmarks/real_size_memory.py)
LINE_BYTES = 80  # of memory a line of a run that is read (benchmarks/real_size_memory.py)
_PASSAGE, _PAIR, _TRIPLE, _DOCUMENT = 77, 90, 150, 800  # tokens of a model's inputs
_NAMED_DEPTHS = {'robust04': 150, 'webtrack': 100}
_LARGE = re.compile(r'monobert|duobert|bert-large', re.IGNORECASE)
_RERANKER = re.compile(r'(.+)@([a-z0-9]+)(?::[a-z]+)?')


@dataclass(frozen=True)
class Scale:
    """The real size of a collection: number of passages, of topics, and of candidates of a topic."""

    passages: int
    topics: int
    depth: int = 1000


SCALES = {  # by the beginning of a regression's name; ClueWeb09 B and ClueWeb12 B13: about 51 million pages each
    'msmarco-v1-passage': Scale(8_841_823, 6_980),
    'trec-car': Scale(29_794_697, 2_254),
    'robust04': Scale(528_155, 250),
    'webtrack': Scale(102_000_000, 150),
}


@dataclass(frozen=True)
class Step:
    """A build or a condition's own commands.

    Attributes
    ----------
    hours : of a model, or of Lucene on one core
    disk : bytes written
    memory : bytes, of the largest command
    """

    name: str
    hours: float
    disk: int
    memory: int


@dataclass(frozen=True)
class Plan:
    """Conditions, the cheapest first, the resources that they lack, and their steps, each shared one once."""

    conditions: Sequence[str]
    needs: Sequence[Need]
    steps: Sequence[Step]


def plan(work: Sequence[Pair], rate: float) -> Plan:
    """The plan for these conditions.

    Parameters
    ----------
    rate : passages a second that BERT-Base encodes here
    """
    ordered = cheapest_first(work)
    steps: dict[str, Step] = {}
    for (condition, workspace), _ in ordered:
        scale = next((own for start, own in SCALES.items() if workspace.regression.name.startswith(start)), None)
        if scale is None:
            continue
        for build in workspace.builds(condition.needs):
            place = workspace.places[build.name]
            if place not in steps:
                steps[place] = _step(build.name, build.commands, workspace, scale, rate)
        own = _step(f'{workspace.regression.name} {condition.name}', condition.commands, workspace, scale, rate)
        steps[own.name] = own
    names = [f'{workspace.regression.name} {condition.name}' for (condition, workspace), _ in ordered]
    needs = [need for _, new in ordered for need in new]
    return Plan(names, needs, [step for step in steps.values() if step.hours or step.disk])


def _step(name: str, commands: Sequence[str], workspace: Workspace, scale: Scale, rate: float) -> Step:
    hours, disk, memory = 0.0, 0, 0
    for command in commands:
        found = _command(workspace.words(command), scale, rate)
        hours, disk, memory = hours + found[0], disk + found[1], max(memory, found[2])
    return Step(name, hours, disk, memory)


def _command(words: Sequence[str], scale: Scale, rate: float) -> tuple[float, int, int]:
    """(hours, bytes of disk, bytes of memory) of a command."""
    module, lines = words[2].rpartition('.')[2], scale.topics * scale.depth
    run = round(lines * RUN_BYTES / 4)
    if module == 'index':
        return scale.passages / LUCENE_RATE / 3600, scale.passages * LUCENE_BYTES, 4 * 10**9
    if module == 'encode':
        bytes_of_vector = BertConfig().hidden_size * (2 if 'float16' in words else 4)
        return scale.passages / rate / 3600, scale.passages * bytes_of_vector, 3 * 10**9
    if module == 'search':
        return scale.topics / SEARCH_RATE / 3600, run, 4 * 10**9
    if module == 'rerank':
        stages = [found for word in words if (found := _RERANKER.fullmatch(word)) and not word.startswith('-')]
        hours = sum(_reranking(found[1], found[2], scale, rate) for found in stages)
        return hours, run, lines * LINE_BYTES + min(lines, scale.passages) * TEXT_BYTES
    if module == 'evaluate' and 'epic-pruning' in words:
        depth = int(words[words.index('--hits') + 1])
        return scale.topics * depth / rate / 3600, scale.topics * depth * 2 * 1000, 3 * 10**9
    return 0.0, run if module == 'fusion' else 0, lines * LINE_BYTES


def _reranking(name: str, depth: str, scale: Scale, rate: float) -> float:
    """Hours of a reranking stage."""
    candidates = _NAMED_DEPTHS.get(depth) or int(depth)
    if 'cedr' in name:
        return scale.topics * candidates * _cost(_DOCUMENT, False) / rate / 3600
    is_duo = 'duobert' in name
    pairs = candidates * (candidates - 1) if is_duo else candidates
    return scale.topics * pairs * _cost(_TRIPLE if is_duo else _PAIR, bool(_LARGE.search(name))) / rate / 3600


def _cost(tokens: int, is_large: bool) -> float:
    """The cost of an input of so many tokens, in passages that BERT-Base encodes."""
    large = 24 * 1024**2 / (12 * 768**2) if is_large else 1.0  # ratio of the layers' weights
    return tokens / _PASSAGE * large
