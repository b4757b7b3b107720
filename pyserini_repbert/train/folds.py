"""A recipe over folds and seeds: trains a model of each, reranks each fold's test run, joins the
runs, and scores them, as CEDR's Table 1 is made (CEDR section 3.1).

OUTPUT/seed-S/fold-N is a checkpoint, OUTPUT/seed-S/fold-N.run its fold's test run, and
OUTPUT/seed-S.run the run of all topics.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev

from pyserini_repbert.data.runs import read_run, write_run
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.folds import join_runs, read_qids
from pyserini_repbert.evaluate.measures import NamedMeasure, evaluate
from pyserini_repbert.files import StrPath
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.ranking import Run
from pyserini_repbert.systems.registry import systems
from pyserini_repbert.tasks.recipe import PRE_TRAINING, Recipe, Validation
from pyserini_repbert.train.output import TrainingOutput
from pyserini_repbert.train.recipe_files import read_recipe
from pyserini_repbert.train.result import Trained
from pyserini_repbert.train.training import train
from pyserini_repbert.train.validation import read_candidates

# What `evaluate split-folds --run` writes of a fold, and the training reads.
_FILES = ('train.tsv', 'validation.tsv', 'test.tsv', 'test.run')
_NUMBERED = re.compile(r'fold-([1-9][0-9]*)')


@dataclass(frozen=True)
class FoldTraining:
    """The training of one fold with one seed.

    Attributes
    ----------
    fold : a folder of `evaluate split-folds`
    recipe : with the fold's files and the seed
    checkpoint : the folder that the training makes
    """

    fold: Path
    recipe: Recipe
    checkpoint: Path

    @property
    def run(self) -> Path:
        """The file of the reranked test run."""
        return self.checkpoint.with_name(f'{self.checkpoint.name}.run')

    @property
    def validation(self) -> Validation:
        """The recipe's validation, which says where texts are, and how many hits are reranked."""
        # `plan_folds` refuses a recipe without one.
        assert self.recipe.validation is not None
        return self.recipe.validation


@dataclass(frozen=True)
class FoldsPlan:
    """All trainings of a recipe, by seed; a seed's trainings are in the order of the folds."""

    output: Path
    trainings: Mapping[int, Sequence[FoldTraining]]

    @property
    def validation(self) -> Validation:
        """The validation of the first training."""
        first, *_ = self.trainings.values()
        return first[0].validation

    def joined(self, seed: int) -> Path:
        """The file of a seed's run of all topics."""
        return self.output / f'seed-{seed}.run'


@dataclass(frozen=True)
class FoldScores:
    """The means of one measure over all topics, by seed."""

    measure: str
    values: Mapping[int, float]

    @property
    def summary(self) -> str:
        """'0.4567 ± 0.0012': mean and standard deviation over seeds; one seed has no deviation."""
        values = list(self.values.values())
        mean = f'{fmean(values):.4f}'
        return f'{mean} ± {stdev(values):.4f}' if len(values) > 1 else mean


def plan_folds(
    recipe: StrPath,
    settings: Sequence[str],
    *,
    folds: StrPath,
    output: StrPath,
    seeds: Sequence[int],
) -> FoldsPlan:
    """Read the recipe for each seed and fold, before anything is trained.

    Parameters
    ----------
    recipe : its file; `${FOLD}` means the folder of a fold
    settings : 'key=value', as `train --set` takes them; `{seed}` and `{fold}` mean numbers
    folds : a folder of `evaluate split-folds --run`
    output : the folder to write to
    seeds : the trainings' seeds; none for the recipe's own

    Raises InputError for a recipe that validates on no run, or for a fold that lacks a file.
    """
    folders = _fold_folders(Path(folds))
    trainings: dict[int, list[FoldTraining]] = {}
    for seed in seeds or [_own_seed(recipe, settings, folders[0])]:
        of_seed = trainings.setdefault(seed, [])
        for number, folder in enumerate(folders, 1):
            filled = [
                setting.replace('{seed}', str(seed)).replace('{fold}', str(number))
                for setting in settings
            ]
            filled += [f'training.seed={seed}', f'variables.FOLD={json.dumps(str(folder))}']
            read = read_recipe(recipe, tuple(filled))
            _check_recipe(read)
            checkpoint = Path(output) / f'seed-{seed}' / folder.name
            of_seed.append(FoldTraining(folder, read, checkpoint))
    return FoldsPlan(Path(output), trainings)


def _own_seed(recipe: StrPath, settings: Sequence[str], fold: Path) -> int:
    """The seed that the recipe itself has."""
    of_fold = f'variables.FOLD={json.dumps(str(fold))}'
    return read_recipe(recipe, (*settings, of_fold)).training.seed


def _fold_folders(folds: Path) -> list[Path]:
    """The folders fold-1, fold-2, … in the order of their numbers."""
    numbers = []
    if folds.is_dir():
        for path in folds.iterdir():
            match = _NUMBERED.fullmatch(path.name)
            if match:
                numbers.append(int(match[1]))
    if not numbers or sorted(numbers) != list(range(1, len(numbers) + 1)):
        raise InputError(
            f'{folds} is not a folder of folds: expected fold-1, fold-2, …, as `evaluate '
            'split-folds` writes them',
            parameters=('folds',),
        )
    folders = [folds / f'fold-{number}' for number in sorted(numbers)]
    for folder in folders:
        for name in _FILES:
            if not (folder / name).is_file():
                raise InputError(
                    f'{folder} lacks {name}: make the folds with `evaluate split-folds` and a run',
                    parameters=('folds',),
                )
    return folders


def _check_recipe(recipe: Recipe) -> None:
    """Raise InputError for a recipe whose model does not rerank the test run."""
    reranks = recipe.system != PRE_TRAINING and systems()[recipe.system].reranker is not None
    if not reranks or recipe.validation is None or recipe.validation.run is None:
        raise InputError(
            f"recipe '{recipe.name}' trains no reranker with a validation.run: folds are reranked "
            'as the validation is'
        )


def check_outputs(plan: FoldsPlan, *, resume: bool, overwrite: bool) -> None:
    """Raise InputError for the first output that is there already, before anything is trained."""
    if resume or overwrite:
        return
    for trainings in plan.trainings.values():
        for training in trainings:
            work = TrainingOutput(training.recipe, training.checkpoint, resume, overwrite).work
            for path in (training.checkpoint, work, training.run):
                if path.exists():
                    raise InputError(
                        f'{path} is there already: resume, overwrite, or give another output',
                        parameters=('resume', 'overwrite', 'output'),
                    )


def train_folds(
    plan: FoldsPlan,
    *,
    resume: bool = False,
    overwrite: bool = False,
    device: str = 'auto',
    quiet: bool = True,
    on_trained: Callable[[FoldTraining, Trained], None] = lambda *_: None,
) -> None:
    """Train and rerank each fold with each seed, and join the runs of a seed.

    Parameters
    ----------
    plan : the trainings, by seed
    resume : keep finished trainings, continue stopped ones, and start the others
    overwrite : replace finished outputs
    device : 'cpu', 'cuda', 'mps'; 'auto': the best there is
    quiet : no progress bars
    on_trained : called with each training, and what came of it
    """
    check_outputs(plan, resume=resume, overwrite=overwrite)
    for seed, trainings in plan.trainings.items():
        runs = []
        for training in trainings:
            work = TrainingOutput(training.recipe, training.checkpoint, resume, overwrite).work
            has_begun = training.checkpoint.exists() or work.exists()
            trained = train(
                training.recipe,
                training.checkpoint,
                resume=resume and has_begun,
                overwrite=overwrite,
                device=device,
                quiet=quiet,
            )
            on_trained(training, trained)
            if not (resume and training.run.is_file()):
                write_run(training.run, _rerank(training, device))
            runs.append(read_run(training.run))
        folds = [read_qids(training.fold / 'test.tsv') for training in trainings]
        write_run(plan.joined(seed), join_runs(runs, folds))


def _rerank(training: FoldTraining, device: str) -> Run:
    """The fold's test run, reranked by its model, as many hits as the validation reranks."""
    import torch

    topics = load_topics(str(training.fold / 'test.tsv'))
    settings = replace(training.validation, run=str(training.fold / 'test.run'))
    candidates = read_candidates(settings, {query.qid for query in topics}, 'folds')
    chosen = 'cuda' if device == 'auto' and torch.cuda.is_available() else 'cpu'
    reranker = open_reranker(training.checkpoint, chosen)
    return reranker.rank(topics, candidates, settings.depth)


def score_folds(plan: FoldsPlan, measures: Sequence[NamedMeasure]) -> list[FoldScores]:
    """Each measure's mean over the test topics of all folds, by seed.

    Judgments are as in the recipe's validation. A judged topic without hits counts 0.
    """
    values: dict[str, dict[int, float]] = {named.name: {} for named in measures}
    for seed, trainings in plan.trainings.items():
        judged = load_qrels(plan.validation.qrels)
        tested: list[str] = []
        for training in trainings:
            tested += read_qids(training.fold / 'test.tsv')
        qrels = {qid: judged[qid] for qid in tested if qid in judged}
        if not qrels:
            raise InputError(f'none of the test topics is judged in {plan.validation.qrels}')
        evaluation = evaluate(read_run(plan.joined(seed)), qrels, measures)
        for name, mean in evaluation.means.items():
            values[name][seed] = mean
    return [FoldScores(name, by_seed) for name, by_seed in values.items()]
