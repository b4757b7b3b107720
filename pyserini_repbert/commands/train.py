"""`python -m pyserini_repbert.train`: train a model by a recipe into a checkpoint folder."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.commands import command
from pyserini_repbert.commands.flags import add_flags
from pyserini_repbert.commands.output_files import record_output

if TYPE_CHECKING:
    from pyserini_repbert.train.recipe import Recipe


def make_parser() -> command.Parser:
    """The command's flags."""
    parser = command.parser(
        'train', 'Train a model by a recipe. For several GPUs, start it with torchrun or accelerate.'
    )
    parser.add_argument('recipe', help='a YAML file, or the name of a recipe that ships')
    parser.add_argument(
        '--set', action='append', default=[], metavar='KEY=VALUE', help='replace a value, as in training.steps=100'
    )
    parser.add_argument('--output', help='the checkpoint folder; default: runs/NAME')
    parser.add_argument('--device', default='auto', help='cpu, or auto: a GPU if there is one')
    add_flags(parser, 'threads')
    parser.add_argument(
        '--logs', default='csv', choices=('csv', 'tensorboard'), help='log.csv, or also event files in tensorboard/'
    )
    add_flags(parser, 'offline', 'begun')
    return parser


def main(arguments: list[str]) -> int | None:
    """Run the command."""
    options = make_parser().parse_args(arguments)
    from pyserini_repbert.train.reading import read_recipe, recipe_path

    recipe = read_recipe(recipe_path(options.recipe), tuple(options.set))
    command.use_threads(options.threads)
    if not options.quiet:
        logging.getLogger('pyserini_repbert.train').setLevel(logging.INFO)
    output = options.output or f'runs/{recipe.name}'
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
    if int(os.environ.get('RANK', '0')):
        return 0
    _record(options, recipe, trained.folder)
    measured = (
        f', {recipe.validation.measure} {trained.validated}' if recipe.validation and trained.best is not None else ''
    )
    print(f'{trained.folder}: {trained.steps} steps, mean loss {trained.loss:.4f}{measured}')
    return 0


def _record(options: argparse.Namespace, recipe: Recipe, folder: Path) -> None:
    """Write the record: the base that the training began with, and the files that it read."""
    from pyserini_repbert.models.checkpoints.checkpoint import model_of
    from pyserini_repbert.names.inputs import input_of
    from pyserini_repbert.train.checkpoints import open_base

    inputs = [input_of(role, name) for role, name in recipe.inputs()]
    base = model_of(open_base(recipe.base), recipe.training.precision)
    record_output(options, str(folder), ('recipe',), [base], inputs)
