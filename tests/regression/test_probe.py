"""`blame --probe` finds the factor that moved a score, puts it first, and says what it could not test."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.regression import main
from pyserini_repbert.models import batching
from pyserini_repbert.regression.workspace import CommandFailedError, Workspace


def test_the_precision_of_another_report_is_found(dense_world: Any) -> None:
    first = dense_world.report('a')
    text = dense_world.file.read_text(encoding='utf-8')
    other = text.replace(' --fp32', ' --bf16').replace('search --index', 'search --bf16 --index')
    dense_world.file.write_text(other, encoding='utf-8')
    second = dense_world.report('b')
    assert dense_world.score(first) != dense_world.score(second)
    dense_world.file.write_text(text, encoding='utf-8')
    printed = dense_world.blame('--factor', 'precision')
    assert re.search(r'\| encode precision +\| +float32 \| +bfloat16 \|', printed)
    found = dense_world.rows(printed)
    assert [row[0] for row in found] == ['precision: --bf16', 'precision: --fp16']
    assert found[0][3] == '100%'
    assert abs(float(found[0][2])) > abs(float(found[1][2]))
    assert 'Nearest to the difference: precision, --bf16 (100% of it).' in printed


def test_scores_that_depend_on_their_batch_are_found(dense_world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = dense_world.report('a')
    whole = batching.collate
    monkeypatch.setattr(batching, 'collate', lambda *given: (*whole(*given)[:2], None))  # padding is attended to
    wrong = dense_world.report('b')
    assert dense_world.score(right) != dense_world.score(wrong)
    printed = dense_world.blame('--factor', 'precision', '--factor', 'batch')
    assert f'here {dense_world.score(wrong):.4f}' in printed
    assert dense_world.rows(printed)[0][0] == 'batch: one at a time' and dense_world.rows(printed)[0][3] == '100%'


def test_another_tokenizer_is_found(dense_world: Any) -> None:
    first = dense_world.report('a')
    settings = dense_world.data / 'tiny' / 'tokenizer_config.json'
    settings.write_text('{"do_lower_case": false}', encoding='utf-8')
    second = dense_world.report('b')
    settings.unlink()
    assert dense_world.score(first) != dense_world.score(second)
    printed = dense_world.blame('--factor', 'tokenizer')
    assert '| $DATA/tiny tokenizer |' in printed and '$DATA/tiny weights' not in printed
    assert dense_world.rows(printed)[0][0] == 'tokenizer: other case' and dense_world.rows(printed)[0][3] == '100%'
    assert 'tokenizer could not be tested: vocab.txt: checkpoint' in printed
    assert 'ties' not in printed


def test_ties_are_found_and_a_run_without_a_model_says_so(
    regression_file: Callable[..., Path], data: Path, world_of: Callable[[Path], Any]
) -> None:
    (data / 'a.txt').write_text('1 Q0 x 1 9 a\n1 Q0 y 2 9 a\n', encoding='utf-8')
    path = regression_file()
    text = path.read_text(encoding='utf-8').partition('conditions:')[0]
    path.write_text(
        text + "conditions:\n  - {name: a, run: '{a}', qrels: '{qrels}', expected: "
        '[{measure: RR@10, value: 0.5, source: here, tolerance: none}]}\n',
        encoding='utf-8',
    )
    world = world_of(path)
    assert world.score(world.report('a')) == 0.5
    world.report('b', **{'RR@10': 1.0})
    printed = world.blame()
    assert world.rows(printed) == [
        ['ties: all for the best', '1.0000', '+0.5000', '100%'],
        ['ties: all for the worst', '0.5000', '+0.0000', '0%'],
    ]
    for factor in ('precision', 'batch', 'threads', 'tokenizer'):
        assert f'- {factor} could not be tested: no command of this condition runs a model' in printed


def test_a_variant_that_fails_is_a_line(dense_world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dense_world.report('a')
    dense_world.report('b', AP=0.125)

    def broken(workspace: Workspace, command: str) -> str:
        if '--precision float16' in command:
            raise CommandFailedError('no half precision here')
        return dense_world.run_here(workspace, command)

    monkeypatch.setattr(Workspace, 'run', broken)
    printed = dense_world.blame('--factor', 'precision', '--factor', 'ties')
    assert '- precision: --fp16 failed: no half precision here' in printed
    assert dense_world.rows(printed)[0][0] == 'precision: --bf16'
    assert 'None of these accounts for half of the difference.' in printed


def test_originals_are_not_touched_and_variants_are_remembered(
    dense_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    dense_world.report('a')
    dense_world.report('b', AP=0.125)
    once = dense_world.blame('--factor', 'precision')
    work = dense_world.folder / 'work-probed'
    before = {path: path.stat().st_mtime_ns for path in work.rglob('*') if path.is_file()}
    originals = [path for path in before if 'probe' not in path.relative_to(work).parts]
    names = sorted(path.name for path in originals if path.parent == work / 'dense')
    assert names == ['dense.txt', 'dense.txt.record.json', 'index.record.json']
    monkeypatch.setattr(Workspace, 'run', lambda *_: pytest.fail('a remembered variant was run again'))
    assert dense_world.blame('--factor', 'precision') == once
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_condition_that_the_file_lacks_is_refused(dense_world: Any, capsys: pytest.CaptureFixture[str]) -> None:
    report = dense_world.report('a')
    report['files'][0]['conditions'][0]['name'] = 'sparse'
    for name in ('a', 'b'):
        (dense_world.folder / f'{name}.json').write_text(json.dumps(report), encoding='utf-8')
    reports = [str(dense_world.folder / name) for name in ('a.json', 'b.json')]
    capsys.readouterr()
    given = ['blame', *reports, '--probe', '--condition', 'sparse', '--files', str(dense_world.file)]
    assert run(main, given) == 2
    assert "dense.yaml has no condition 'sparse'" in capsys.readouterr().err
    assert run(main, ['blame', *reports, '--condition', 'sparce']) == 2
    assert "did you mean 'sparse'" in capsys.readouterr().err
    assert run(main, ['blame', *reports, '--factor', 'ties']) == 2
