"""A collection learns from the judgments that people gave in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyserini_repbert.adapt.judged_topics import DEPTH, LEAST_TOPICS, N_MAPS
from pyserini_repbert.adapt.learning import adapt
from pyserini_repbert.adapt.offering import (
    collection_rankings,
    gain_text,
    learned_parts,
    offered_search,
    report_of,
    search_as_now,
)
from pyserini_repbert.collection.adaptation import (
    ADAPTATIONS,
    adaptation_in_use,
    judgments_of,
)
from pyserini_repbert.collection.judging.learning_progress import begin_learning, learning_lock
from pyserini_repbert.collection.judging.model_grades import JudgmentsWithModel
from pyserini_repbert.collection.judging.own_settings import (
    bm25_settings,
    learning_in_use,
    undo_learned,
    use_learned,
)
from pyserini_repbert.collection.judging.topics import open_topics
from pyserini_repbert.collection.judgments import Learning
from pyserini_repbert.collection.opened_searches import stored_rerankers
from pyserini_repbert.collection.parts import LearnedSearches
from pyserini_repbert.data.model_judges import TAUGHT_BY
from pyserini_repbert.errors import InputError, NotBetterError, PyseriniRepbertError
from pyserini_repbert.extension import loaded
from pyserini_repbert.indexes.kind import kind_of
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.pipeline.opening import open_resolved
from pyserini_repbert.pipeline.resolving import NO_ADAPTATION, resolve
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.search.adapted_folder import write_adapted


def learn_from_judgments(
    folder: Path,
    device: str = 'cpu',
    seed: int = 0,
    on_progress: Callable[[int], object] = int,
    model_judge: str | None = None,
) -> Learning:
    """Learn how a collection is searched from all judgments in it; `use_learning` then uses that.

    Other programs see how far it is (`learning_state`).

    Parameters
    ----------
    folder : of the collection
    device : where its encoder runs
    seed : draws the folds and the random passages
    on_progress : called with 1 after each of `adapt.judged_topics.N_MAPS` steps
    model_judge : a language model, by its name as a judge, whose grades count where no person
        judged; None: people's judgments alone

    Raises InputError for fewer than 20 questions with a relevant document and for a model that has
    given no grade, and BusyError while another program learns here.
    """
    kind_of(str(folder)).check_writable(str(folder))
    store = judgments_of(folder)
    with learning_lock(folder):
        done = 0

        def report_progress(n: int) -> None:
            nonlocal done
            done += n
            store.set_progress({'state': 'running', 'done': done, 'total': N_MAPS})
            on_progress(n)

        begin_learning(folder)
        try:
            learning = _learn(folder, device, seed, report_progress, model_judge)
        except BaseException as error:
            message = 'interrupted'
            if isinstance(error, PyseriniRepbertError):
                message = ' '.join(str(error).split())
            store.set_progress({'state': 'failed', 'error': message})
            raise
        store.set_progress({'state': 'done'})
    return learning


def _learn(
    folder: Path,
    device: str,
    seed: int,
    on_progress: Callable[[int], object],
    model_judge: str | None,
) -> Learning:
    store = judgments_of(folder)
    if model_judge is None:
        # Refuses a collection without judgments.
        open_topics(str(folder))
    else:
        store = JudgmentsWithModel(store.path, model_judge)
    # Judgments made meanwhile count as new.
    now = datetime.now(UTC).isoformat(timespec='milliseconds')
    n_judgments = judgments_of(folder).count()
    weights = bm25_settings(folder)
    spec = PipelineSpec.of({'index': str(folder), 'adapted': NO_ADAPTATION, **weights})
    machine = Machine(devices=(device,))
    resolved = resolve(spec, machine)
    # The search of a collection.
    first: Any = open_resolved(resolved, machine).pipeline.first
    try:
        present: Any = search_as_now(resolved.index, first, machine)
        dense: Any
        dense, *others = learned_parts(first)
        adaptation = adapt(
            dense,
            others,
            store.topics(),
            store.qrels(),
            seed,
            on_progress,
            now=present,
        )
        settings = first.generation.settings
        names = [dense.name, *(ranker.name for ranker in others)]
        estimate = adaptation.estimate()
        offered = offered_search(adaptation, names)
        number = store.next_learning()
        name = f'{ADAPTATIONS}/{number:06d}'
        (folder / ADAPTATIONS).mkdir(exist_ok=True)
        write_adapted(
            folder / name,
            offered.query_map,
            # One that a kill left before it was stored.
            overwrite=True,
            index=str(folder),
            encoder=settings.encoder,
            encoder_weights=settings.weights_sha256,
            sparse=(),
            rankings=collection_rankings(offered, names),
            depth=DEPTH,
            estimate=asdict(estimate),
            **weights,
            **offered.fusion,
        )
        rerankers = stored_rerankers(adaptation_in_use(folder, settings), device)
        index: Any = resolved.index
        searches = LearnedSearches(
            now=present,
            offered=index.as_learned(str(folder / name), machine),
            adaptation=adaptation,
            store=store,
            seed=seed,
            rerankers=rerankers,
        )
        more = [part.learn(searches) for part in loaded('in_collections')]
        generation = first.generation.number
    finally:
        first.close()
    report = report_of(adaptation, estimate)
    for of_part in more:
        report |= of_part.report
        report['sentence'] += of_part.sentence and f' {of_part.sentence}'
    if model_judge is not None:
        report[TAUGHT_BY] = model_judge
        report['sentence'] += f" Grades of the language model '{model_judge}' taught it, too."
    learning = Learning(
        number=number,
        folder=name,
        learned=now,
        generation=generation,
        judgments=n_judgments,
        encoder_weights=settings.models_sha256,
        in_use=False,
        report=report,
    )
    store.add_learning(learning)
    return learning


def use_learning(folder: Path, in_use: bool, even_if_worse: bool = False) -> Learning | None:
    """Search a collection as it learned last, or as before any learning.

    Parameters
    ----------
    folder : of the collection
    in_use : False: as before any learning
    even_if_worse : also use it if it is not better than the search was when it learned

    Returns what is in use. Raises InputError for a collection that has not learned yet, and
    NotBetterError for what is not better.
    """
    store = judgments_of(folder)
    if not in_use:
        undo_learned(folder)
        return None
    learnings = store.learned()
    if not learnings:
        raise InputError(
            f'collection {folder} has not learned yet: judge at least {LEAST_TOPICS} questions, '
            'and let it learn'
        )
    learning = learnings[-1]
    if learning_in_use(folder) == learning.number:
        return replace(learning, in_use=True)
    if not even_if_worse:
        _check_better(folder, learning.report)
    use_learned(folder, learning)
    return replace(learning, in_use=True)


def _check_better(folder: Path, report: Mapping[str, Any]) -> None:
    """Raises NotBetterError for a learning that is not better than the search was then."""
    if report['is_worth_using']:
        return
    problem = 'not better than'
    if report['gain'] < 0:
        problem = 'below'
    gain = gain_text(report['gain'], report['low'], report['high'])
    raise NotBetterError(
        f'what {folder} learned is {problem} the present search, {gain}: judge more '
        'questions and let it learn again',
        parameters=('even_if_worse',),
    )
