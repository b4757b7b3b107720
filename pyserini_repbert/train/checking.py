"""Whether the parts of a recipe go together. Each check raises `RecipeFault`."""

from __future__ import annotations

from dataclasses import fields

from pyserini_repbert.systems.registry import System, systems, trained_systems
from pyserini_repbert.tasks.losses import PairLoss
from pyserini_repbert.tasks.recipe import PRE_TRAINING, Recipe, Source, Training


class RecipeFault(ValueError):
    """What does not go together, and the keys of one of its entries."""

    def __init__(self, message: str, *keys: str | int) -> None:
        super().__init__(message)
        self.message = message
        self.keys = keys


def check_recipe(recipe: Recipe) -> None:
    """Raise RecipeFault for the first parts that do not go together."""
    known = [*trained_systems(), PRE_TRAINING]
    if recipe.system not in known:
        raise RecipeFault(
            f'system is {recipe.system!r}, expected one of {", ".join(known)}', 'system'
        )
    _check_settings(recipe)
    _check_rates(recipe)
    _check_group(recipe)
    _check_validation_and_adapter(recipe)
    for number, source in enumerate(recipe.data):
        try:
            _check_source(recipe, source)
        except RecipeFault as fault:
            raise RecipeFault(f'data.{number}: {fault.message}', 'data', number) from fault


def _check_settings(recipe: Recipe) -> None:
    """No setting of `training` would be passed over: each is one that the system's task reads."""
    readers: dict[str, list[System]] = {}
    for system in systems().values():
        for name in system.training_settings:
            readers.setdefault(name, []).append(system)
    usual = {setting.name: setting.default for setting in fields(Training)}
    for name, reading in readers.items():
        is_given = getattr(recipe.training, name) != usual[name]
        if is_given and recipe.system not in [system.name for system in reading]:
            titles = ' and '.join(system.title for system in reading)
            raise RecipeFault(
                f"training.{name} is for {titles}, not for '{recipe.system}': leave it out",
                'training',
                name,
            )


def _check_rates(recipe: Recipe) -> None:
    """Where BERT is left as it is, the head is trained, and no adapter."""
    training = recipe.training
    if not training.learning_rate and (recipe.adapter or not training.head_learning_rate):
        raise RecipeFault(
            'training.learning_rate is 0, so only what is added to BERT is trained: give '
            'training.head_learning_rate, and no adapter',
            'training',
            'learning_rate',
        )
    if training.schedule == 'constant' and training.schedule_steps:
        raise RecipeFault(
            'training.schedule_steps is for a rate that falls, and the schedule is constant: '
            'leave one out',
            'training',
            'schedule_steps',
        )


def _check_group(recipe: Recipe) -> None:
    """A group fits its system and has no loss of pairs, and a teacher has groups."""
    group = recipe.training.group
    if group and recipe.training.loss != PairLoss.CROSS_ENTROPY:
        raise RecipeFault(
            f'training.loss is {recipe.training.loss}, the loss of a pair, and there are groups: '
            'leave it or training.group out',
            'training',
            'loss',
        )
    if recipe.teacher is not None and not group:
        raise RecipeFault(
            'teacher needs training.group, the candidates of a query that are scored together',
            'teacher',
        )
    if group and not _fits(group, recipe.system):
        raise RecipeFault(
            f'training.group is {group}, for {recipe.system}: expected {_expected_groups()}',
            'training',
            'group',
        )


def _fits(group: int, system: str) -> bool:
    """Whether a system can be trained on groups of so many candidates."""
    if system == PRE_TRAINING:
        return False
    size = systems()[system].group_size
    return group >= 2 if size is None else group == size


def _expected_groups() -> str:
    """The sizes of groups that systems take, as an error shows them."""
    of_any_size = []
    others = []
    for name in trained_systems():
        size = systems()[name].group_size
        if size is None:
            of_any_size.append(name)
        else:
            others.append(f'for {name} {size}')
    return ', '.join([f'0, or for {", ".join(of_any_size)} 2 or more', *others])


def _encodes_apart(recipe: Recipe) -> bool:
    """Whether the system has encoders: passages are then encoded without the query."""
    return recipe.system != PRE_TRAINING and systems()[recipe.system].query_encoder is not None


def _check_validation_and_adapter(recipe: Recipe) -> None:
    """Pre-training has neither; a reranker is validated on a run."""
    validation = recipe.validation
    if recipe.system == PRE_TRAINING and (validation or recipe.adapter):
        raise RecipeFault(
            'pre-training takes neither a validation nor an adapter: leave them out',
            'validation' if validation else 'adapter',
        )
    if validation and validation.run is None and not _encodes_apart(recipe):
        raise RecipeFault(
            'validation.run is missing: a reranker is validated on the hits of a run', 'validation'
        )


def _check_source(recipe: Recipe, source: Source) -> None:
    """The recipe's system can be trained on a source."""
    if source.corpus and source.index:
        raise RecipeFault('give either corpus or index, not both')
    if source.pairs and (source.run or source.triples or recipe.training.group):
        raise RecipeFault(
            'pairs are all documents of a topic: give neither run, triples nor training.group'
        )
    if recipe.system == PRE_TRAINING:
        if source.corpus is None:
            raise RecipeFault('pre-training needs a corpus')
        return
    _check_topics(source, of_groups=bool(recipe.training.group))
    if recipe.training.group:
        _check_source_of_groups(recipe, source)
    else:
        _check_source_of_pairs(recipe, source)


def _check_topics(source: Source, of_groups: bool) -> None:
    """A source has judged topics, or triples; groups that a teacher scores need no judgments."""
    judged = source.qrels is not None or of_groups
    if source.triples is None and not (source.topics is not None and judged):
        raise RecipeFault('give topics and qrels, or triples')
    if source.topics is not None and source.corpus is None and source.index is None:
        raise RecipeFault('name the corpus or the index that holds the passages')


def _check_source_of_groups(recipe: Recipe, source: Source) -> None:
    """Candidates are hits of a run, and somebody says which ones are good."""
    if source.triples is not None or source.run is None or source.judged_only:
        raise RecipeFault(
            "with training.group, candidates are a run's hits: give run, neither triples nor "
            'judged_only'
        )
    if recipe.teacher is not None:
        if not source.scores and not recipe.teacher.checkpoint:
            raise RecipeFault('there is no teacher: give scores, or teacher.checkpoint')
    elif source.qrels is None or source.scores:
        raise RecipeFault('without a teacher, groups need qrels and take no scores')


def _check_source_of_pairs(recipe: Recipe, source: Source) -> None:
    """Pairs come from triples, or have negatives to be drawn from."""
    if source.scores is not None:
        raise RecipeFault('scores are of a teacher: give teacher and training.group too')
    if source.retrieved_only and source.run is None:
        raise RecipeFault('retrieved_only is about the hits of a run: give run, or leave it out')
    if source.triples is not None:
        return
    if not source.negatives and not _encodes_apart(recipe):
        raise RecipeFault('negatives is 0, expected 1 or more')
    if source.negatives and not (source.judged_only or source.run or source.pairs):
        raise RecipeFault(
            'negatives are drawn from a run: give run, pairs, judged_only, or for RepBERT '
            'negatives: 0'
        )
