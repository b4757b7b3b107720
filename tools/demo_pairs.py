"""Training candidates of the demo's duoBERT: the teacher's best, ordered by monoBERT, and scored by
both.

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
QUESTIONS = {
    'judged': ('paragraphs.qids.txt', 'answers.qids.txt'),
    'cut': ('cut.qids.txt',),
    'sentences': (),
}
LARGEST = -1e-7  # log p of a passage that is surely relevant


def write_pairs(work: Path, checkpoint: Path) -> None:
    """Make the runs that are missing."""
    for stem, files in QUESTIONS.items():
        material = work / 'material'
        runs = work / 'runs'
        both = runs / f'{stem}.both.txt'
        if both.is_file():
            continue
        taught = read_run(material / f'{stem}.{"teacher" if files else "run"}.txt')
        chosen = {
            qid for name in files for qid in (material / name).read_text(encoding='utf-8').split()
        }
        best = _best(
            {qid: own for qid, own in taught.items() if not files or qid in chosen}, material, stem
        )
        runs.mkdir(parents=True, exist_ok=True)
        write_run(runs / f'{stem}.best.txt', best, tag='teacher')
        output = runs / f'{stem}.mono.txt'
        rerank(
            work, runs / f'{stem}.best.txt', stem, checkpoint, max(map(len, best.values())), output
        )
        mono = read_run(output)
        write_run(both, {qid: with_odds(own, mono[qid]) for qid, own in best.items()}, tag='both')


def rerank(work: Path, run: Path, stem: str, checkpoint: Path, depth: int, output: Path) -> None:
    """Rerank a run of questions of the material; a reranking that was stopped goes on."""
    material = work / 'material'
    what = [
        '--run',
        str(run),
        '--topics',
        str(material / f'{stem}.tsv'),
        '--corpus',
        str(material / 'texts.jsonl'),
    ]
    what += [
        '--reranker',
        f'{checkpoint}@{depth}',
        '--precision',
        'bfloat16',
        '--output',
        str(output),
    ]
    more = ['--resume'] if Path(f'{output}.part').exists() else []
    package_command(['rerank', *what, *more])


def with_odds(taught: Ranking, mono: Ranking) -> Ranking:
    """The teacher's scores plus `MONO` times log p - log(1 - p); `mono` has log p of the same
    candidates.
    """
    log_p = dict(zip(mono.docids, mono.scores, strict=True))
    own = np.minimum([log_p[docid] for docid in taught.docids], LARGEST)
    return rescored(taught, np.asarray(taught.scores) + MONO * (own - np.log(-np.expm1(own))))


def _best(taught: Run, material: Path, stem: str) -> Run:
    """The teacher's best `DEPTH` candidates of each question, and its answers."""
    qrels = load_qrels(str(material / f'{stem}.qrels.txt'))
    found = {}
    for qid, own in taught.items():
        answers = qrels.get(qid, {})
        places = [
            place for place, docid in enumerate(own.docids) if place < DEPTH or docid in answers
        ]
        found[qid] = own.select_rows(places, [own.scores[place] for place in places])
    return found
