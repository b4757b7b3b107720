"""A condition to run in its workspace: its commands, and its missing inputs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from pyserini_repbert.regression.needs import RUNNABLE, Need, hardest_need
from pyserini_repbert.regression.resources import MissingResource, find_missing
from pyserini_repbert.regression.schema import Condition, ResourceOrigin
from pyserini_repbert.regression.workspace import Workspace

# The only command, besides the evaluation, that conditions on published runs have.
_FUSION = 'pyserini_repbert.fusion'
_OUT_OF_REACH = (ResourceOrigin.UNPUBLISHED, ResourceOrigin.OTHER_SYSTEM)


@dataclass(frozen=True, slots=True)
class ConditionJob:
    """A condition to run, in its workspace."""

    condition: Condition
    workspace: Workspace

    @property
    def name(self) -> str:
        """'REGRESSION CONDITION'."""
        return f'{self.workspace.regression.name} {self.condition.name}'

    def commands(self) -> list[str]:
        """Every command, as a user would type it: its builds', its own, and the evaluation."""
        lines = [*self.workspace.commands(self.condition), *self.evaluation()]
        return [shlex.join(self.workspace.words(line)) for line in lines]

    def evaluation(self) -> list[str]:
        """The command that evaluates the run; none for a condition with a table."""
        condition = self.condition
        if not condition.run:
            return []
        measures = shlex.join(dict.fromkeys(score.measure for score in condition.expected))
        files = shlex.join(['--qrels', condition.qrels, condition.run])
        return [f'python -m pyserini_repbert.evaluate {files} --json --quiet --measures {measures}']

    def missing(self) -> list[MissingResource]:
        """The resources that it lacks."""
        missing = []
        for resource in self.workspace.needed(self.condition.needs):
            absent = find_missing(resource, self.workspace.paths)
            if absent is not None:
                missing.append(absent)
        return missing

    def need(self) -> Need:
        """What a new checkout needs before it can be run."""
        return hardest_need(self.workspace.needed(self.condition.needs))

    def lacking(self) -> Need:
        """What it needs that is missing."""
        missing = self.missing()
        if not missing:
            return Need.NOTHING
        hardest = hardest_need(absent.resource for absent in missing)
        # A package that is not installed is shipped with no checkout.
        return Need.DOWNLOAD if hardest is Need.NOTHING else hardest

    def is_of_published_runs(self) -> bool:
        """Whether published files are all that it needs.

        It needs no model, no collection, nothing by hand and no Java.
        """
        resources = self.workspace.needed(self.condition.needs)
        if not resources or not self.condition.expected or self.need() not in RUNNABLE:
            return False
        commands = self.workspace.commands(self.condition)
        has_entries = any(resource.origin is ResourceOrigin.CATALOG for resource in resources)
        return not has_entries and all(shlex.split(command)[2] == _FUSION for command in commands)


def are_out_of_reach(missing: Sequence[MissingResource]) -> bool:
    """Whether a needed input was never published or belongs to another system, so nothing can
    replace it.
    """
    return any(absent.resource.origin in _OUT_OF_REACH for absent in missing)
