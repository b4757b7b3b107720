"""When is what a collection learned better? The table of `docs/guides/adapting.md`.

    python regressions/studies/learning_rule.py NAME=COLLECTION,TOPICS,QRELS … [--halves 6]
      [--shuffled 100] [--most 200] [--kept FILE.jsonl]

A half of a collection's judged topics teaches `adapt`, and the other half is searched; seeds draw
the halves. A row is a collection: nDCG@10 of the search as it is now on the other half, and the
mean gain over halves of what is used by each rule. Where a rule uses nothing, the gain is 0.

- always: whatever is offered
- noise: a paired t-test finds it better with p < .05
- likely: or a bootstrap finds it better with a probability of .8 and an expected loss below .005,
  and the judgments agree with the search (`Estimate.is_worth_using`)

`--shuffled` adds as many halves whose judgments are shuffled among their topics, the collections
in turn. What is used there is harmful if the other half is worse, by a paired t-test with p < .05.
`--kept` keeps what was learned: said again, the command learns nothing twice.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from pyserini_repbert.adapt.adaptation import Estimate
from pyserini_repbert.adapt.judged_topics import DEPTH
from pyserini_repbert.adapt.learning import adapt
from pyserini_repbert.adapt.offering import (
    collection_rankings,
    learned_parts,
    offered_search,
    search_as_now,
)
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.measures import by_rank, evaluate, parse_measures
from pyserini_repbert.evaluate.significance import paired_t_test
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.extensions.confidence.learning import relevant_docids
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.pipeline.opening import open_resolved
from pyserini_repbert.pipeline.resolving import NO_ADAPTATION, resolve
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Query, Ranker
from pyserini_repbert.search.adapted_folder import write_adapted

MEASURE = 'nDCG@10'
HITS = 10
LEVEL = 0.05
RULES = ('always', 'noise', 'likely')
SHUFFLED = 'shuffled'


@dataclass(frozen=True)
class Half:
    """What one half of a collection's topics teaches, and gives on the other half.

    Attributes
    ----------
    estimate : of the gain, by the half that taught
    before, after : nDCG@10 of the topics of the other half
    """

    estimate: Estimate
    before: list[float]
    after: list[float]

    def is_used(self, rule: str) -> bool:
        """Whether a rule uses what was learned."""
        if rule == 'noise':
            return self.estimate.is_convincing
        return rule == 'always' or self.estimate.is_worth_using

    @property
    def gain(self) -> float:
        """The mean gain on the other half of what was learned."""
        return fmean(self.after) - fmean(self.before)

    @property
    def is_harmful(self) -> bool:
        """Whether the other half is worse, and by more than noise."""
        return self.gain < 0 and paired_t_test(self.after, self.before).p < LEVEL


class Learner:
    """Learns from halves of a collection's topics, and searches for the others.

    Parameters
    ----------
    folder : of the collection
    topics, qrels : those judged
    most : topics that are drawn, if there are more
    """

    def __init__(self, folder: str, topics: Sequence[Query], qrels: Qrels, most: int) -> None:
        self._folder = folder
        self._qrels = qrels
        judged = [topic for topic in topics if relevant_docids(qrels.get(topic.qid, {}))]
        self._topics = random.Random(0).sample(judged, min(most, len(judged)))
        self._machine = Machine(devices=('cpu',))
        spec = PipelineSpec.of({'index': folder, 'adapted': NO_ADAPTATION})
        self._resolved = resolve(spec, self._machine)
        self._first: Any = open_resolved(self._resolved, self._machine).pipeline.first

    def learn(self, seed: int, *, is_shuffled: bool) -> Half:
        """Learn from the half that a seed draws.

        Parameters
        ----------
        seed : of the half, of the folds, and of shuffling
        is_shuffled : whether the judgments are those of other topics
        """
        draw = random.Random(seed)
        shuffled = draw.sample(self._topics, len(self._topics))
        middle = len(shuffled) // 2
        taught = shuffled[:middle]
        others = shuffled[middle:]
        qrels = {topic.qid: self._qrels[topic.qid] for topic in taught}
        if is_shuffled:
            grades = draw.sample(list(qrels.values()), len(qrels))
            qrels = dict(zip(qrels, grades, strict=True))
        now = search_as_now(None, self._first, self._machine)
        dense: Any
        dense, *sparse = learned_parts(self._first)
        learnt = adapt(dense, sparse, taught, qrels, seed, now=now)
        estimate = learnt.estimate()
        offered = offered_search(learnt, [dense.name, *(ranker.name for ranker in sparse)])
        names = [dense.name, *(ranker.name for ranker in sparse)]
        settings = self._first.generation.settings
        with tempfile.TemporaryDirectory() as work:
            folder = Path(work) / 'adapted'
            write_adapted(
                folder,
                offered.query_map,
                index=self._folder,
                encoder=settings.encoder,
                encoder_weights=settings.weights_sha256,
                sparse=(),
                rankings=collection_rankings(offered, names),
                depth=DEPTH,
                estimate={},
                **offered.fusion,
            )
            index: Any = self._resolved.index
            after = self._values(index.as_learned(str(folder), self._machine), others)
        return Half(estimate, self._values(now, others), after)

    def _values(self, ranker: Ranker, topics: Sequence[Query]) -> list[float]:
        """nDCG@10 of each topic."""
        run = ranker.rank(topics, None, HITS)
        judged = {topic.qid: self._qrels[topic.qid] for topic in topics}
        evaluation = evaluate(by_rank(run), judged, parse_measures([MEASURE]))
        return [evaluation.values[MEASURE][topic.qid] for topic in topics]


class KeptHalves:
    """The halves that were learned already, in a file of JSON lines; None: none are kept."""

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else Path(path)
        self._halves: dict[str, Half] = {}
        if self._path is not None and self._path.is_file():
            for line in self._path.read_text().splitlines():
                values = json.loads(line)
                estimate = Estimate(**values['estimate'])
                half = Half(estimate, values['before'], values['after'])
                self._halves[values['key']] = half

    def get(self, key: str) -> Half | None:
        """The half of this key; None if it was not learned."""
        return self._halves.get(key)

    def keep(self, key: str, half: Half) -> None:
        """Write a half to the file."""
        self._halves[key] = half
        if self._path is not None:
            with self._path.open('a') as file:
                file.write(json.dumps({'key': key, **asdict(half)}) + '\n')


def learn_halves(
    learner: Learner, name: str, *, seeds: Sequence[int], is_shuffled: bool, kept: KeptHalves
) -> Iterator[Half]:
    """The halves of these seeds."""
    for seed in seeds:
        key = f'{name} {seed} {SHUFFLED if is_shuffled else ""}'
        half = kept.get(key)
        if half is None:
            half = learner.learn(seed, is_shuffled=is_shuffled)
            kept.keep(key, half)
        yield half


def row_of(name: str, halves: Sequence[Half]) -> list[str]:
    """A collection's row: the topics, the search as it is now, and each rule."""
    now = fmean(fmean(half.before) for half in halves)
    cells = []
    for rule in RULES:
        gains = [half.gain if half.is_used(rule) else 0.0 for half in halves]
        used = sum(half.is_used(rule) for half in halves)
        cells.append(f'{fmean(gains):+.3f} ({used} of {len(halves)}, worst {min(gains):+.3f})')
    return [name, str(len(halves[0].before)), f'{now:.3f}', *cells]


def means_row(rows: Sequence[Sequence[str]]) -> list[str]:
    """The mean gain of each rule over the collections."""
    means = []
    for column in range(3, 3 + len(RULES)):
        means.append(f'{fmean(float(row[column].split()[0]) for row in rows):+.3f}')
    return ['mean', '', '', *means]


def main() -> None:
    """Print the table, and what shuffled judgments did."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('collections', nargs='+', metavar='NAME=COLLECTION,TOPICS,QRELS')
    parser.add_argument('--halves', type=int, default=6, help='of each collection')
    parser.add_argument('--shuffled', type=int, default=0, help='halves of shuffled judgments')
    parser.add_argument('--most', type=int, default=200, help='questions of a collection')
    parser.add_argument('--kept', help='a file that keeps what was learned')
    options = parser.parse_args()
    kept = KeptHalves(options.kept)
    rows = []
    shuffled: list[Half] = []
    for number, argument in enumerate(options.collections):
        name, _, files = argument.partition('=')
        folder, topics, qrels = files.split(',')
        learner = Learner(folder, load_topics(topics), load_qrels(qrels), options.most)
        seeds = range(options.halves)
        halves = list(learn_halves(learner, name, seeds=seeds, is_shuffled=False, kept=kept))
        rows.append(row_of(name, halves))
        print(' | '.join(rows[-1]), flush=True)
        own = range(number, options.shuffled, len(options.collections))
        shuffled += learn_halves(learner, name, seeds=own, is_shuffled=True, kept=kept)
    rows.append(means_row(rows))
    header = ['', 'searched', 'now', *RULES]
    print(markdown(header, rows, is_padded=False))
    for rule in RULES:
        used = [half for half in shuffled if half.is_used(rule)]
        harmful = sum(half.is_harmful for half in used)
        print(f'shuffled, {rule}: {len(used)} of {len(shuffled)} used, {harmful} harmful')


if __name__ == '__main__':
    main()
