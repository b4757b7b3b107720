"""What commands say of judged questions."""

from __future__ import annotations

import sys

from pyserini_repbert.commands import command


def warn_of_few(n_questions: int) -> None:
    """Say on stderr that so few questions say little about others, if they do."""
    from pyserini_repbert.collection.judging.asking import FEW_QUESTIONS

    if n_questions < FEW_QUESTIONS:
        questions = command.count_text(n_questions, 'judged question')
        verb = 'says' if n_questions == 1 else 'say'
        print(
            f'warning: {questions} {verb} little about others: judge {FEW_QUESTIONS} or more',
            file=sys.stderr,
        )
