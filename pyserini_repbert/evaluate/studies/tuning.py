"""Settings of a Lucene search chosen on a grid: BM25's k1 and b, RM3's feedback, SDM's weights.

Held out, each fold's topics are searched with the setting that is best on the other topics. On the
test topics themselves, the best setting is the maximum that the technique can reach, as CEDR's
baselines are (its section 3.1), and no figure of a search that one could have made.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.data.values import decimal
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import NamedMeasure, evaluate
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher, index_folder
from pyserini_repbert.lucene.sparse_settings import Rm3, Sdm, SparseSettings, default_settings
from pyserini_repbert.ranking import Query, Run

# CEDR's grids for BM25 and SDM (its footnote 6), and Anserini's for RM3 on Robust04
# (fine_tuning/models.yaml of its release 0.14.1).
GRIDS: Mapping[str, tuple[str, ...]] = {
    'bm25': ('k1=0.1:4:0.1', 'b=0.1:1:0.1'),
    'ql': ('mu=100:10000:100',),
    'bm25+rm3': ('fb_terms=45:105:5', 'fb_docs=5:20:5', 'original_query_weight=0.2:0.3:0.05'),
    'sdm': ('terms=0:1:0.05', 'ordered=0:1:0.05', 'unordered=0:1:0.05'),
}
_BM25 = ('k1', 'b')
_RM3 = ('fb_terms', 'fb_docs', 'original_query_weight')
_SDM = ('terms', 'ordered', 'unordered')
_NAMES = {'bm25': _BM25, 'ql': ('mu',), 'bm25+rm3': (*_BM25, *_RM3), 'sdm': (*_BM25, *_SDM)}
_COUNTS = ('fb_terms', 'fb_docs')
MOST_SETTINGS = 10_000
_SUM_ERROR = 1e-6


@dataclass(frozen=True)
class TunedSetting:
    """One cell of a grid: its values by name, and the search that they mean."""

    values: tuple[tuple[str, float], ...]
    search: SparseSettings

    def __str__(self) -> str:
        return ', '.join(f'{name} {value:g}' for name, value in self.values)


@dataclass(frozen=True)
class TunedTopics:
    """An index, and the topics that search it."""

    index: str
    topics: Sequence[Query]


@dataclass(frozen=True)
class TunedFold:
    """A fold's choice.

    Attributes
    ----------
    setting : best on the topics that chose it
    chosen : the measure's mean over these
    held_out : the measure's mean over `topics`
    topics : the qids that are searched with it
    """

    setting: TunedSetting
    chosen: float
    held_out: float
    topics: Sequence[str]


def make_settings(technique: str, axes: Sequence[str]) -> list[TunedSetting]:
    """The cells of a grid; axes are 'k1=0.6,0.9' or 'k1=0.1:4:0.1', and replace `GRIDS`' own.

    SDM's weights count by their ratio, so only cells in which they sum to 1 are searched.
    """
    values = {}
    for axis in (*GRIDS[technique], *axes):
        name, _, text = axis.partition('=')
        if name not in _NAMES[technique]:
            raise InputError(
                f"'{axis}': {technique} has {', '.join(_NAMES[technique])}", parameters=('grid',)
            )
        values[name] = _axis_values(axis, text)
    settings = []
    for cell in itertools.product(*values.values()):
        by_name = dict(zip(values, cell, strict=True))
        weights = [value for name, value in by_name.items() if name in _SDM]
        if weights and abs(sum(weights) - 1) > _SUM_ERROR:
            continue
        settings.append(TunedSetting(tuple(by_name.items()), _search(technique, by_name)))
    if not 0 < len(settings) <= MOST_SETTINGS:
        raise InputError(
            f'the grid has {len(settings):,} settings: expected 1 to {MOST_SETTINGS:,}; the '
            'weights of sdm sum to 1',
            parameters=('grid',),
        )
    return settings


def _axis_values(axis: str, text: str) -> list[float]:
    """'0.6,0.9' or 'from:to:step', both ends included."""
    try:
        if ':' not in text:
            return [float(decimal(part)) for part in text.split(',')]
        start, stop, step = (float(decimal(part)) for part in text.split(':'))
    except ValueError as error:
        raise InputError(
            f"'{axis}': expected NAME=VALUE,VALUE or NAME=FROM:TO:STEP", parameters=('grid',)
        ) from error
    if step <= 0 or stop < start:
        raise InputError(
            f"'{axis}': expected a step above 0, and FROM not above TO", parameters=('grid',)
        )
    count = int((stop - start) / step + _SUM_ERROR) + 1
    if count > MOST_SETTINGS:
        raise InputError(
            f"'{axis}': {count:,} values, expected at most {MOST_SETTINGS:,}", parameters=('grid',)
        )
    # Sums of steps would not be round.
    return [round(start + number * step, 10) for number in range(count)]


def _search(technique: str, values: Mapping[str, float]) -> SparseSettings:
    """The search that values of a technique mean."""
    feedback: dict[str, float | int] = {}
    for name in _RM3:
        if name in values:
            feedback[name] = int(values[name]) if name in _COUNTS else values[name]
    weights = {name: values[name] for name in _SDM if name in values}
    search = SparseSettings(
        model='ql' if technique == 'ql' else 'bm25',
        rm3=Rm3(**feedback) if technique == 'bm25+rm3' else False,  # type: ignore[arg-type]
        sdm=Sdm(**weights) if technique == 'sdm' else False,
    )
    return replace(
        search,
        k1=values.get('k1', search.k1),
        b=values.get('b', search.b),
        mu=values.get('mu', search.mu),
    )


def search_all(parts: Sequence[TunedTopics], setting: TunedSetting, hits: int) -> Run:
    """The run of all topics, each in its index."""
    run: Run = {}
    for part in parts:
        language = default_settings(index_folder(part.index)).language
        searcher = LuceneSparseSearcher(part.index, replace(setting.search, language=language))
        try:
            run |= searcher.rank(part.topics, None, hits)
        finally:
            searcher.close()
    return run


def measure_settings(
    parts: Sequence[TunedTopics],
    settings: Sequence[TunedSetting],
    qrels: Qrels,
    measure: NamedMeasure,
    *,
    hits: int,
    on_progress: Callable[[int], object] = int,
) -> dict[TunedSetting, dict[str, float]]:
    """The measure's value of each topic, by setting.

    Parameters
    ----------
    parts : topics, with the index that is searched for them
    settings : of a technique
    qrels : the judgments
    measure : one measure
    hits : of each topic
    on_progress : called with 1 after each setting
    """
    values = {}
    for setting in settings:
        run = search_all(parts, setting, hits)
        values[setting] = evaluate(run, qrels, [measure]).values[measure.name]
        on_progress(1)
    return values


def best_setting(
    values: Mapping[TunedSetting, Mapping[str, float]], qids: Sequence[str]
) -> TunedSetting:
    """The setting with the best mean over topics; the first if several are equal."""
    return max(values, key=lambda setting: fmean(values[setting][qid] for qid in qids))


def choose_held_out(
    values: Mapping[TunedSetting, Mapping[str, float]], folds: Sequence[Sequence[str]]
) -> list[TunedFold]:
    """For each fold of judged topics, the setting that is best on all other folds."""
    chosen = []
    for tested in folds:
        others: list[str] = []
        for fold in folds:
            if fold is not tested:
                others += fold
        setting = best_setting(values, others)
        own = values[setting]
        chosen.append(
            TunedFold(
                setting=setting,
                chosen=fmean(own[qid] for qid in others),
                held_out=fmean(own[qid] for qid in tested),
                topics=tested,
            )
        )
    return chosen


def held_out_run(parts: Sequence[TunedTopics], chosen: Sequence[TunedFold], hits: int) -> Run:
    """The run of each fold's judged topics with its setting."""
    run: Run = {}
    for fold in chosen:
        tested = set(fold.topics)
        of_fold = []
        for part in parts:
            topics = [query for query in part.topics if query.qid in tested]
            if topics:
                of_fold.append(TunedTopics(part.index, topics))
        run |= search_all(of_fold, fold.setting, hits)
    return run
