"""Stand-ins for texts: topics, judgments, passages that match them, and runs of these passages."""

import gzip
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert.data.qrels import read_qrels
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.data.topics import read_topics

FILLERS = [
    f'{first}{second}'
    for first in 'ba de fi go lu ma ne pi ro su ta ve'.split()
    for second in 'ran tel mok'.split()
]
TOPICS = 100
PASSAGES = 1000


@dataclass(frozen=True)
class World:
    """A small collection: topics, judgments, passages by docid."""

    topics: Mapping[str, str]
    qrels: Mapping[str, Mapping[str, int]]
    passages: Mapping[str, str]

    def topics_tsv(self) -> bytes:
        """`qid<TAB>text` lines."""
        return ''.join(f'{qid}\t{text}\n' for qid, text in self.topics.items()).encode()

    def qrels_trec(self) -> bytes:
        """Judgments in TREC's format."""
        lines = [
            f'{qid} 0 {docid} {grade}\n'
            for qid, own in self.qrels.items()
            for docid, grade in own.items()
        ]
        return ''.join(lines).encode()

    def queries_cedr(self) -> bytes:
        """`query<TAB>qid<TAB>text` lines, as CEDR's code reads them."""
        return ''.join(f'query\t{qid}\t{text}\n' for qid, text in self.topics.items()).encode()

    def part(self, qids: Iterable[str]) -> 'World':
        """The same passages with these topics only."""
        topics = {qid: self.topics[qid] for qid in qids}
        qrels = {qid: self.qrels[qid] for qid in topics}
        return World(topics, qrels, self.passages)

    def run_trec(self) -> bytes:
        """A run of a few hits a topic in TREC's format."""
        lines = []
        for qid, docid, rank in self.ranked(1, 6):
            lines.append(b'%s Q0 %s %d %.6f run\n' % (qid, docid, rank, 1 / rank))
        return b''.join(lines)

    def pairs(self) -> bytes:
        """CEDR's `qid docid` lines."""
        return b''.join(b'%s\t%s\n' % (qid, docid) for qid, docid, _ in self.ranked(1, 6))

    def run_msmarco(self, seed: int, depth: int = 20) -> bytes:
        """`qid<TAB>docid<TAB>rank` lines of candidates, the judged ones somewhere among them."""
        return b''.join(b'%s\t%s\t%d\n' % line for line in self.ranked(seed, depth))

    def ranked(self, seed: int, depth: int) -> Iterable[tuple[bytes, bytes, int]]:
        """(qid, docid, rank) in a random order of docids, the judged ones among them."""
        chance = random.Random(seed)
        docids = list(self.passages)
        for qid in self.topics:
            found = dict.fromkeys([*chance.sample(docids, depth - 1), *self.qrels.get(qid, ())])
            order = chance.sample(list(found), len(found))
            for rank, docid in enumerate(order, 1):
                yield qid.encode(), docid.encode(), rank


def made_world(
    topics: Mapping[str, str], qrels: Mapping[str, Mapping[str, int]], docids: Sequence[str]
) -> World:
    """A world whose passages have the words of the topics that they are judged for, of a random
    one, and fillers.
    """
    chance = random.Random(0)
    texts = list(topics.values())
    of: dict[str, list[str]] = {}
    for qid, own in qrels.items():
        for docid in own:
            of.setdefault(docid, []).append(topics[qid])
    passages = {}
    for docid in docids:
        words = ' '.join([*of.get(docid, []), chance.choice(texts)]).split()
        words += chance.choices(FILLERS, k=12)
        chance.shuffle(words)
        passages[docid] = ' '.join(words).capitalize() + ' — é.'
    return World(topics, qrels, passages)


def msmarco(data: Path) -> World:
    """A world of MS MARCO: the first topics of dev.small with their judgments; docids of these
    and of a real run.
    """
    judged = read_qrels(data / 'msmarco' / 'qrels.msmarco-passage.dev-subset.txt.gz')
    topics = {
        query.qid: query.text
        for query in read_topics(data / 'msmarco' / 'topics.msmarco-passage.dev-subset.txt.gz')
    }
    topics = dict(list(topics.items())[:TOPICS])
    qrels = {qid: judged[qid] for qid in topics}
    docids = dict.fromkeys(docid for own in qrels.values() for docid in own)
    for ranking in read_run(data / 'runs' / 'dl19.BM25.run.gz').values():
        docids |= dict.fromkeys(hit.docid for hit in ranking)
    return made_world(topics, qrels, sorted(list(docids)[:PASSAGES], key=int))


def numbered(
    qids: Sequence[str],
    docids: Sequence[str],
    relevant: int = 3,
    texts: Mapping[str, str] | None = None,
) -> World:
    """A world with these qids and docids: made-up topics unless `texts` are given, and
    `relevant` judgments of each.
    """
    chance = random.Random(1)
    topics = texts or {qid: ' '.join(chance.sample(FILLERS, 3)) for qid in qids}
    qrels = {
        qid: {docid: chance.choice((1, 2)) for docid in chance.sample(docids, relevant)}
        for qid in qids
    }
    return made_world(topics, qrels, docids)


def gzipped(content: bytes) -> bytes:
    """The content gzipped, without a time stamp: the same bytes each time."""
    return gzip.compress(content, 1, mtime=0)
