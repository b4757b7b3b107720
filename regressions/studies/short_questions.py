"""Write small test collections whose topics are questions, and titles or names.

    python regressions/studies/short_questions.py --data ../shared/data --xquad FOLDER --output SETS

Each folder of SETS has `docs.jsonl`, and of its questions and titles `questions.tsv`,
`questions.qrels`, `titles.tsv` and `titles.qrels`. `collection_fusion.py` measures collections of
them, at most 300 topics each.

- `qed`: Wikipedia's paragraphs, questions to Google, and the titles of the articles.
- `xquad-en`, `-de`, `-ar`, `-zh`: paragraphs of the files `xquad.LANGUAGE.json` in FOLDER
  (https://github.com/google-deepmind/xquad), 300 of the questions, and the articles' titles, which
  are English.
- `medquad`: the answers about 450 diseases, 300 of their questions, and the diseases' names.
- `cacm`: abstracts and questions, without titles.
"""

from __future__ import annotations

import argparse
import gzip
import html
import json
import random
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

MOST_QUESTIONS = 300
N_DISEASES = 450
MOST_ANSWERS = 6
MOST_TOPICS = 300
_DISEASE = re.compile(
    r'^(What is \(are\)|What are the symptoms of|What causes|How to diagnose|'
    r'What are the treatments for|Is|Who is at risk for|How to prevent|What is the outlook for|'
    r'What are the complications of|How many people are affected by|'
    r'What are the genetic changes related to)\s+(.+?)( inherited)?\s*\?*\s*$'
)
# What follows an abstract of CACM: the issue, keys and citations.
_ISSUE = re.compile(
    ' CACM (January|February|March|April|May|June|July|August|September|October|November|December),'
    '.*'
)

# The grades of documents by their docids.
Grades = Mapping[str, int]


def write_set(
    folder: Path, documents: Iterable[tuple[str, str]], **topics: Iterable[tuple[str, Grades]]
) -> None:
    """Write documents, and each kind of topics with its judgments."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / 'docs.jsonl').open('w', encoding='utf-8') as stream:
        for docid, text in documents:
            record = {'id': docid, 'contents': text[:1500]}
            stream.write(json.dumps(record, ensure_ascii=False) + '\n')
    for kind, judged in topics.items():
        lines = []
        judgments = []
        for number, (text, grades) in enumerate(list(judged)[:MOST_TOPICS]):
            lines.append(f'{kind}{number}\t{" ".join(text.split())}\n')
            for docid, grade in grades.items():
                judgments.append(f'{kind}{number} 0 {docid} {grade}\n')
        (folder / f'{kind}.tsv').write_text(''.join(lines), 'utf-8')
        (folder / f'{kind}.qrels').write_text(''.join(judgments), 'utf-8')


def write_qed(data: Path, folder: Path) -> None:
    """Paragraphs with the question that each answers, and with their articles' titles."""
    docid_of: dict[str, str] = {}
    questions = []
    titles: dict[str, dict[str, int]] = defaultdict(dict)
    with gzip.open(data / 'qed/qed-dev.jsonlines.gz', 'rt', encoding='utf-8') as stream:
        for line in stream:
            record = json.loads(line)
            docid = docid_of.setdefault(record['paragraph_text'].strip(), f'd{len(docid_of)}')
            questions.append((record['question_text'], {docid: 1}))
            titles[re.sub(r' \(.*\)$', '', record['title_text'])][docid] = 1
    documents = [(docid, text) for text, docid in docid_of.items()]
    write_set(folder, documents, questions=questions, titles=titles.items())


def write_xquad(file: Path, folder: Path, drawn: random.Random) -> None:
    """Paragraphs, some of their questions, and the titles of the articles."""
    documents = []
    questions = []
    titles = []
    for number, article in enumerate(json.loads(file.read_text('utf-8'))['data']):
        grades = {}
        for row, paragraph in enumerate(article['paragraphs']):
            docid = f'a{number}p{row}'
            documents.append((docid, paragraph['context']))
            grades[docid] = 1
            for asked in paragraph['qas']:
                questions.append((asked['question'], {docid: 1}))
        titles.append((article['title'].replace('_', ' '), grades))
    some = drawn.sample(questions, MOST_QUESTIONS)
    write_set(folder, documents, questions=some, titles=titles)


def write_medquad(data: Path, folder: Path, drawn: random.Random) -> None:
    """Answers about diseases, the questions that they answer, and the diseases' names."""
    answers_of = defaultdict(list)
    with gzip.open(data / 'medquad/corpus.jsonl.gz', 'rt', encoding='utf-8') as stream:
        for line in stream:
            answer = json.loads(line)
            asked = _DISEASE.match(answer['question'])
            if asked:
                answers_of[re.sub(r'\s*\(.*\)', '', asked[2])].append(answer)
    names = [name for name, answers in answers_of.items() if len(answers) <= MOST_ANSWERS]
    drawn.shuffle(names)
    documents = []
    questions = []
    titles = []
    for name in names[:N_DISEASES]:
        answers = answers_of[name]
        documents += [(answer['id'], answer['answer'][:900]) for answer in answers]
        titles.append((name, {answer['id']: 1 for answer in answers}))
        chosen = drawn.choice(answers)
        questions.append((chosen['question'], {chosen['id']: 1}))
    some = drawn.sample(questions, MOST_QUESTIONS)
    write_set(folder, documents, questions=some, titles=titles)


def write_cacm(data: Path, folder: Path) -> None:
    """Abstracts without what follows them, and the judged questions."""
    documents = []
    with tarfile.open(data / 'cacm/cacm.tar.gz') as archive:
        for member in archive:
            page = archive.extractfile(member) if member.name.endswith('.html') else None
            if page is not None:
                text = html.unescape(re.sub(r'<[^>]+>', ' ', page.read().decode('latin-1')))
                docid = Path(member.name).stem
                documents.append((docid, _ISSUE.sub('', ' '.join(text.split()))))
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (data / 'cacm/qrels.cacm.txt').read_text().splitlines():
        qid, _, docid, grade = line.split()
        grades[qid][docid] = int(grade)
    questions = []
    topics = (data / 'cacm/topics.cacm.txt').read_text('latin-1')
    for qid, text in re.findall(r'<DOC>\s*<DOCNO>\s*(\d+)\s*</DOCNO>(.*?)</DOC>', topics, re.S):
        if qid in grades:
            questions.append((text, grades[qid]))
    write_set(folder, documents, questions=questions)


def main() -> None:
    """Write the sets."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--data', type=Path, required=True)
    parser.add_argument('--xquad', type=Path, required=True, help='folder of xquad.LANGUAGE.json')
    parser.add_argument('--output', type=Path, required=True)
    options = parser.parse_args()
    drawn = random.Random(7)
    write_qed(options.data, options.output / 'qed')
    for language in ('en', 'de', 'ar', 'zh'):
        file = options.xquad / f'xquad.{language}.json'
        write_xquad(file, options.output / f'xquad-{language}', drawn)
    write_medquad(options.data, options.output / 'medquad', drawn)
    write_cacm(options.data, options.output / 'cacm')


if __name__ == '__main__':
    main()
