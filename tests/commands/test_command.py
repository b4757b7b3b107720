import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.errors import InputError, MismatchError


@pytest.mark.parametrize(
    ('error', 'line'),
    [
        (
            InputError('no passages', parameters=('store_text', 'corpus')),
            'error: no passages (--store-text, --corpus)\n',
        ),
        (MismatchError('begun otherwise', parameters=('resume',)), 'error: begun otherwise (--resume)\n'),
        (InputError('nothing\nhelps'), 'error: nothing helps\n'),
    ],
)
def test_parameters_that_help_are_shown_as_flags(error, line, capsys):
    """A library speaks of its parameters, a command of its flags; both in one line."""

    def main(arguments):
        raise error

    assert run(main, []) == 2
    assert capsys.readouterr().err == line
