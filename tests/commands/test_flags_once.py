"""A flag of one value is refused where it stands twice with different values, in every command."""

import argparse

import pytest
from command_parsers import all_parsers

from pyserini_repbert.errors import InputError


def two_values(action):
    """Two lists of words that a flag takes."""
    if action.choices:
        values = [str(choice) for choice in action.choices]
        return ([values[0]], [values[-1]])
    for values in (['1', '2'], ['1', '0'], ['a', 'b'], ['a.md', 'b.md']):
        try:
            for value in values:
                if action.type is not None:
                    action.type(value)
        except (ValueError, argparse.ArgumentTypeError, InputError):
            continue
        return ([values[0]], [values[1]])
    raise AssertionError(f'no value for {action.option_strings}')


def test_a_flag_of_one_value_is_refused_twice():
    n_flags = 0
    for parser in all_parsers().values():
        for action in parser._actions:
            is_store = isinstance(action, argparse._StoreAction)
            if not action.option_strings or not is_store:
                continue
            first, second = two_values(action)
            if isinstance(action.nargs, int):
                first = first * action.nargs
                second = second * action.nargs
            flag = action.option_strings[-1]
            with pytest.raises(InputError, match='were given: give one'):
                parser.parse_args([flag, *first, flag, *second])
            n_flags += 1
    assert n_flags > 150
