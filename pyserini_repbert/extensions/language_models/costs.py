"""The command `evaluate costs`: what language models took, in tokens and money."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert.commands.command import finite_number, parser, refuse
from pyserini_repbert.commands.console import printable
from pyserini_repbert.commands.flags import parse_flags
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.evaluate.tables import markdown

# Prices are of so many tokens.
_PRICED = 1_000_000
_SQLITE = b'SQLite format 3\x00'


@dataclass(frozen=True)
class _ModelCost:
    """What a model took, for a row of the table.

    Attributes
    ----------
    source : the file, and the stage of a run
    model : its name
    answers : how many it gave
    prompt_tokens, answer_tokens : as its server counts them
    """

    source: str
    model: str
    answers: int
    prompt_tokens: int
    answer_tokens: int


def costs(arguments: Sequence[str]) -> None:
    """Print the answers and tokens of language models, and what these cost by the given prices."""
    options = _parse(arguments)
    has_prices = options.prompt_price is not None
    header = ['file', 'model', 'answers', 'prompt tokens', 'answer tokens']
    if has_prices:
        header.append('money')
    rows = []
    for path in options.files:
        for cost in _costs_of(path):
            row = [printable(cost.source), printable(cost.model)]
            for count in (cost.answers, cost.prompt_tokens, cost.answer_tokens):
                row.append(str(count))
            if has_prices:
                row.append(_money(cost, options))
            rows.append(row)
    print(markdown(header, rows))
    if has_prices:
        print(
            f'\nat {options.prompt_price:g} for a million tokens of prompts, '
            f'{options.answer_price:g} of answers; every answer counts once, also one that was kept'
        )


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    flags = parser(
        'evaluate costs',
        'The tokens that language models took for a run, as its record has them, or for all '
        'answers in a file of --llm-answers; and their price.',
    )
    add = flags.add_argument
    add('files', nargs='+', metavar='FILE', help='runs, and files of answers')
    add(
        '--prompt-price',
        type=finite_number,
        metavar='MONEY',
        help='price of a million tokens of prompts',
    )
    add(
        '--answer-price',
        type=finite_number,
        metavar='MONEY',
        help='price of a million tokens of answers',
    )
    options = parse_flags(flags, arguments)
    prices = (options.prompt_price, options.answer_price)
    refuse(
        (options.prompt_price is None) != (options.answer_price is None),
        '--prompt-price and --answer-price go together: give both',
    )
    refuse(
        any(price is not None and price < 0 for price in prices),
        'a price is below 0: give 0 or more',
    )
    return options


def _money(cost: _ModelCost, options: argparse.Namespace) -> str:
    """What tokens cost by the given prices."""
    money = cost.prompt_tokens * options.prompt_price + cost.answer_tokens * options.answer_price
    return f'{money / _PRICED:.4f}'


def _costs_of(path: str) -> Iterator[_ModelCost]:
    """The costs of a file of answers, a row for each model, or of a run, a row for each stage.

    Raises InputError for a file that is neither.
    """
    from pyserini_repbert.extensions.language_models.answers import AnswerFile
    from pyserini_repbert.files import existing_file

    file = existing_file(path, 'run or file of answers')
    if not _is_sqlite(file):
        yield from _costs_of_run(path)
        return
    for model, totals in AnswerFile(file).totals().items():
        yield _ModelCost(
            source=path,
            model=model,
            answers=totals.answers,
            prompt_tokens=totals.prompt_tokens,
            answer_tokens=totals.answer_tokens,
        )


def _is_sqlite(file: Path) -> bool:
    with file.open('rb') as stream:
        return stream.read(len(_SQLITE)) == _SQLITE


def _costs_of_run(path: str) -> Iterator[_ModelCost]:
    """The costs in the record of a run. Raises InputError for one without a language model."""
    from pyserini_repbert.record import read_record

    record = read_record(path)
    stages = None if record is None else record.settings.get('language_models')
    if record is None or not isinstance(stages, dict):
        raise InputError(
            f'{path} is not a file of answers, and has no record of a language model: give a run '
            'that a language model reranked, or the file of --llm-answers'
        )
    model = str(record.settings.get('llm_model'))
    for stage, values in stages.items():
        try:
            answer_tokens = int(values['answer_tokens'])
            yield _ModelCost(
                source=f'{path}: {stage}',
                model=model,
                answers=int(values['answers']),
                prompt_tokens=int(values['tokens']) - answer_tokens,
                answer_tokens=answer_tokens,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFileError(
                f'{path} has a record of a language model that lacks its counts: make the run again'
            ) from error
