"""What the demo's duoBERT is trained on."""

from __future__ import annotations

import json
import math

import pytest

from pyserini_repbert.data.runs import read_run, write_run
from pyserini_repbert.ranking import Ranking


@pytest.fixture
def tool(imported):
    return imported('demo_commands', 'demo_pairs')


@pytest.fixture
def work(tmp_path):
    """Two questions for each set, 12 candidates each; the last one is the answer."""
    material = tmp_path / 'material'
    material.mkdir()
    docids = [f'd{place}' for place in range(12)]
    for stem in ('judged', 'cut', 'sentences'):
        taught = {qid: Ranking(docids, [1 - place / 20 for place in range(12)]) for qid in ('q1', 'q2')}
        write_run(material / f'{stem}.{"run" if stem == "sentences" else "teacher"}.txt', taught, tag='t')
        (material / f'{stem}.qrels.txt').write_text('q1 0 d11 1\n')
    for name in ('paragraphs', 'answers', 'cut'):
        (material / f'{name}.qids.txt').write_text('q1\n' if name != 'answers' else '')
    (material / 'texts.jsonl').write_text(''.join(json.dumps({'id': d, 'contents': d}) + '\n' for d in docids))
    return tmp_path


def test_the_best_and_the_answers_go_to_monobert_whose_odds_join_the_teacher(tool, work, monkeypatch):
    depths = []

    def reranked(work, run, stem, checkpoint, depth, output):
        depths.append(depth)
        given = read_run(run)
        found = {
            qid: Ranking(own.docids[::-1], [math.log(1 / (n + 2)) for n in range(len(own))])
            for qid, own in given.items()
        }
        write_run(output, found, tag='mono')

    monkeypatch.setattr(tool, 'rerank', reranked)
    tool.write_pairs(work, work / 'monobert')
    assert depths == [11, 11, 11]
    mono, both = (read_run(work / f'runs/judged.{kind}.txt') for kind in ('mono', 'both'))
    assert list(both) == ['q1']
    assert mono['q1'].docids == ('d11', *(f'd{place}' for place in reversed(range(10))))
    scores = dict(zip(both['q1'].docids, both['q1'].scores, strict=True))
    assert scores['d11'] == pytest.approx(0.45 + tool.MONO * 0.0, abs=1e-5)  # p = 1/2: odds of 1
    assert scores['d9'] == pytest.approx(0.55 + tool.MONO * math.log(1 / 2), abs=1e-5)  # p = 1/3
    assert len(read_run(work / 'runs/sentences.both.txt')) == 2
    tool.write_pairs(work, work / 'monobert')
    assert len(depths) == 3  # what is there is kept


def test_a_passage_that_is_surely_relevant_has_finite_odds(tool):
    taught = Ranking(['a', 'b'], [0.5, 0.4])
    assert all(map(math.isfinite, tool.with_odds(taught, Ranking(['b', 'a'], [0.0, -30.0])).scores))
