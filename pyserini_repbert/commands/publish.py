"""`python -m pyserini_repbert.publish`: a checkpoint to a repository for the Hugging Face hub."""

from __future__ import annotations

import argparse

from pyserini_repbert.commands import command


def make_parser() -> argparse.ArgumentParser:
    """The command's flags."""
    parser = command.parser(
        'publish',
        'Write a checkpoint as a repository for the Hugging Face hub: merged weights, tokenizer, a card with licence '
        'and results. transformers opens it; RepBERT is a model of sentence-transformers too. Nothing is uploaded '
        'without --push.',
    )
    parser.add_argument('checkpoint', metavar='CHECKPOINT', help='a folder or a catalog name')
    parser.add_argument('--output', required=True, metavar='FOLDER', help='the folder to write')
    parser.add_argument('--name', help="the model's name; by default that of the output folder")
    parser.add_argument('--licence', help="as the hub spells it; by default that of the checkpoint's card")
    parser.add_argument(
        '--evaluation',
        action='append',
        default=[],
        metavar='DATA=FILE',
        help='results of the model: what evaluate --json printed for one run over DATA; repeatable',
    )
    parser.add_argument('--push', metavar='OWNER/NAME', help='upload it there, with the token of hf auth login')
    parser.add_argument('--private', action='store_true', help='a private repository, with --push')
    return parser


def main(arguments: list[str]) -> int | None:
    """Run the command."""
    options = make_parser().parse_args(arguments)
    if options.private and not options.push:
        raise command.usage('--private is for --push')
    from pathlib import Path

    from pyserini_repbert import catalog
    from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
    from pyserini_repbert.publish.card import Card, read_results
    from pyserini_repbert.publish.repository import prepare, push

    results = {}
    for given in options.evaluation:
        name, equals, path = given.partition('=')
        if not (name and equals and path):
            raise command.usage(f"--evaluation '{given}': expected DATA=FILE")
        results[name] = read_results(path)
    card = Card(options.name or Path(options.output).name, options.licence, results)
    checkpoint = open_checkpoint(options.checkpoint, catalog.checkpoint_kind(options.checkpoint) or 'encoders')
    files = prepare(checkpoint, options.output, card)
    print(f'{options.output}: {len(files)} files')
    if options.push:
        print(push(options.output, options.push, options.private))
    return 0
