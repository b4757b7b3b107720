"""`PipelineSpec`: what to run, as a user says it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, field_validator, model_validator

from pyserini_repbert.data.checked_values import CheckedValues, with_fields
from pyserini_repbert.data.values import one_or_more, share
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import loaded
from pyserini_repbert.extension_words import missing_extension
from pyserini_repbert.fusion import methods as fusion_methods
from pyserini_repbert.fusion.methods import FusionName, NormalizationName
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.names.rankers import names_class
from pyserini_repbert.search.aggregation import AggregationName
from pyserini_repbert.search.scans import asked_scan, scans
from pyserini_repbert.systems.registry import (
    StageOption,
    WrappingOption,
    reads_index,
    stage_options,
    systems,
    wrapping_options,
)

_Spec = TypeVar('_Spec', bound=CheckedValues)

WEIGHT = StageOption('weight=W', 'weight', share)
EXCERPTS = StageOption('passages=N', 'n_excerpts', one_or_more)


def options_of_all() -> tuple[StageOption, ...]:
    """The options that stages of all systems take."""
    return (WEIGHT, *options_of_clients())


def options_of_clients() -> tuple[StageOption, ...]:
    """The options that a client of a service may set."""
    return (EXCERPTS, *wrapping_options())


@dataclass(frozen=True)
class StageSpec:
    """A reranker by name (catalog name, checkpoint folder, or MODULE:CLASS), which reranks the k
    best candidates.

    `options` are its keyword arguments, `Reranker.score_share`, `Reranker.n_excerpts`, and values
    of each `WrappingOption`.
    """

    name: str
    k: int
    options: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        keys = {option.parameter: option.key for option in options_of_all()}
        settings = ','.join(f'{keys.get(key, key)}={value}' for key, value in self.options)
        return f'{self.name}@{self.k}' + (f':{settings}' if settings else '')

    @property
    def label(self) -> str:
        """A short name for reports: 'duobert-large@50', the last part of a folder."""
        return f'{Path(self.name).name}@{self.k}'

    @property
    def score_share(self) -> float | None:
        """The share of its score; None: it replaces the score of the stage before."""
        share_of_score: float | None = dict(self.options).get(WEIGHT.parameter)
        return share_of_score

    @property
    def n_excerpts(self) -> int:
        """How many passages of a document it reads."""
        return int(dict(self.options).get(EXCERPTS.parameter, 1))

    @property
    def wrapping(self) -> list[tuple[WrappingOption, Any]]:
        """The options that make another reranker of its reranker, with their values."""
        values = dict(self.options)
        return [
            (option, values[option.parameter])
            for option in wrapping_options()
            if option.parameter in values
        ]

    @property
    def own_options(self) -> dict[str, Any]:
        """The options of its reranker: those that not all systems take."""
        of_all = [option.parameter for option in options_of_all()]
        return {name: value for name, value in self.options if name not in of_all}

    @property
    def reads_index(self) -> bool:
        """Whether it reads the index that is searched."""
        return reads_index(self.name) or bool(self.wrapping)


def parse_stage(text: str) -> StageSpec:
    """A stage from its text: 'monobert-large@1000', 'duobert-large@50:binary',
    'duobert-large@50:sample=10,seed=1'.

    K may be the name of one of CEDR's settings: 'FOLDER@robust04' takes 150 candidates, '@webtrack'
    100. Raises InputError for a text of another form, or an option that occurs twice. An unknown
    METHOD is refused when the reranker is opened.
    """
    name, at, rest = text.rpartition('@')
    depth_text, colon, settings = rest.partition(':')
    depth = _parse_depth(depth_text)
    if not (at and name and depth) or (colon and not settings):
        raise InputError(f"stage '{text}': expected {_form()}, K at least 1")
    options: dict[str, Any] = {}
    for setting in settings.split(',') if colon else []:
        parsed = _parse_option(text, setting)
        repeated = sorted(parsed.keys() & options.keys())
        if repeated:
            raise InputError(f"stage '{text}' has more than one {repeated[0]}: give one")
        options |= parsed
    return StageSpec(name, depth, tuple(options.items()))


def _parse_depth(text: str) -> int:
    """The depth that a number or the name of a setting means; 0 for anything else."""
    for system in systems().values():
        if text in system.stage_depths:
            return system.stage_depths[text]
    try:
        return one_or_more(text)
    except ValueError:
        return 0


def _parse_option(stage: str, setting: str) -> dict[str, Any]:
    """The keyword arguments of one option of a stage: 'seed=1', or 'binary', a METHOD."""
    key, equals, value = setting.partition('=')
    if not equals:
        key = 'method'
        value = setting
    options = {**stage_options(), **{option.key: option for option in options_of_all()}}
    if key not in options:
        raise InputError(
            f"stage '{stage}': there is no option '{key}', and no extension that is installed has "
            f'one: expected {_form()}{missing_extension(key)}'
        )
    option = options[key]
    try:
        return {**option.implies, option.parameter: option.read(value)}
    except ValueError as error:
        raise InputError(f"stage '{stage}': '{setting}': {error}: expected {_form()}") from error


def _form() -> str:
    """How a stage is written, as an error shows it."""
    options = [*stage_options().values(), *options_of_all()]
    forms = ', '.join(option.form for option in options)
    return f"'NAME@K' or 'NAME@K:OPTION,…' with OPTION one of {forms}"


def check_depths(names: Sequence[str], depths: Sequence[int]) -> None:
    """Raises InputError for a depth below 1, or a stage that takes more candidates than the one
    before.
    """
    for (before, most), (after, depth) in itertools.pairwise(zip(names, depths, strict=True)):
        if depth > most:
            raise InputError(
                f'stage {after} takes {depth} candidates, but {before} before it takes '
                f'only {most}: each stage takes at most as many as the one before'
            )
    if min(depths, default=1) < 1:
        raise InputError(f'depths {list(depths)}: each stage takes at least 1 candidate')


def _with_added_fields(spec: type[_Spec]) -> type[_Spec]:
    """A decorator of a spec: it has the fields, too, that extensions add."""
    fields: dict[str, tuple[Any, Any]] = {}
    for part in loaded('in_pipelines'):
        fields |= part.fields
    return with_fields(spec, fields)


@_with_added_fields
class PipelineSpec(CheckedValues):
    """All that decides the rankings of a pipeline.

    Without `index`, `encoder` and `sparse` it reranks a given run. Extensions add
    fields.

    The descriptions are the help of the flags that commands make from the fields.
    """

    index: str | None = Field(
        default=None,
        description='an index folder or a catalog name: one ranking',
    )
    encoder: str | None = Field(
        default=None,
        description='catalog name or checkpoint folder; default: the one that the index names',
    )
    max_length: int | None = Field(
        default=None, ge=1, description='wordpieces of a query to read at most'
    )
    device_dtype: Literal['float16', 'float32'] = Field(
        default='float16', description='how a GPU holds the vectors; a CPU uses float32'
    )
    sparse: tuple[str, ...] = Field(
        default=(),
        description='one more ranking: bm25@FOLDER, a Lucene folder, or your own first '
        'stage; repeatable',
        json_schema_extra={'metavar': 'NAME[@INDEX]|FOLDER|MODULE:CLASS'},
    )
    k1: float | None = Field(
        default=None, description="BM25's k1; default: the k1 of the sparse ranking or index"
    )
    b: float | None = Field(
        default=None, description="BM25's b; default: the b of the sparse ranking or index"
    )
    language: str | None = Field(
        default=None,
        description="language of Lucene indexes that do not record it, such as 'de'; default: en",
        json_schema_extra={'metavar': 'CODE'},
    )
    rankings: tuple[str, ...] = Field(
        default=(),
        description='rankings of a collection: dense, bm25, sparse (a learned one), multi (token '
        'vectors), rescored (the best of the others by token vectors); default: those it was set '
        'to or has learned, at first rescored if token vectors are stored, otherwise all',
        json_schema_extra={'metavar': 'RANKING', 'nargs': '+'},
    )
    aggregate: AggregationName = Field(
        default='max',
        description='of a collection: how passage scores become the score of their document',
    )
    filter: str | None = Field(
        default=None,
        description="of a collection: search only the documents that match, as in 'type:guide "
        "AND year:[2020 TO *]'",
    )
    only_ids: str | None = Field(
        default=None,
        description='of a collection: search only the documents in this list, one docid on each '
        'line',
        json_schema_extra={'metavar': 'FILE'},
    )
    not_ids: str | None = Field(
        default=None,
        description='of a collection: leave out the documents in this list, one docid on each line',
        json_schema_extra={'metavar': 'FILE'},
    )
    remove_duplicates: bool = Field(
        default=False, description='keep only the best hit of a docid that occurs twice'
    )
    fusion: FusionName = Field(
        default='interleave',
        description='how rankings become one; interpolation usually ranks best; default: '
        'interleave; of a collection, what it was set to or has learned, at first interpolation',
        json_schema_extra={'flags': ['--method']},
    )
    sparse_first: bool = Field(default=False, description='interleave the sparse rankings first')
    alpha: float | None = Field(
        default=None,
        description="interpolation: the first ranking's weight; default 0.5; of a collection's two "
        'rankings, 0.6 for the vectors',
    )
    weights: tuple[float, ...] = Field(
        default=(),
        description='interpolation: a weight for each ranking, in their order',
        json_schema_extra={'metavar': 'W'},
    )
    normalize: NormalizationName | None = Field(
        default=None,
        description='interpolation: how scores are scaled first; default minmax, or background for '
        'a collection',
    )
    rrf_k: float | None = Field(
        default=None,
        description='rrf: the constant that is added to each rank, default 60',
        json_schema_extra={'flags': ['--rrf.k']},
    )
    depth: int | None = Field(
        default=None, ge=1, description='fuse only this many of the best hits of each ranking'
    )
    adapted: str | None = Field(
        default=None,
        description='use the query map, weights and indexes of a folder that `adapt` wrote; '
        'none: search a collection without what it learned',
        json_schema_extra={'metavar': 'FOLDER'},
    )
    prf: str | None = Field(
        default=None,
        description='search again with vectors of the best hits: average, or rocchio, as in '
        'rocchio:depth=5,alpha=0.4,beta=0.6',
        json_schema_extra={'metavar': 'METHOD[:SETTINGS]'},
    )
    stages: tuple[StageSpec, ...] = Field(
        default=(),
        description='rerank the best K hits, as in monobert-large@1000, duobert-large@50:binary, '
        'FOLDER@50:sample=10,layout=code or MODULE:CLASS@50; repeatable, for several stages',
        json_schema_extra={'metavar': 'NAME@K[:OPTIONS]'},
    )
    precision: str = Field(default='float32', description='what models run in')
    backend: Literal['torch', 'onnx', 'onnx-int8'] = Field(
        default='torch', description='what runs models'
    )
    drop_rest: bool = Field(default=False, description='drop the candidates below K')
    save_scores: bool = Field(
        default=False, description='keep scores of the last stages, for a replay without a model'
    )
    replay_k0: tuple[int, ...] = Field(
        default=(),
        description='with --pairs: also compare the pairs that a replay with these numbers of '
        'candidates (k0) needs',
        json_schema_extra={'metavar': 'K'},
    )
    corpus: str | None = Field(
        default=None,
        description="the corpus with the passages to rerank; default: the first stage's",
    )
    texts_index: str | None = Field(
        default=None, description='an index that stores the passages to rerank'
    )
    corpus_format: str = Field(default='auto', description='of the corpus')
    fields: tuple[str, ...] = Field(
        default=(), description='the text fields of a corpus of JSON lines'
    )

    @model_validator(mode='before')
    @classmethod
    def _has_its_extensions(cls, values: Any) -> Any:
        """Raises InputError for a field of a removed extension."""
        unknown = values.keys() - cls.model_fields if isinstance(values, dict) else ()
        for name in sorted(unknown):
            missing = missing_extension(name)
            if missing:
                raise InputError(f"a pipeline has no '{name}' here{missing}")
        return values

    @field_validator('index', mode='before')
    @classmethod
    def _index(cls, given: Any) -> Any:
        """One location of several indexes, as a PATH names folders."""
        if not isinstance(given, (list, tuple)):
            return given
        names = list(dict.fromkeys(given))
        location = os.pathsep.join(names)
        if len(names) > 1 and Path(location).exists():
            # A folder may be called so.
            location = (2 * os.pathsep).join(names)
        return location

    @field_validator('stages', mode='wrap')
    @classmethod
    def _stages(
        cls, stages: Iterable[Any], validated: Callable[[Any], tuple[StageSpec, ...]]
    ) -> tuple[StageSpec, ...]:
        parsed = validated(
            [parse_stage(stage) if isinstance(stage, str) else stage for stage in stages]
        )
        check_depths([stage.label for stage in parsed], [stage.k for stage in parsed])
        return parsed

    @property
    def scan(self) -> str:
        """The name of the scan of vectors; '' for exact search.

        Raises InputError if several are asked for.
        """
        return asked_scan({name: getattr(self, name) for name in scans()})

    @property
    def fusion_settings(self) -> FusionSettings:
        """How several rankings are fused.

        Raises InputError for a setting that its method does not have.
        """
        for name, method in fusion_methods.SETTINGS.items():
            is_given = getattr(self, name) != PipelineSpec.model_fields[name].default
            if is_given and self.fusion != method:
                raise InputError(
                    f"{name} is for fusion by '{method}', and this fusion is by '{self.fusion}'",
                    parameters=(name,),
                )
        if self.weights and self.alpha is not None:
            raise InputError(
                'alpha and weights were given: give one of them', parameters=('alpha', 'weights')
            )
        settings = FusionSettings(
            method=self.fusion,
            weights=self.weights,
            rrf_k=fusion_methods.RRF_K if self.rrf_k is None else self.rrf_k,
            normalize=self.normalize or fusion_methods.NORMALIZE,
            depth=self.depth,
        )
        return settings.changed(self.alpha)

    @property
    def bm25_constants(self) -> dict[str, float]:
        """BM25's k1 and b, by these names, if given."""
        constants = {'k1': self.k1, 'b': self.b}
        return {name: value for name, value in constants.items() if value is not None}

    @property
    def reads_index(self) -> bool:
        """Whether a stage reads the index that is searched."""
        return any(stage.reads_index for stage in self.stages)

    @property
    def searches(self) -> bool:
        """Whether there is a first stage."""
        return bool(self.index or self.sparse)

    @property
    def n_rankings(self) -> int:
        """How many rankings of a first stage are fused: one of `index`, and each of `sparse`.

        A collection alone has several.
        """
        if not self.sparse and self.rankings:
            return len(self.rankings)
        return len(self.sparse) + bool(self.index)

    @property
    def has_own_rankers(self) -> bool:
        """Whether a first stage or a stage is a class of the user's own."""
        names = [name.partition('@')[0] for name in self.sparse]
        names += [stage.name for stage in self.stages]
        return any(names_class(name) for name in names)
