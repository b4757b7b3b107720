"""Candidates for the questions of `demo_material`, with the teacher's scores, as run files.

The teacher is the base's cosine.

    python tools/demo_candidates.py --data FOLDER --work FOLDER [--precision bfloat16]

The folder `material` of the work folder then has `texts.jsonl` and, for each of `judged`,
`sentences`, `cut`, `validation` and `selection`, topics, qrels and a run. A question's candidates
are BM25's best hits, the cosine's, and its answers; in `validation`, only BM25's best hits; in
`sentences` and `selection`, all sentences of its article or paragraph. `judged.teacher.txt` and
`cut.teacher.txt` have BM25 added to the cosine (`with_lexical`). `paragraphs.qids.txt` has the
questions of `judged` about the demo's paragraphs, `answers.qids.txt` and `answers.more.qids.txt`
some of those about MedQuAD's answers, `cut.qids.txt` and `cut.more.qids.txt` some pseudo-questions.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from demo_commands import package_command
from demo_material import SEED, Material, Question, collect

from pyserini_repbert.commands.command import Parser, run
from pyserini_repbert.data.runs import read_run, write_run
from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.files import atomic_file
from pyserini_repbert.ranking import NO_HITS, Ranking, Run
from pyserini_repbert.rerank.base import rescored

TEACHER = 'minilm-dot'
LEXICAL = 0.3  # weight of BM25 beside the cosine; the best of 0.1 to 1 on the questions held back
BELOW = 0.9  # a candidate that BM25 has not found counts this share of the score of BM25's last hit
EACH = 16  # hits of BM25, and as many of the cosine
BLOCK = 512  # queries scored at once
# Held-back questions by the first letter of their qids.
VALIDATED = {'x': 60, 'q': 60, 'M': 60, 'd': 40}
VALIDATION_DEPTH = EACH
SELECTIONS = 100
# Questions about MedQuAD's answers, and pseudo-questions, that are drawn.
TRAINED = {'medquad': 1500, 'medquad more': 2300, 'cut': 4000, 'cut more': 5000}


class Vectors:
    """Unit vectors of texts: `unit` is float32 (texts, h), in the order of `docids`."""

    def __init__(self, texts: Mapping[str, str], precision: str) -> None:
        self.rows = {docid: row for row, docid in enumerate(texts)}
        encoder = RepBertDocumentEncoder(TEACHER, precision=precision, max_length=256)
        self.unit = _unit(encoder.embed(list(texts.values())))
        self.docids = np.array(list(texts))

    def rank(self, vector: np.ndarray, docids: Sequence[str]) -> Ranking:
        """The texts with their cosines with a query's unit vector, best first."""
        rows = [self.rows[docid] for docid in docids]
        scores = self.unit[rows] @ vector
        order = np.argsort(-scores, kind='stable')
        ranked = [docids[position] for position in order]
        return Ranking(ranked, scores[order].tolist())

    def nearest(self, queries: np.ndarray) -> Iterator[list[str]]:
        """The `EACH` texts with the greatest cosines with each query, in the order of `docids`."""
        for start in range(0, len(queries), BLOCK):
            scores = queries[start : start + BLOCK] @ self.unit.T
            best = np.argpartition(-scores, EACH, axis=1)[:, :EACH]
            for rows in np.sort(best, axis=1):
                yield self.docids[rows].tolist()


def main(arguments: list[str]) -> int | None:
    """Make what is missing."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--data', required=True, help='the folder that holds medquad/ and qed/')
    parser.add_argument('--work', required=True, help='where the folder material is made')
    parser.add_argument(
        '--precision', default='float32', help="of the teacher's vectors: float32 or bfloat16"
    )
    options = parser.parse_args(arguments)
    write_material(Path(options.data), Path(options.work) / 'material', options.precision)
    return None


def write_material(data: Path, folder: Path, precision: str = 'float32') -> None:
    """Write texts, questions and candidates, unless they are there."""
    if (folder / 'texts.jsonl').is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    material = collect(data)
    _write_questions(folder, 'judged', material.judged)
    _write_questions(folder, 'held', material.held_judged)
    _write_questions(folder, 'cut', material.cut)
    pieces = {}
    passages = {}
    for docid, text in material.texts.items():
        if docid.endswith('.piece'):
            pieces[docid] = text
        elif '.s' not in docid:
            passages[docid] = text
    about_passages = {'judged': material.judged, 'held': material.held_judged}
    _write_candidates(folder, 'passages', passages, about_passages, precision)
    _write_candidates(folder, 'pieces', pieces, {'cut': material.cut}, precision)
    _write_sentences(folder, material, precision)
    _write_validation(folder, material)
    medquad = []
    paragraphs = []
    for question in material.judged:
        qids = medquad if question.qid.startswith('MQ') else paragraphs
        qids.append(question.qid)
    _write_qids(folder / 'paragraphs.qids.txt', paragraphs)
    cut = [question.qid for question in material.cut]
    _write_qids(folder / 'answers.qids.txt', _sample(medquad, 'medquad'))
    _write_qids(folder / 'answers.more.qids.txt', _sample(medquad, 'medquad more'))
    _write_qids(folder / 'cut.qids.txt', _sample(cut, 'cut'))
    _write_qids(folder / 'cut.more.qids.txt', _sample(cut, 'cut more'))
    _write_texts(folder / 'texts.jsonl', material.texts)


def _sample(qids: Sequence[str], name: str) -> list[str]:
    """A sample of `TRAINED[name]` qids, in their order."""
    drawn = set(random.Random(f'{SEED} {name}').sample(qids, min(TRAINED[name], len(qids))))
    return [qid for qid in qids if qid in drawn]


def _write_qids(path: Path, qids: Sequence[str]) -> None:
    with atomic_file(path) as stream:
        stream.writelines(f'{qid}\n' for qid in qids)


def _write_candidates(
    folder: Path,
    name: str,
    texts: Mapping[str, str],
    questions: Mapping[str, Sequence[Question]],
    precision: str,
) -> None:
    """Write two runs for each set of questions.

    Candidates are BM25's hits, the cosine's, and the answers.

    STEM.run.txt has the cosine, STEM.teacher.txt the cosine with BM25 (`with_lexical`).
    """
    corpus = folder / f'{name}.jsonl'
    index = folder / f'{name}.lucene'
    _write_texts(corpus, texts)
    package_command(['index', 'lucene', '--corpus', str(corpus), '--output', str(index)])
    vectors = Vectors(texts, precision)
    for stem, asked in questions.items():
        bm25 = _search_bm25(folder, stem, index)
        queries = query_vectors(asked, precision)
        cosines: Run = {}
        taught: Run = {}
        nearest = vectors.nearest(queries)
        for question, vector, near in zip(asked, queries, nearest, strict=True):
            lexical = bm25.get(question.qid, NO_HITS)[:EACH]
            docids = dict.fromkeys([*question.answers, *lexical.docids, *near])
            cosines[question.qid] = vectors.rank(vector, list(docids))
            taught[question.qid] = with_lexical(cosines[question.qid], lexical)
        write_run(folder / f'{stem}.run.txt', cosines, tag='cosine')
        write_run(folder / f'{stem}.teacher.txt', taught, tag='teacher')


def _search_bm25(folder: Path, stem: str, index: Path) -> Run:
    """BM25's hits for the questions STEM.tsv."""
    output = folder / f'{stem}.bm25.txt'
    source = ['--sparse', f'bm25@{index}', '--topics', str(folder / f'{stem}.tsv')]
    package_command(['search', *source, '--hits', str(VALIDATION_DEPTH), '--output', str(output)])
    return read_run(output)


def _write_sentences(folder: Path, material: Material, precision: str) -> None:
    """Runs of the questions about sentences; `selection` has a sample of those held back."""
    docids: set[str] = set()
    for question in (*material.sentences, *material.held_sentences):
        docids.update(question.candidates)
    vectors = Vectors({docid: material.texts[docid] for docid in sorted(docids)}, precision)
    held = random.Random(f'{SEED} selection').sample(material.held_sentences, SELECTIONS)
    for stem, asked in (('sentences', material.sentences), ('selection', held)):
        _write_questions(folder, stem, asked)
        run = {}
        for question, vector in zip(asked, query_vectors(asked, precision), strict=True):
            run[question.qid] = vectors.rank(vector, list(question.candidates))
        write_run(folder / f'{stem}.run.txt', run, tag='cosine')


def _write_validation(folder: Path, material: Material) -> None:
    """Some of the questions held back, of each kind, with BM25's best hits."""
    draw = random.Random(f'{SEED} validation')
    chosen: list[Question] = []
    for letter, count in VALIDATED.items():
        of_kind = [question for question in material.held_judged if question.qid.startswith(letter)]
        chosen += draw.sample(of_kind, count)
    _write_questions(folder, 'validation', chosen)
    bm25 = read_run(folder / 'held.bm25.txt', VALIDATION_DEPTH)
    run = {question.qid: bm25[question.qid] for question in chosen if question.qid in bm25}
    write_run(folder / 'validation.run.txt', run, tag='bm25')


def with_lexical(cosines: Ranking, bm25: Ranking) -> Ranking:
    """Candidates scored by the cosine plus `LEXICAL` times BM25's share.

    That is BM25's score over its best score for the query.
    """
    if not bm25:
        return cosines
    score_of = dict(zip(bm25.docids, bm25.scores, strict=True))
    unknown = BELOW * bm25.scores[-1]
    scores = [score_of.get(docid, unknown) for docid in cosines.docids]
    lexical = np.array(scores) / bm25.scores[0]
    return rescored(cosines, np.asarray(cosines.scores) + LEXICAL * lexical)


def query_vectors(questions: Sequence[Question], precision: str) -> np.ndarray:
    """Unit vectors of the questions' texts, float32 (questions, h)."""
    encoder = RepBertQueryEncoder(TEACHER, precision=precision, max_length=64)
    return _unit(encoder.encode_batch([question.text for question in questions]))


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _write_texts(path: Path, texts: Mapping[str, str]) -> None:
    with atomic_file(path) as stream:
        for docid, text in texts.items():
            stream.write(json.dumps({'id': docid, 'contents': text}, ensure_ascii=False) + '\n')


def _write_questions(folder: Path, stem: str, questions: Sequence[Question]) -> None:
    with atomic_file(folder / f'{stem}.tsv') as stream:
        for question in questions:
            stream.write(f'{question.qid}\t{question.text}\n')
    with atomic_file(folder / f'{stem}.qrels.txt') as stream:
        for question in questions:
            stream.writelines(f'{question.qid} 0 {docid} 1\n' for docid in question.answers)


if __name__ == '__main__':
    sys.exit(run(main))
