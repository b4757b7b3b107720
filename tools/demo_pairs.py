"""Training candidates of the demo's duoBERT.

They are the teacher's best, ordered by monoBERT, and scored by both.

`demo_train.py` calls it once monoBERT is trained. For each STEM of `judged`, `cut` and `sentences`,
the folder `runs` then has `STEM.mono.txt`, in monoBERT's order (duoBERT reranks monoBERT's best),
and `STEM.both.txt`, whose scores are the teacher's plus `MONO` times monoBERT's log-odds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from demo_commands import package_command

from pyserini_repbert.data.runs import read_run, write_run
from pyserini_repbert.names.topics import load_qrels
from pyserini_repbert.ranking import Ranking, Run
from pyserini_repbert.rerank.base import rescored

DEPTH = 10  # candidates of a question beside its answers
MONO = 0.05  # times the recipe's teacher.scale of 20, which makes scores logits, it is 1
# STEM -> files with the qids of its questions; none for all of them.
QUESTIONS = {
    'judged': ('paragraphs.qids.txt', 'answers.qids.txt'),
    'cut': ('cut.qids.txt',),
    'sentences': (),
}
LARGEST = -1e-7  # log p of a passage that is surely relevant


def write_pairs(work: Path, checkpoint: Path) -> None:
    """Make the runs that are missing."""
    runs = work / 'runs'
    for stem in QUESTIONS:
        both = runs / f'{stem}.both.txt'
        if both.is_file():
            continue
        best = _best(work / 'material', stem)
        depth = max(len(ranking) for ranking in best.values())
        runs.mkdir(parents=True, exist_ok=True)
        write_run(runs / f'{stem}.best.txt', best, tag='teacher')
        reranked = runs / f'{stem}.mono.txt'
        rerank(work, runs / f'{stem}.best.txt', stem, checkpoint, depth, reranked)
        mono = read_run(reranked)
        scored = {qid: with_odds(ranking, mono[qid]) for qid, ranking in best.items()}
        write_run(both, scored, tag='both')


def rerank(work: Path, run: Path, stem: str, checkpoint: Path, depth: int, output: Path) -> None:
    """Rerank a run of questions of the material; a stopped reranking continues.

    Parameters
    ----------
    work : the work folder, with the material
    run, depth : the run, and how many hits of each question are reranked
    stem : of the questions' file
    checkpoint : the reranker
    output : the run to write
    """
    material = work / 'material'
    words = ['rerank', '--run', str(run), '--topics', str(material / f'{stem}.tsv')]
    words += ['--corpus', str(material / 'texts.jsonl')]
    words += ['--reranker', f'{checkpoint}@{depth}', '--precision', 'bfloat16']
    words += ['--output', str(output)]
    if Path(f'{output}.part').exists():
        words.append('--resume')
    package_command(words)


def with_odds(taught: Ranking, mono: Ranking) -> Ranking:
    """The teacher's scores plus `MONO` times log p - log(1 - p).

    `mono` has log p of the same candidates.
    """
    log_p_of = dict(zip(mono.docids, mono.scores, strict=True))
    log_p = np.minimum([log_p_of[docid] for docid in taught.docids], LARGEST)
    log_odds = log_p - np.log(-np.expm1(log_p))
    return rescored(taught, np.asarray(taught.scores) + MONO * log_odds)


def _best(material: Path, stem: str) -> Run:
    """The teacher's best `DEPTH` candidates of each question, and its answers."""
    files = QUESTIONS[stem]
    taught = read_run(material / f'{stem}.{"teacher" if files else "run"}.txt')
    chosen: set[str] = set()
    for name in files:
        chosen.update((material / name).read_text(encoding='utf-8').split())
    qrels = load_qrels(str(material / f'{stem}.qrels.txt'))
    best = {}
    for qid, ranking in taught.items():
        if files and qid not in chosen:
            continue
        answers = qrels.get(qid, {})
        docids = []
        scores = []
        for rank, candidate in enumerate(ranking):
            if rank < DEPTH or candidate.docid in answers:
                docids.append(candidate.docid)
                scores.append(candidate.score)
        best[qid] = Ranking(docids, scores)
    return best
