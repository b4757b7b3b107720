"""Which questions are off topic for test collections, by their vectors alone.

    python regressions/studies/off_topic.py NAME=COLLECTION,TOPICS … --anything TOPICS [--most 100]

The collections have one encoder. Of each, a row has the share of questions that are flagged: of its
own, which should be none; of each other collection; about anything; and of random letters. A
collection of an earlier release gets its threshold first. `off_topic_folders.py` also counts words
and languages, as a search does.
"""

from __future__ import annotations

import argparse
import random
import string
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection import Collection
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.extensions.off_topic.kept import Threshold, read_threshold
from pyserini_repbert.extensions.off_topic.updating import keep_threshold
from pyserini_repbert.names.topics import load_topics

N_GIBBERISH = 100


@dataclass(frozen=True)
class Asked:
    """A collection and its own questions.

    Attributes
    ----------
    passages : the vectors of its live passages, float32 (n, d)
    questions : of its own questions, float32 (m, d)
    threshold : of its generation
    """

    passages: NDArray[np.float32]
    questions: NDArray[np.float32]
    threshold: Threshold

    def flagged(self, questions: NDArray[np.float32]) -> float:
        """The share of questions that are not about the collection; float32 (m, d)."""
        best = (questions @ self.passages.T).max(axis=1)
        above = best - questions @ self.threshold.background
        return float(np.mean(above < self.threshold.value))


@dataclass(frozen=True)
class Encoded:
    """What all collections are asked.

    Attributes
    ----------
    collections : by name
    anything : vectors of questions about anything, float32 (n, d)
    gibberish : of random letters, float32 (n, d)
    """

    collections: dict[str, Asked]
    anything: NDArray[np.float32]
    gibberish: NDArray[np.float32]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('collections', nargs='+', metavar='NAME=COLLECTION,TOPICS')
    parser.add_argument('--anything', required=True, help='topics about anything')
    parser.add_argument('--most', type=int, default=100, help='questions of each kind')
    options = parser.parse_args()
    encoded = encode(options)
    rows = []
    for name, asked in encoded.collections.items():
        others = {}
        for other, of_other in encoded.collections.items():
            if other != name:
                others[other] = asked.flagged(of_other.questions)
        nearest = min(others, key=lambda other: others[other])
        rows.append(
            [
                name,
                str(len(asked.questions)),
                shown(asked.flagged(asked.questions)),
                shown(asked.flagged(encoded.anything)),
                shown(asked.flagged(encoded.gibberish)),
                shown(float(np.median(list(others.values())))),
                f'{shown(others[nearest])} ({nearest})',
            ]
        )
    heads = ('own', 'about anything', 'random letters', 'of others, median', 'of others, least')
    print(markdown(['', 'questions', *heads], rows))


def encode(options: argparse.Namespace) -> Encoded:
    """Encode all questions, and read all vectors."""
    collections: dict[str, Asked] = {}
    anything = None
    for named in options.collections:
        name, _, files = named.partition('=')
        folder, topics = files.split(',')
        with Collection.open(folder) as collection:
            generation = collection.generation
            if read_threshold(collection.folder, generation.sha256) is None:
                keep_threshold(collection)
            threshold = read_threshold(collection.folder, generation.sha256)
            assert threshold is not None, f'{name} has too few passages'
            with closing(collection.searcher(rankings=['dense'])) as searcher:
                dense = searcher.dense
                questions = dense.encode(texts_of(topics, options.most))
                passages = dense.vectors.gather(np.flatnonzero(dense.vectors.live))
                collections[name] = Asked(passages, questions, threshold)
                if anything is None:
                    anything = dense.encode(texts_of(options.anything, options.most))
                    gibberish = dense.encode(random_letters())
    assert anything is not None
    return Encoded(collections, anything, gibberish)


def texts_of(topics: str, most: int) -> list[str]:
    """The questions of topics, so many of them, at equal distances."""
    texts = [topic.text for topic in load_topics(topics)]
    return texts[:: max(1, len(texts) // most)][:most]


def random_letters() -> list[str]:
    """Questions of one to five words of three to nine random letters."""
    generator = random.Random(5)
    questions = []
    for _ in range(N_GIBBERISH):
        words = []
        for _ in range(generator.randint(1, 5)):
            letters = generator.choices(string.ascii_lowercase, k=generator.randint(3, 9))
            words.append(''.join(letters))
        questions.append(' '.join(words))
    return questions


def shown(share: float) -> str:
    """'.07', '1.00'."""
    return f'{share:.2f}'.removeprefix('0')


if __name__ == '__main__':
    main()
