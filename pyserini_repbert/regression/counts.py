"""Counts of a report: scores by the kind of evidence, conditions by what they need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from pyserini_repbert.evaluate import tables
from pyserini_repbert.regression.needs import RUNNABLE, Need, count_needs
from pyserini_repbert.regression.runner import Status

_EVALUATION = 'python -m pyserini_repbert.evaluate '
_OTHERS_TEXT = (
    'A figure that others published is compared with a ranking made here, or with a published run '
    'that is evaluated here. The second shows that runs and judgments are read and scored as '
    'others do, and says nothing about rankings.'
)
_GUARDS_TEXT = (
    'These figures were measured by this project, at the commit that their source names. They tell '
    'whether something changed, and nothing about whether it was right.'
)
_NEEDS_TEXT = (
    'What conditions need in a new checkout with the extra `demo`, whatever the machine of this '
    'report has. A condition counts once, under the last of its needs. Computing time is not '
    'counted: to encode or rerank over MS MARCO takes a GPU.'
)


class ScoreEvidence(StrEnum):
    """What a score is evidence of; its value is its name in reports.

    MADE: a ranking of this package reaches a figure that others published. EVALUATED: this package
    scores a ranking that others published as they do. GUARD: the figure is this project's own, so
    it shows only changes.
    """

    MADE = 'rankings made here'
    EVALUATED = 'published runs evaluated here'
    GUARD = 'guards'


OTHERS = frozenset({ScoreEvidence.MADE, ScoreEvidence.EVALUATED})
GUARDS = frozenset({ScoreEvidence.GUARD})


def evidence_of(score: Mapping[str, Any], condition: Mapping[str, Any]) -> ScoreEvidence:
    """What a score of a report's data is evidence of."""
    # Only figures of others have a path in the list of published figures.
    if not score['cell']:
        return ScoreEvidence.GUARD
    commands = condition['commands']
    if commands and all(command.startswith(_EVALUATION) for command in commands):
        return ScoreEvidence.EVALUATED
    return ScoreEvidence.MADE


def count_scores(
    files: Iterable[Mapping[str, Any]],
    evidence: Collection[ScoreEvidence] = frozenset(ScoreEvidence),
) -> dict[str, int]:
    """Scores by status, in the report's order: all, or the scores with some evidence."""
    counts: Counter[str] = Counter()
    for file in files:
        for condition in file['conditions']:
            for score in condition['scores']:
                if evidence_of(score, condition) in evidence:
                    counts[score['status']] += 1
    return {status.value: counts[status.value] for status in Status}


def as_markdown(data: Mapping[str, Any]) -> list[str]:
    """The sections of others' figures, of guards, and of what conditions need; none is empty."""
    files = data['files']
    others_rows = [_file_row(file, OTHERS) for file in files]
    others_rows += [
        _row(f'*{evidence}*', count_scores(files, {evidence}))
        for evidence in (ScoreEvidence.MADE, ScoreEvidence.EVALUATED)
    ]
    guards_rows = [_file_row(file, GUARDS) for file in files]
    parts = []
    parts += _section(
        "Agrees with others' published figures",
        _OTHERS_TEXT,
        [*others_rows, _total_row(files, OTHERS)],
    )
    parts += _section(
        'Guards against change', _GUARDS_TEXT, [*guards_rows, _total_row(files, GUARDS)]
    )
    needs = [Need(condition['need']) for condition in _conditions_with_needs(files)]
    if needs:
        counts = count_needs(needs)
        lines = [[need.value, str(count)] for need, count in counts.items()]
        n_runnable = sum(counts.get(need, 0) for need in RUNNABLE)
        can_run = f'{n_runnable} of {len(needs)} conditions need no more than downloads.'
        header = ['what is needed', 'conditions']
        parts += [
            '## What a reader can run',
            f'{_NEEDS_TEXT} {can_run}',
            tables.markdown(header, lines),
        ]
    return parts


def _conditions_with_needs(files: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The conditions with measurements, in reports that say what conditions need."""
    conditions = []
    for file in files:
        for condition in file['conditions']:
            is_measured = condition['status'] != Status.RECORDED
            if is_measured and 'need' in condition:
                conditions.append(condition)
    return conditions


def _row(name: str, counts: Mapping[str, int]) -> list[str]:
    return [name, *map(str, counts.values())]


def _file_row(file: Mapping[str, Any], evidence: Collection[ScoreEvidence]) -> list[str]:
    return _row(file['file'], count_scores([file], evidence))


def _total_row(
    files: Iterable[Mapping[str, Any]], evidence: Collection[ScoreEvidence]
) -> list[str]:
    counts = count_scores(files, evidence)
    return ['**all**', *(f'**{count}**' for count in counts.values())]


def _section(title: str, text: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """A heading, text, and the table of the rows with counts above 0; nothing if there are none."""
    counting = [row for row in rows if set(row[1:]) != {'0'} and set(row[1:]) != {'**0**'}]
    if not counting:
        return []
    header = ['scores', *(status.value for status in Status)]
    return [f'## {title}', text, tables.markdown(header, counting)]
