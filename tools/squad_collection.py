"""Make a test collection of questions in the JSON of SQuAD, as MTEB's XQuADRetrieval does.

    python tools/squad_collection.py --squad xquad.en.json.gz --output xquad.en

The documents are the distinct paragraphs. The topics are the distinct questions, without white
space around them, each with the id of its last occurrence. What a question was asked about is
relevant. OUTPUT gets passages.jsonl, questions.tsv and qrels.txt.
"""

import argparse
import gzip
import json
from collections.abc import Sequence
from pathlib import Path


class Collection:
    """Paragraphs, questions and judgments, in the order of the file."""

    def __init__(self) -> None:
        self.docids: dict[str, str] = {}
        self.qids: dict[str, str] = {}
        self.relevant: dict[str, dict[str, None]] = {}

    def add(self, paragraph: str, question: str, qid: str) -> None:
        """Add a question about a paragraph."""
        docid = self.docids.setdefault(paragraph, f'p{len(self.docids) + 1:03d}')
        self.qids[question] = qid
        self.relevant.setdefault(question, {})[docid] = None

    def write(self, folder: Path) -> None:
        """Write the three files."""
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / 'passages.jsonl', 'w', encoding='utf-8') as stream:
            for paragraph, docid in self.docids.items():
                record = {'id': docid, 'contents': paragraph}
                stream.write(json.dumps(record, ensure_ascii=False) + '\n')
        with open(folder / 'questions.tsv', 'w', encoding='utf-8') as stream:
            for question, qid in self.qids.items():
                stream.write(f'{qid}\t{" ".join(question.split())}\n')
        with open(folder / 'qrels.txt', 'w', encoding='utf-8') as stream:
            for question, docids in self.relevant.items():
                for docid in docids:
                    stream.write(f'{self.qids[question]} 0 {docid} 1\n')


def read_collection(path: Path) -> Collection:
    """The collection of a SQuAD file, plain or .gz."""
    opened = gzip.open if path.suffix == '.gz' else open
    with opened(path, 'rt', encoding='utf-8') as stream:
        articles = json.load(stream)['data']
    collection = Collection()
    for article in articles:
        for paragraph in article['paragraphs']:
            for asked in paragraph['qas']:
                collection.add(paragraph['context'].strip(), asked['question'].strip(), asked['id'])
    return collection


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the collection of a file."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--squad', type=Path, required=True, metavar='FILE')
    parser.add_argument('--output', type=Path, required=True, metavar='FOLDER')
    options = parser.parse_args(arguments)
    collection = read_collection(options.squad)
    collection.write(options.output)
    print(
        f'{options.output}: {len(collection.docids)} paragraphs, {len(collection.qids)} questions'
    )


if __name__ == '__main__':
    main()
