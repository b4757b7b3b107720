"""Candidates for the questions of `demo_material`, with the teacher's scores: the base's cosine, as
run files.

    python tools/demo_candidates.py --data FOLDER --work FOLDER [--precision bfloat16]

The folder `material` of the work folder then has `texts.jsonl` and, for each of `judged`,
`sentences`, `cut`, `validation` and `selection`, topics, qrels and a run. A question's candidates
are BM25's best hits, the cosine's, and its answers; in `validation`, BM25's best hits alone; in
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
from collections.abc import Iterable, Mapping, Sequence
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
VALIDATED = {
    'x': 60,
    'q': 60,
    'M': 60,
    'd': 40,
}  # held-back questions by the first letter of their qids
VALIDATION_DEPTH = EACH
SELECTIONS = 100
TRAINED = {  # questions about MedQuAD's answers, and pseudo-questions, that are drawn
    'medquad': 1500,
    'medquad more': 2300,
    'cut': 4000,
    'cut more': 5000,
}


class Vectors:
    """Unit vectors of texts: `unit` is float32 (texts, h), in the order of `docids`."""

    def __init__(self, texts: Mapping[str, str], precision: str) -> None:
        self.rows = {docid: row for row, docid in enumerate(texts)}
        encoder = RepBertDocumentEncoder(TEACHER, precision=precision, max_length=256)
        self.unit = _unit(encoder.embed(list(texts.values())))
        self.docids = np.array(list(texts))

    def scored(self, vector: np.ndarray, docids: Sequence[str]) -> Ranking:
        """The texts with their cosines with a query's unit vector, best first."""
        scores = self.unit[[self.rows[docid] for docid in docids]] @ vector
        order = np.argsort(-scores, kind='stable')
        return Ranking([docids[place] for place in order], scores[order].tolist())


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
    made = collect(data)
    pieces = {docid: text for docid, text in made.texts.items() if docid.endswith('.piece')}
    split = {
        name for question in (*made.sentences, *made.held_sentences) for name in question.candidates
    }
    passages = {
        docid: text
        for docid, text in made.texts.items()
        if docid not in pieces and '.s' not in docid
    }
    _write_questions(folder, 'judged', made.judged)
    _write_questions(folder, 'held', made.held_judged)
    _write_questions(folder, 'cut', made.cut)
    _candidates(
        folder, 'passages', passages, {'judged': made.judged, 'held': made.held_judged}, precision
    )
    _candidates(folder, 'pieces', pieces, {'cut': made.cut}, precision)
    _sentences(folder, made, {docid: made.texts[docid] for docid in sorted(split)}, precision)
    _validation(folder, made)
    medquad = [one.qid for one in made.judged if one.qid.startswith('MQ')]
    _write_qids(
        folder / 'paragraphs.qids.txt',
        [one.qid for one in made.judged if not one.qid.startswith('MQ')],
    )
    cut = [one.qid for one in made.cut]
    for more in ('', ' more'):
        stem = more.replace(' ', '.')
        _write_qids(folder / f'answers{stem}.qids.txt', _some(medquad, f'medquad{more}'))
        _write_qids(folder / f'cut{stem}.qids.txt', _some(cut, f'cut{more}'))
    _write_texts(folder / 'texts.jsonl', made.texts)


def _some(qids: Sequence[str], name: str) -> list[str]:
    """A sample of `TRAINED[name]` qids, in their order."""
    drawn = set(random.Random(f'{SEED} {name}').sample(qids, min(TRAINED[name], len(qids))))
    return [qid for qid in qids if qid in drawn]


def _write_qids(path: Path, qids: Sequence[str]) -> None:
    with atomic_file(path) as stream:
        stream.writelines(f'{qid}\n' for qid in qids)


def _candidates(
    folder: Path,
    name: str,
    texts: Mapping[str, str],
    questions: Mapping[str, Sequence[Question]],
    precision: str,
) -> None:
    """For each set of questions, the union of BM25's hits, the cosine's and the answers, as two
    runs.

    STEM.run.txt has the cosine, STEM.teacher.txt the cosine with BM25 (`with_lexical`).
    """
    _write_texts(folder / f'{name}.jsonl', texts)
    index = folder / f'{name}.lucene'
    package_command(
        ['index', 'lucene', '--corpus', str(folder / f'{name}.jsonl'), '--output', str(index)]
    )
    vectors = Vectors(texts, precision)
    for stem, own in questions.items():
        bm25 = folder / f'{stem}.bm25.txt'
        topics = ['--topics', str(folder / f'{stem}.tsv')]
        source = ['--index', str(index), '--sparse', 'bm25', *topics]
        package_command(['search', *source, '--hits', str(VALIDATION_DEPTH), '--output', str(bm25)])
        hits = read_run(bm25)
        queries = query_vectors(own, precision)
        found: Run = {}
        taught: Run = {}
        for start in range(0, len(own), BLOCK):
            scores = queries[start : start + BLOCK] @ vectors.unit.T
            best = np.argpartition(-scores, EACH, axis=1)[:, :EACH]
            for question, vector, rows in zip(own[start:], queries[start:], best):  # noqa: B905
                lexical = hits.get(question.qid, NO_HITS)[:EACH]
                docids = dict.fromkeys(
                    [*question.answers, *lexical.docids, *vectors.docids[np.sort(rows)].tolist()]
                )
                found[question.qid] = vectors.scored(vector, list(docids))
                taught[question.qid] = with_lexical(found[question.qid], lexical)
        write_run(folder / f'{stem}.run.txt', found, tag='cosine')
        write_run(folder / f'{stem}.teacher.txt', taught, tag='teacher')


def _sentences(folder: Path, made: Material, texts: Mapping[str, str], precision: str) -> None:
    """Runs of the questions about sentences; `selection` has a sample of those held back."""
    vectors = Vectors(texts, precision)
    held = random.Random(f'{SEED} selection').sample(made.held_sentences, SELECTIONS)
    for stem, own in (('sentences', made.sentences), ('selection', held)):
        _write_questions(folder, stem, own)
        found = {
            question.qid: vectors.scored(vector, list(question.candidates))
            for question, vector in zip(own, query_vectors(own, precision), strict=True)
        }
        write_run(folder / f'{stem}.run.txt', found, tag='cosine')


def _validation(folder: Path, made: Material) -> None:
    """Some of the questions held back, of each kind, with BM25's best hits."""
    draw = random.Random(f'{SEED} validation')
    chosen = []
    for letter, count in VALIDATED.items():
        chosen += draw.sample(
            [one for one in made.held_judged if one.qid.startswith(letter)], count
        )
    _write_questions(folder, 'validation', chosen)
    bm25 = read_run(folder / 'held.bm25.txt', VALIDATION_DEPTH)
    write_run(
        folder / 'validation.run.txt',
        {one.qid: bm25[one.qid] for one in chosen if one.qid in bm25},
        tag='bm25',
    )


def with_lexical(cosines: Ranking, bm25: Ranking) -> Ranking:
    """Candidates scored by the cosine plus `LEXICAL` times BM25's score over BM25's best score
    for the query.
    """
    if not bm25:
        return cosines
    known = dict(zip(bm25.docids, bm25.scores, strict=True))
    last = bm25.scores[-1]
    lexical = (
        np.array([known.get(docid, BELOW * last) for docid in cosines.docids]) / bm25.scores[0]
    )
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


def _write_questions(folder: Path, stem: str, questions: Iterable[Question]) -> None:
    own = list(questions)
    with atomic_file(folder / f'{stem}.tsv') as stream:
        stream.writelines(f'{one.qid}\t{one.text}\n' for one in own)
    with atomic_file(folder / f'{stem}.qrels.txt') as stream:
        stream.writelines(f'{one.qid} 0 {docid} 1\n' for one in own for docid in one.answers)


if __name__ == '__main__':
    sys.exit(run(main))
