"""A language model as a judge in `index judgments`: its flags, and the report on its work."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyserini_repbert.collection.commands.parts import JudgmentsPart
from pyserini_repbert.commands import command
from pyserini_repbert.commands.console import printable
from pyserini_repbert.commands.flags import add_flags
from pyserini_repbert.extensions.language_models.settings import NAME, LanguageModelSettings

_POOL_DEPTH = 5
# Flags that only concern a language model.
_OF_MODEL = ('llm', 'llm_model', 'llm_answers', 'judge_prompt', 'pool_depth', 'even_if_circular')


class LanguageModelsInJudgments(JudgmentsPart):
    """A language model grades the pool of each question, beside people."""

    judge = NAME

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        flags = parser.add_argument_group(
            'a language model as a judge',
            f'--judge {NAME}: a language model grades the pool of each question, beside people',
        )
        add = flags.add_argument
        add_flags(flags, 'llm', 'llm_answers')
        add_flags(flags, 'llm_model', help=f'the language model of --judge {NAME}')
        add(
            '--judge-prompt',
            metavar='FILE',
            help=f'of --judge {NAME}: a prompt with {{query}} and {{passage}}; default: the '
            'shipped one',
        )
        add(
            '--pool-depth',
            type=command.positive_int,
            metavar='N',
            help=f'of --judge {NAME}: grade the best N documents of the search and of each of its '
            f'rankings, and those that people judged; default: {_POOL_DEPTH}',
        )
        add(
            '--even-if-circular',
            action='store_true',
            help='let a model judge the hits of a search that learned from its grades',
        )

    def check(self, options: argparse.Namespace) -> None:
        judges = options.judge == NAME
        command.refuse(
            judges and bool(options.qrels),
            f"--judge {NAME} lets a language model judge: give the person's name with --qrels",
        )
        for name in _OF_MODEL:
            command.refuse(
                not judges and getattr(options, name) not in (None, False),
                f'--{name.replace("_", "-")} is for --judge {NAME}',
            )
        command.refuse(judges and options.llm_model is None, f'--judge {NAME} takes --llm-model')

    def grade(self, options: argparse.Namespace, folder: Path) -> None:
        """As in `JudgmentsPart`. Raises the errors of `grade_pool`."""
        from pyserini_repbert.collection.adaptation import judgments_of
        from pyserini_repbert.extensions.language_models.judge import TRIES, LanguageModelJudge
        from pyserini_repbert.extensions.language_models.judging import grade_pool

        settings = LanguageModelSettings(options.llm_model, options.llm, options.llm_answers)
        judge = LanguageModelJudge(settings, options.judge_prompt)
        n_questions = len(judgments_of(folder).questions())
        with command.progress(n_questions, 'judge', 'question', options.quiet) as bar:
            judging = grade_pool(
                folder,
                judge,
                options.pool_depth or _POOL_DEPTH,
                device=options.device,
                even_if_circular=options.even_if_circular,
                on_progress=bar.update,
            )
        work = judge.work
        documents = command.count_text(judging.graded, 'document')
        print(
            f"language model '{printable(judge.judge.name)}' graded {documents}, {judging.known} "
            'had a grade'
        )
        print(
            f'  {work.calls} answers asked for, {work.answers - work.calls} kept; '
            f'{work.prompt_tokens} tokens of prompts, {work.answer_tokens} of answers'
        )
        if work.malformed:
            print(
                f'  {work.malformed} answers had no grade from 0 to 3; {judging.ungraded} '
                f'documents have none after {TRIES} answers'
            )


IN_JUDGMENTS = LanguageModelsInJudgments()
