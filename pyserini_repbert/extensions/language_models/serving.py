"""A language model as a reranker of a service: the setting `llm`, and the flags of `serve`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import model_validator

from pyserini_repbert.commands import command
from pyserini_repbert.commands.flags import add_flags
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.language_models.settings import NAME, LanguageModelSettings
from pyserini_repbert.serve.offered_rerankers import OfferedReranker
from pyserini_repbert.serve.service_parts import ServePart, ServicePart
from pyserini_repbert.serve.setting_values import NewFile, StrictSettings

if TYPE_CHECKING:
    from pyserini_repbert.rerank.base import Reranker
    from pyserini_repbert.serve.settings import ServeSettings


class ModelSettings(StrictSettings):
    """A language model by its address, which clients may name as a reranker, 'llm'.

    Attributes
    ----------
    model : its name at its server
    address : of an OpenAI-style server; None: answers come only from the file
    answers : the file that keeps them; None: they are kept in memory
    """

    model: str
    address: str | None = None
    answers: NewFile | None = None

    @model_validator(mode='after')
    def _is_a_model(self) -> Self:
        try:
            self.as_language_model()
        except InputError as error:
            raise ValueError(str(error)) from error
        return self

    def as_language_model(self) -> LanguageModelSettings:
        """The settings of the reranker. Raises InputError for a wrong name or address."""
        return LanguageModelSettings(self.model, self.address, self.answers)


class LanguageModelsInServices(ServicePart):
    """Offers the language model of the settings as a reranker."""

    service_settings: ClassVar[Mapping[str, tuple[Any, Any]]] = {NAME: (ModelSettings | None, None)}

    def rerankers(self, settings: ServeSettings) -> Mapping[str, OfferedReranker]:
        """As in `ServicePart`. Raises InputError for settings that offer 'llm', and name none."""
        named: ModelSettings | None = getattr(settings, NAME)
        if named is None:
            if NAME in (settings.rerankers or ()):
                raise InputError(
                    f"reranker '{NAME}' is a language model, and none was named: give its name and "
                    'its address',
                    parameters=('llm_model', 'llm'),
                )
            return {}
        model = named.as_language_model()

        def open_model() -> Reranker:
            from pyserini_repbert.extensions.language_models.reranker import LanguageModelReranker

            # An answer costs: nothing is asked before a client asks.
            return LanguageModelReranker(llm=model)

        return {NAME: OfferedReranker(NAME, open_model)}


class LanguageModelsInServe(ServePart):
    """The flags that name the language model."""

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        flags = parser.add_argument_group('language models')
        add_flags(flags, 'llm', 'llm_answers')
        add_flags(flags, 'llm_model', help="offer this language model as the reranker 'llm'")

    def check(self, options: argparse.Namespace) -> None:
        command.refuse(
            options.llm_model is None and (options.llm or options.llm_answers) is not None,
            '--llm and --llm-answers go with --llm-model: name the model',
        )

    def settings(self, options: argparse.Namespace) -> dict[str, Any]:
        """As in `ServePart`. Raises InputError for a wrong name or address."""
        if options.llm_model is None:
            return {}
        model = LanguageModelSettings(options.llm_model, options.llm, options.llm_answers)
        return {
            NAME: ModelSettings(model=model.model, address=model.address, answers=model.answers)
        }


IN_SERVICES = LanguageModelsInServices()
IN_SERVE = LanguageModelsInServe()
