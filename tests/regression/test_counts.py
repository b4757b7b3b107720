"""A report counts apart: others' figures, this project's own, and what conditions need."""

import json

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.regression import main
from pyserini_repbert.regression.counts import (
    GUARDS,
    OTHERS,
    ScoreEvidence,
    as_markdown,
    count_scores,
    evidence_of,
)
from pyserini_repbert.regression.needs import Need, count_needs, hardest_need, need_of
from pyserini_repbert.regression.schema import Resource

EVALUATE = 'python -m pyserini_repbert.evaluate --qrels q.txt run.txt'
SEARCH = 'python -m pyserini_repbert.search --sparse bm25@demo'


def score(cell, status='PASS'):
    return {'cell': cell, 'status': status}


def condition(*scores, commands=(SEARCH, EVALUATE), need='nothing that is not here'):
    return {'scores': scores, 'commands': commands, 'status': 'PASS', 'need': need}


MADE = condition(score('anserini/cacm/bm25/MAP'), score(''))
EVALUATED = condition(score('anserini_runs/x'), commands=[EVALUATE], need='downloads')
GUARD = condition(score(''), score('', 'FAIL'), need='a licence')
RECORDED = {**condition(score('epic/latency', 'RECORDED'), commands=[]), 'status': 'RECORDED'}
DATA = {
    'files': [
        {'file': 'a.yaml', 'conditions': [MADE, EVALUATED]},
        {'file': 'b.yaml', 'conditions': [GUARD, RECORDED]},
    ]
}


def test_a_figure_of_this_project_is_a_guard():
    assert evidence_of(score(''), MADE) is ScoreEvidence.GUARD
    assert evidence_of(score(''), EVALUATED) is ScoreEvidence.GUARD


def test_a_published_run_tells_nothing_about_rankings():
    assert evidence_of(score('a/b'), EVALUATED) is ScoreEvidence.EVALUATED
    assert evidence_of(score('a/b'), MADE) is ScoreEvidence.MADE


def counted(evidence):
    return {name: count for name, count in count_scores(DATA['files'], evidence).items() if count}


def test_others_figures_and_guards_are_counted_apart():
    assert counted(OTHERS) == {'PASS': 2, 'RECORDED': 1}
    assert counted(GUARDS) == {'PASS': 2, 'FAIL': 1}


def test_a_report_has_a_section_of_each():
    text = '\n'.join(as_markdown(DATA))
    others, guards = text.split('## Guards against change')
    assert others.startswith("## Agrees with others' published figures")
    assert 'a.yaml' in others and 'published runs evaluated here' in others
    assert 'b.yaml' in guards
    assert '2 of 3 conditions need no more than downloads.' in guards


def test_a_report_without_guards_has_no_such_section():
    data = {'files': [{'file': 'a.yaml', 'conditions': [EVALUATED]}]}
    assert 'Guards' not in '\n'.join(as_markdown(data))


def resource(**fields):
    return Resource.model_validate({'what': 'x', **fields})


def test_what_a_resource_needs_in_a_new_checkout():
    assert need_of(resource(get='a tool', path='{here}/shared/x')) is Need.NOTHING
    assert need_of(resource(get='a letter', path='{data}/x')) is Need.BY_HAND
    assert need_of(resource(catalog='encoders/minilm')) is Need.NOTHING
    assert need_of(resource(catalog='encoders/repbert-demo')) is Need.NOTHING
    assert need_of(resource(catalog='encoders/repbert')) is Need.DOWNLOAD
    assert need_of(resource(recipe='train it')) is Need.TRAINING
    assert need_of(resource(other_system='ELMo')) is Need.OTHER_SYSTEM


def test_a_condition_counts_under_the_last_of_its_needs():
    corpus = resource(agreement='NIST')
    weights = resource(recipe='train it')
    assert hardest_need([weights, corpus]) is Need.TRAINING
    assert hardest_need([]) is Need.NOTHING


def test_needs_are_counted_the_easiest_first():
    counts = count_needs([Need.TRAINING, Need.DOWNLOAD, Need.TRAINING])
    assert list(counts.items()) == [(Need.DOWNLOAD, 1), (Need.TRAINING, 2)]


OTHER = """\
name: small
title: A system of others
resources:
  elmo: {what: a run of ELMo, other_system: its network is not part of this package}
  qrels: {what: judgments, path: '{data}/qrels.txt', get: write them}
sources:
  table1: {text: a paper, cells: cedr}
tolerances:
  none: {value: 0, reason: for the test}
conditions:
  - name: ELMo
    run: '{elmo}'
    qrels: '{qrels}'
    expected:
      - {measure: P@20, value: 0.3554, source: table1, tolerance: none, row: ELMo, column: p20}
"""


def test_a_system_of_others_is_never_run(tmp_path, data, capsys):
    path = tmp_path / 'small.yaml'
    path.write_text(OTHER, encoding='utf-8')
    report = tmp_path / 'report.json'
    flags = ['--data', str(data), '--work', str(tmp_path / 'work')]
    assert run(main, [str(path), *flags, '--report', str(report)]) == 0
    assert 'a system of others; its network is not part of this package' in capsys.readouterr().out
    made = json.loads(report.read_text(encoding='utf-8'))['files'][0]['conditions'][0]
    assert made['status'] == 'NOT RUN'
    assert made['need'] == 'a system of others that this package does not have'
    assert run(main, ['fetch', str(path), *flags, '--dry-run']) == 0
    assert 'to fetch: 0' in capsys.readouterr().out
