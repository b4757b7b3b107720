"""Which questions of persons' folders are flagged as off topic: `docs/guides/confidence.md`.

    python regressions/studies/off_topic_folders.py regressions/studies/folders --work FOLDER
      [--encoders e5-small minilm] [--anything TOPICS]

The folders of `small_folders.py` are one folder, `mixed`; `english` has its English files alone.
Of each, a row has the share of questions that are flagged: of its own, which should be none; of
these, translated to a language that the answering file is not in (`translated.tsv`); of questions
that none of the files answers (`anything.tsv`); and of other topics.
"""

from __future__ import annotations

import argparse
import csv
import shutil
from contextlib import closing
from pathlib import Path

from small_folders import read_folder

from pyserini_repbert.collection import Collection
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.lucene.guessing import guess_language
from pyserini_repbert.names.topics import load_topics

KINDS = ('own', 'translated', 'anything', 'other topics')


def write_folders(sources: Path, work: Path) -> dict[str, dict[str, list[str]]]:
    """Write both folders, unless they are there; the questions of each, by `KINDS`."""
    mixed = work / 'mixed'
    english = work / 'english'
    own = []
    for source in sorted(sources.glob('*.txt')):
        for question, answer in read_folder(source, mixed / source.stem):
            own.append((question, f'{source.stem}/{answer}'))
    for path in sorted(mixed.rglob('*')):
        if path.is_file() and guess_language([path.read_text('utf-8')]) == 'en':
            target = english / path.relative_to(mixed)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    translated = []
    for name, _, question, answer in read_rows(sources / 'translated.tsv'):
        translated.append((question, f'{name}/{answer}'))
    anything = [question for _, question in read_rows(sources / 'anything.tsv')]
    questions = {}
    for folder in (mixed, english):
        questions[folder.name] = {
            'own': answered_in(folder, own),
            'translated': answered_in(folder, translated),
            'anything': anything,
        }
    return questions


def read_rows(path: Path) -> list[list[str]]:
    """The rows of a file with tabs."""
    with path.open(encoding='utf-8', newline='') as stream:
        return list(csv.reader(stream, delimiter='\t', quoting=csv.QUOTE_NONE))


def answered_in(folder: Path, asked: list[tuple[str, str]]) -> list[str]:
    """The questions that a file of a folder answers: its name begins with the answer's."""
    files = [str(path.relative_to(folder)) for path in folder.rglob('*')]
    return [
        question for question, answer in asked if any(name.startswith(answer) for name in files)
    ]


def flagged(collection: Collection, questions: list[str]) -> str:
    """'.02 (3 of 150)': the share that is flagged."""
    with closing(collection.searcher(rankings=['dense'])) as searcher:
        searcher.dense.encode(questions)
    n_flagged = 0
    for question in questions:
        if collection.search(question).off_topic:
            print('  flagged:', question, flush=True)
            n_flagged += 1
    share = f'{n_flagged / len(questions):.2f}'.removeprefix('0')
    return f'{share} ({n_flagged} of {len(questions)})'


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('sources', type=Path, help='folder of *.txt, translated.tsv, anything.tsv')
    parser.add_argument('--work', type=Path, required=True)
    parser.add_argument('--encoders', nargs='+', default=['e5-small', 'minilm'])
    parser.add_argument('--anything', help='other topics that the folders are not about')
    options = parser.parse_args()
    questions = write_folders(options.sources, options.work)
    if options.anything:
        others = [topic.text for topic in load_topics(options.anything)]
        for of_folder in questions.values():
            of_folder['other topics'] = others
    rows = []
    for folder, of_folder in questions.items():
        for encoder in options.encoders:
            index = options.work / f'{folder}-{encoder}'
            is_new = not index.exists()
            with Collection.open(index, encoder=encoder) as collection:
                if is_new:
                    collection.sync(options.work / folder)
                row = [f'{folder}, {encoder}']
                for kind in KINDS:
                    row.append(flagged(collection, of_folder[kind]) if kind in of_folder else '')
                print(row, flush=True)
                rows.append(row)
    print(markdown(['', *KINDS], rows))


if __name__ == '__main__':
    main()
