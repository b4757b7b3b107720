"""Language models in `search` and `rerank`: their flags, and their answers for the record."""

from __future__ import annotations

import argparse
from typing import Any

from pyserini_repbert.commands import command
from pyserini_repbert.commands.flags import add_flags
from pyserini_repbert.commands.parts import CommandPart
from pyserini_repbert.trace import Notes


class LanguageModelsInRerank(CommandPart):
    """A stage may be a language model, 'llm@20'."""

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        flags = parser.add_argument_group('language models')
        add_flags(flags, 'llm', 'llm_model', 'llm_answers')

    def check(self, options: argparse.Namespace) -> None:
        """As in `CommandPart`. Raises InputError for a wrong name or address, too."""
        named = (options.llm_model, options.llm, options.llm_answers)
        if named == (None, None, None):
            return
        from pyserini_repbert.extensions.language_models.settings import (
            is_language_model,
            named_model,
        )
        from pyserini_repbert.pipeline.spec import parse_stage

        named_model(*named)
        names = [parse_stage(stage).name for stage in options.stages or ()]
        command.refuse(
            not self.rewrites(options) and not any(map(is_language_model, names)),
            '--llm-model is for a stage llm@K, or for --rewrite: name one, or leave it out',
        )

    def rewrites(self, options: argparse.Namespace) -> bool:
        """Whether a language model rewrites questions."""
        return False

    def record(self, notes: Notes) -> dict[str, Any]:
        """Each stage's answers from language models; empty if there are none.

        A run that is repeated by kept answers has the same values.
        """
        stages = {}
        for part in notes.walk():
            cost = part.cost
            if cost is not None and cost.repaired is not None:
                # Two stages may have one label, and never one name.
                stages[part.name] = {
                    'answers': cost.inferences,
                    'tokens': cost.tokens,
                    'answer_tokens': cost.answer_tokens,
                    'repaired': cost.repaired,
                }
        return {'language_models': stages} if stages else {}


class LanguageModelsInSearch(LanguageModelsInRerank):
    """The same; a language model may also rewrite questions."""

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        flags = parser.add_argument_group('language models')
        add_flags(flags, 'rewrite', 'llm', 'llm_model', 'llm_answers')

    def check(self, options: argparse.Namespace) -> None:
        super().check(options)
        command.refuse(
            options.rewrite is not None and bool(options.like),
            '--rewrite is for questions, and --like is a document: leave one out',
        )

    def rewrites(self, options: argparse.Namespace) -> bool:
        return options.rewrite is not None


IN_RERANK = LanguageModelsInRerank()
IN_SEARCH = LanguageModelsInSearch()
