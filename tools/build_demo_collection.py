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
from collections.abc import Iterable
from pathlib import Path

from pyserini_repbert.files import atomic_file

SEED = 20200620
N_TEST = 500
OUTPUT = Path(__file__).resolve().parent.parent / 'pyserini_repbert' / 'resources' / 'demo'


def read_qed(path: str) -> list[dict[str, str]]:
    """Question, paragraph, title and address of each example, in the file's order."""
    with gzip.open(path, 'rt', encoding='utf-8') as stream:
        examples = [json.loads(line) for line in stream]
    return [
        {
            'question': example['question_text'],
            'contents': example['paragraph_text'],
            'title': example['title_text'],
            'url': example['url'].replace('&amp;', '&'),
        }
        for example in examples
    ]


def read_xquad(path: str) -> list[dict[str, str]]:
    """Question, paragraph and title of each question, in the file's order."""
    with gzip.open(path, 'rt', encoding='utf-8') as stream:
        articles = json.load(stream)['data']
    return [
        {
            'question': question['question'],
            'contents': paragraph['context'],
            'title': article.get('title', ''),
        }
        for article in articles
        for paragraph in article['paragraphs']
        for question in paragraph['qas']
    ]


def numbered_passages(examples: list[dict[str, str]], prefix: str) -> dict[str, dict[str, str]]:
    """Distinct paragraphs, numbered in order of appearance: paragraph text -> its record."""
    passages: dict[str, dict[str, str]] = {}
    for example in examples:
        record = {key: value for key, value in example.items() if key != 'question' and value}
        passages.setdefault(
            example['contents'], {'id': f'{prefix}{len(passages) + 1:04d}', **record}
        )
    return passages


def split(topics: list[tuple[str, str, str]], n_test: int, seed: int) -> tuple[set[str], set[str]]:
    """The qids of training topics, and of at most `n_test` test topics; topics that share a passage
    stay together.

    Parameters
    ----------
    topics : (qid, text, docid of the relevant passage)
    """
    by_passage: dict[str, list[str]] = {}
    for qid, _, docid in topics:
        by_passage.setdefault(docid, []).append(qid)
    docids = sorted(by_passage)
    random.Random(seed).shuffle(docids)
    test: set[str] = set()
    for docid in docids:
        if len(test) + len(by_passage[docid]) <= n_test:
            test.update(by_passage[docid])
    return {qid for qid, _, _ in topics} - test, test


def write_topics(name: str, topics: Iterable[tuple[str, str, str]]) -> int:
    """Write topics, (qid, text, docid) each, and their judgments; the number of topics."""
    chosen = list(topics)
    with atomic_file(OUTPUT / f'topics.{name}.tsv.gz') as stream:
        stream.writelines(f'{qid}\t{text}\n' for qid, text, _ in chosen)
    with atomic_file(OUTPUT / f'qrels.{name}.txt.gz') as stream:
        stream.writelines(f'{qid} 0 {docid} 1\n' for qid, _, docid in chosen)
    return len(chosen)


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
        stream.writelines(
            json.dumps(record, ensure_ascii=False) + '\n' for record in passages.values()
        )
    natural = [
        (
            f'q{number:04d}',
            ' '.join(example['question'].split()),
            passages[example['contents']]['id'],
        )
        for number, example in enumerate(qed, 1)
    ]
    asked = [
        (
            f'x{number:04d}',
            ' '.join(example['question'].split()),
            passages[example['contents']]['id'],
        )
        for number, example in enumerate(xquad, 1)
    ]
    train, test = split(natural, N_TEST, SEED)
    counts = {
        'train': write_topics('train', (topic for topic in natural if topic[0] in train)),
        'test': write_topics('test', (topic for topic in natural if topic[0] in test)),
        'xquad': write_topics('xquad', asked),
    }
    print(f'{len(passages)} passages; topics: {counts}')


if __name__ == '__main__':
    main()
