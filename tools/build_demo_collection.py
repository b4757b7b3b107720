"""Build the demo collection in pyserini_repbert/resources/demo from QED (dev) and XQuAD (English).

    python tools/build_demo_collection.py --qed qed-dev.jsonlines.gz --xquad xquad.en.json.gz

Each question of QED or XQuAD is a topic whose relevant passage is the Wikipedia paragraph that
answers it. QED's questions are split by a seed into training and test topics so that no paragraph
serves both.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pyserini_repbert.files import atomic_file

SEED = 20200620
N_TEST = 500
OUTPUT = Path(__file__).resolve().parent.parent / 'pyserini_repbert' / 'resources' / 'demo'


class Topic(NamedTuple):
    """A question with the docid of the passage that answers it."""

    qid: str
    text: str
    docid: str


def read_qed(path: str) -> list[dict[str, str]]:
    """Question, paragraph, title and address of each example, in the file's order."""
    records = []
    with gzip.open(path, 'rt', encoding='utf-8') as stream:
        for line in stream:
            example = json.loads(line)
            records.append(
                {
                    'question': example['question_text'],
                    'contents': example['paragraph_text'],
                    'title': example['title_text'],
                    'url': example['url'].replace('&amp;', '&'),
                }
            )
    return records


def read_xquad(path: str) -> list[dict[str, str]]:
    """Question, paragraph and title of each question, in the file's order."""
    with gzip.open(path, 'rt', encoding='utf-8') as stream:
        articles = json.load(stream)['data']
    records = []
    for article in articles:
        title = article.get('title', '')
        for paragraph in article['paragraphs']:
            for asked in paragraph['qas']:
                contents = paragraph['context']
                record = {'question': asked['question'], 'contents': contents, 'title': title}
                records.append(record)
    return records


def numbered_passages(examples: list[dict[str, str]], prefix: str) -> dict[str, dict[str, str]]:
    """Distinct paragraphs, numbered in order of appearance: paragraph text -> its record."""
    passages: dict[str, dict[str, str]] = {}
    for example in examples:
        text = example['contents']
        if text not in passages:
            record = {key: value for key, value in example.items() if key != 'question' and value}
            passages[text] = {'id': f'{prefix}{len(passages) + 1:04d}', **record}
    return passages


def make_topics(
    examples: list[dict[str, str]], passages: dict[str, dict[str, str]], prefix: str
) -> list[Topic]:
    """A topic for each example, numbered in their order."""
    topics = []
    for number, example in enumerate(examples, 1):
        text = ' '.join(example['question'].split())
        topics.append(Topic(f'{prefix}{number:04d}', text, passages[example['contents']]['id']))
    return topics


def choose_test(topics: Iterable[Topic], n_test: int, seed: int) -> set[str]:
    """The qids of at most `n_test` test topics; topics that share a passage stay together."""
    by_passage: dict[str, list[str]] = {}
    for topic in topics:
        by_passage.setdefault(topic.docid, []).append(topic.qid)
    docids = sorted(by_passage)
    random.Random(seed).shuffle(docids)
    test: set[str] = set()
    for docid in docids:
        if len(test) + len(by_passage[docid]) <= n_test:
            test.update(by_passage[docid])
    return test


def write_topics(name: str, topics: Sequence[Topic]) -> None:
    """Write topics and their judgments."""
    with atomic_file(OUTPUT / f'topics.{name}.tsv.gz') as stream:
        stream.writelines(f'{topic.qid}\t{topic.text}\n' for topic in topics)
    with atomic_file(OUTPUT / f'qrels.{name}.txt.gz') as stream:
        stream.writelines(f'{topic.qid} 0 {topic.docid} 1\n' for topic in topics)


def main() -> None:
    """Read both sources, write passages, topics and judgments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument('--qed', required=True, help='qed-dev.jsonlines.gz')
    parser.add_argument('--xquad', required=True, help='xquad.en.json.gz')
    options = parser.parse_args()
    qed = read_qed(options.qed)
    xquad = read_xquad(options.xquad)
    passages = numbered_passages(qed, 'qed-') | numbered_passages(xquad, 'xquad-')
    with atomic_file(OUTPUT / 'corpus.jsonl.gz') as stream:
        for record in passages.values():
            stream.write(json.dumps(record, ensure_ascii=False) + '\n')
    natural = make_topics(qed, passages, 'q')
    test = choose_test(natural, N_TEST, SEED)
    topics = {
        'train': [topic for topic in natural if topic.qid not in test],
        'test': [topic for topic in natural if topic.qid in test],
        'xquad': make_topics(xquad, passages, 'x'),
    }
    for name, chosen in topics.items():
        write_topics(name, chosen)
    counts = {name: len(chosen) for name, chosen in topics.items()}
    print(f'{len(passages)} passages; topics: {counts}')


if __name__ == '__main__':
    main()
