"""`python -m pyserini_repbert.train`: train a model from a recipe into a checkpoint folder."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.commands import command, outputs
from pyserini_repbert.commands.flags import add_flags, record_output

if TYPE_CHECKING:
    from pyserini_repbert.tasks.recipe import Recipe


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command's flags."""
    parser = command.parser(
        'train', 'Train a model from a recipe; on several GPUs with torchrun or accelerate.'
    )
    add = parser.add_argument
    add('recipe', help='a YAML file, or the name of a recipe in this package')
    add(
        '--set',
        action='append',
        default=[],
        metavar='KEY=VALUE',
        help='replace a value, such as training.steps=100',
    )
    add(
        '--folds',
        metavar='FOLDER',
        help='train a model for each fold that `evaluate split-folds` wrote; rerank the test '
        "runs, join and score them; the recipe names a fold's folder ${FOLD}; in --set, "
        '{fold} and {seed} are numbers',
    )
    add(
        '--seeds',
        type=command.whole_number,
        nargs='+',
        default=[],
        help="with --folds: train each fold with each seed; default: the recipe's",
    )
    add(
        '--measures',
        nargs='+',
        default=[],
        help="with --folds: measures of the joined runs; default: the validation's",
    )
    add('--output', type=outputs.OutputPath, help='the checkpoint folder; default: runs/NAME')
    add('--device', default='auto', help='cpu, or auto: a GPU if there is one')
    add(
        '--logs',
        default='csv',
        choices=('csv', 'tensorboard'),
        help='log.csv, or also event files in tensorboard/',
    )
    add_flags(parser, 'threads', 'offline', 'begun')
    return parser


def main(arguments: list[str]) -> None:
    """Train a model from a recipe, and print its steps, its loss and its measure."""
    options = make_parser().parse_args(arguments)
    command.refuse(
        not options.folds and (options.seeds or options.measures),
        '--seeds and --measures are for --folds: give it, or leave them out',
    )
    command.use_threads(options.threads)
    if not options.quiet:
        logging.getLogger('pyserini_repbert.train').setLevel(logging.INFO)
    if options.folds:
        _train_folds(options)
    else:
        _train_one(options)


def _train_one(options: argparse.Namespace) -> None:
    """Train one model."""
    from pyserini_repbert.train.recipe_files import read_recipe, recipe_path

    recipe = read_recipe(recipe_path(options.recipe), tuple(options.set))
    output = options.output or f'runs/{recipe.name}'
    command.Parser.resumable = output
    from pyserini_repbert.train.output import is_first
    from pyserini_repbert.train.training import train

    trained = train(
        recipe,
        output,
        resume=options.resume,
        overwrite=options.overwrite,
        device=options.device,
        quiet=options.quiet or not sys.stderr.isatty(),
        tensorboard=options.logs == 'tensorboard',
    )
    if not is_first():
        return
    _record(options, recipe, trained.folder)
    text = f'{trained.folder}: {trained.steps} steps, mean loss {trained.loss:.4f}'
    if recipe.validation is not None and trained.best is not None:
        text += f', {recipe.validation.measure} {trained.validated}'
    print(text)


def _record(options: argparse.Namespace, recipe: Recipe, checkpoint: Path) -> None:
    """Write the record of a trained checkpoint."""
    from pyserini_repbert.models.checkpoints.checkpoint import model_of
    from pyserini_repbert.names.inputs import input_of
    from pyserini_repbert.train.checkpoints import open_base
    from pyserini_repbert.train.training import recorded_settings

    base = model_of(open_base(recipe.base), recipe.training.precision)
    inputs = [input_of(source.role, source.name) for source in recipe.inputs()]
    used = {'recipe_settings': recorded_settings(recipe, checkpoint)}
    record_output(options, str(checkpoint), ('recipe',), [base], inputs, used=used)


def _train_folds(options: argparse.Namespace) -> None:
    """Train a model of each fold and seed, and print the measures of the joined runs."""
    command.refuse(
        options.logs != 'csv', '--logs tensorboard is for one training: leave it or --folds out'
    )
    command.refuse(
        int(os.environ.get('WORLD_SIZE', '1')) > 1,
        '--folds trains in one process: start one for each GPU with CUDA_VISIBLE_DEVICES and '
        'another seed',
    )
    from pyserini_repbert.evaluate.measures import parse_measures
    from pyserini_repbert.evaluate.tables import markdown
    from pyserini_repbert.train import folds
    from pyserini_repbert.train.recipe_files import recipe_path
    from pyserini_repbert.train.result import Trained

    path = recipe_path(options.recipe)
    output = options.output or f'runs/{path.stem}'
    command.Parser.resumable = output
    plan = folds.plan_folds(
        path, options.set, folds=options.folds, output=output, seeds=options.seeds
    )
    names = options.measures or [plan.validation.measure]
    measures = parse_measures(names)

    def show(training: folds.FoldTraining, trained: Trained) -> None:
        _record(options, training.recipe, trained.folder)
        validated = f'{training.validation.measure} {trained.validated}'
        print(f'{trained.folder}: {trained.steps} steps, {validated}', flush=True)

    folds.train_folds(
        plan,
        resume=options.resume,
        overwrite=options.overwrite,
        device=options.device,
        quiet=options.quiet or not sys.stderr.isatty(),
        on_trained=show,
    )
    scores = folds.score_folds(plan, measures)
    rows = []
    for seed in plan.trainings:
        record_output(options, str(plan.joined(seed)), ('recipe', 'folds'))
        rows.append([str(seed), *(f'{score.values[seed]:.4f}' for score in scores)])
    if len(rows) > 1:
        rows.append(['mean ± standard deviation', *(score.summary for score in scores)])
    print(markdown(['seed', *(score.measure for score in scores)], rows))
