"""What language models add to a pipeline: fields of its spec, and the rewriting of questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from pyserini_repbert.commands.outputs import OutputPath
from pyserini_repbert.pipeline.parts import PipelinePart

if TYPE_CHECKING:
    from pyserini_repbert.extensions.language_models.settings import LanguageModelSettings
    from pyserini_repbert.pipeline.pipeline import Pipeline
    from pyserini_repbert.pipeline.spec import PipelineSpec


class LanguageModelsInPipelines(PipelinePart):
    """A language model reranks, where a stage is 'llm', and rewrites questions."""

    fields: ClassVar[Mapping[str, tuple[Any, Any]]] = {
        'rewrite': (
            str | None,
            Field(
                default=None,
                description='search with an answer that a language model (--llm-model) writes: '
                'hyde, for dense rankings, or query2doc; as in '
                'hyde:passages=4,tokens=256,prompt=FILE',
                json_schema_extra={'metavar': 'METHOD[:SETTINGS]'},
            ),
        ),
        'llm': (
            str | None,
            Field(
                default=None,
                description='address of an OpenAI-style server, such as http://127.0.0.1:8000/v1, '
                'which gets questions and passages; none: use only stored answers',
                json_schema_extra={'metavar': 'ADDRESS'},
            ),
        ),
        'llm_model': (
            str | None,
            Field(
                default=None,
                description="the language model of the reranker 'llm', and of rewriting",
                json_schema_extra={'metavar': 'NAME'},
            ),
        ),
        'llm_answers': (
            Annotated[str | None, OutputPath],
            Field(
                default=None,
                description='the file that stores its answers, to repeat a run without the server',
                json_schema_extra={'metavar': 'FILE'},
            ),
        ),
    }

    def reranker_settings(self, spec: PipelineSpec) -> Mapping[str, Any]:
        """As in `PipelinePart`. Raises InputError for an address or a file without a model."""
        return {'llm': _model_of(spec)}

    def needs_identities(self, spec: PipelineSpec) -> bool:
        from pyserini_repbert.extensions.language_models.settings import is_language_model

        asked: Any = spec
        if asked.rewrite is not None:
            return True
        return any(is_language_model(stage.name) for stage in spec.stages)

    def wrap(self, pipeline: Pipeline, spec: PipelineSpec) -> Pipeline:
        """The pipeline, which searches for rewritten questions on request.

        Raises the errors of `open_rewriting` and of `Pipeline.with_rewriting`.
        """
        asked: Any = spec
        if asked.rewrite is None:
            return pipeline
        from pyserini_repbert.extensions.language_models.rewriting import open_rewriting

        return pipeline.with_rewriting(open_rewriting(asked.rewrite, _model_of(spec)))


def _model_of(spec: PipelineSpec) -> LanguageModelSettings | None:
    """The language model that a spec names. Raises the errors of `named_model`."""
    from pyserini_repbert.extensions.language_models.settings import named_model

    asked: Any = spec
    return named_model(asked.llm_model, asked.llm, asked.llm_answers)


IN_PIPELINES = LanguageModelsInPipelines()
