"""The command line of the converters of published weights."""

from __future__ import annotations

import importlib
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.commands import command


def run(name: str, source: str, description: str | None, given: list[str] | None = None) -> int:
    """Run the converter of the published checkpoint `name`; `source` says what is converted, for --help."""

    def main(arguments: list[str]) -> None:
        first = (description or '').partition('\n')[0]
        parser = command.Parser(prog=f'convert_{name}_checkpoint.py', description=first)
        parser.add_argument('source', type=Path, help=source)
        parser.add_argument('output', type=Path, help='the folder to make')
        parser.add_argument('--vocabulary', type=Path, help="a vocab.txt; default bert-base-uncased's")
        options = parser.parse_args(arguments)
        convert = getattr(importlib.import_module(f'pyserini_repbert.models.convert.{name}'), f'convert_{name}')
        ranking = catalog.get(str(catalog.checkpoint_kind(name)), name).values['ranking']
        convert(options.source, options.output, ranking, options.vocabulary)
        print(f'{options.output}: ready as --encoder {options.output}')

    return command.run(main, given)
