"""`python -m pyserini_repbert.train`: train a model by a recipe into a checkpoint folder."""

from __future__ import annotations

import argparse
import logging
import sys

from pyserini_repbert.commands import command
from pyserini_repbert.commands.flags import add_flags, record_output


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command's flags."""
    parser = command.parser(
        'train', 'Train a model by a recipe; on several GPUs with torchrun or accelerate.'
    )
    add = parser.add_argument
    add('recipe', help='a YAML file, or the name of a recipe of this package')
    add(
        '--set',
        action='append',
        default=[],
        metavar='KEY=VALUE',
        help='replace a value, as in training.steps=100',
    )
    add('--output', help='the checkpoint folder; default: runs/NAME')
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
    """Train a model by a recipe, and print its steps, its loss and its measure."""
    options = make_parser().parse_args(arguments)
    from pyserini_repbert.train.recipe_files import read_recipe, recipe_path

    recipe = read_recipe(recipe_path(options.recipe), tuple(options.set))
    output = options.output or f'runs/{recipe.name}'
    command.Parser.resumable = output
    command.use_threads(options.threads)
    if not options.quiet:
        logging.getLogger('pyserini_repbert.train').setLevel(logging.INFO)
    from pyserini_repbert.models.checkpoints.checkpoint import model_of
    from pyserini_repbert.names.inputs import input_of
    from pyserini_repbert.train.checkpoints import open_base
    from pyserini_repbert.train.output import is_first
    from pyserini_repbert.train.training import recorded_settings, train

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
    base = model_of(open_base(recipe.base), recipe.training.precision)
    inputs = [input_of(source.role, source.name) for source in recipe.inputs()]
    used = {'recipe_settings': recorded_settings(recipe, trained.folder)}
    record_output(options, str(trained.folder), ('recipe',), [base], inputs, used=used)
    text = f'{trained.folder}: {trained.steps} steps, mean loss {trained.loss:.4f}'
    if recipe.validation is not None and trained.best is not None:
        text += f', {recipe.validation.measure} {trained.validated}'
    print(text)
