"""Reads recipes from YAML, and checks them before anything expensive begins."""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.data.yaml_files import read_yaml
from pyserini_repbert.errors import UnknownNameError
from pyserini_repbert.files import StrPath
from pyserini_repbert.train.recipe import Recipe, Source, System
from pyserini_repbert.train.schema import RecipeFile

_GROUPED = (System.REPBERT, System.MONOBERT, System.EPIC, System.CEDR)  # duoBERT too: its groups are pairs
RECIPES = Path(__file__).parent.parent / 'resources' / 'recipes'


def recipe_path(name: str) -> Path:
    """The file of a recipe: a path, or the name of one that ships. Raises UnknownNameError with the nearest names."""
    if Path(name).is_file():
        return Path(name)
    known = sorted(path.stem for path in RECIPES.glob('*.yaml'))
    if name not in known:
        near = did_you_mean(name, known)
        raise UnknownNameError(f"'{name}' is neither a recipe file nor a recipe that ships{near}: {', '.join(known)}")
    return RECIPES / f'{name}.yaml'


def read_recipe(path: StrPath, settings: tuple[str, ...] = ()) -> Recipe:
    """Read and check a recipe.

    `${NAME}` stands for an entry of the recipe's `variables`, or of the environment.

    Parameters
    ----------
    settings : 'key=value' with dotted keys ('training.steps=100', 'data.0.run=bm25.txt'), which replace the file's

    Raises
    ------
    InputError
        for the first fault, in one line that names file, line and key, or the setting
    """
    import yaml

    read = RecipeFile(read_yaml(path, 'recipe'), settings)
    content = read.content()
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    recipe = read.recipe(content, text)
    check(recipe, read)
    return recipe


def check(recipe: Recipe, read: RecipeFile) -> None:
    """Raise InputError, which names file and line, where parts of a recipe do not go together."""
    training, validation = recipe.training, recipe.validation
    if training.unit_layer and recipe.system is not System.REPBERT:
        message = f"training.unit_layer is for RepBERT, not for '{recipe.system}': leave it out"
        raise read.error(message, 'training', 'unit_layer')
    if not recipe.data:
        raise read.error('data is empty: name at least one source', 'data')
    if recipe.adapter is not None and not recipe.adapter.targets:
        raise read.error('adapter.targets is empty: name at least one kind of layer', 'adapter', 'targets')
    if recipe.teacher is not None and not training.group:
        raise read.error('teacher needs training.group, the candidates of a query that are scored together', 'teacher')
    fits = training.group == 2 if recipe.system is System.DUOBERT else recipe.system in _GROUPED
    if training.group == 1 or (training.group and not fits):
        found = f'training.group is {training.group}, for {recipe.system}'
        expected = f'0, or for {", ".join(_GROUPED)} 2 or more, for duobert 2'
        raise read.error(f'{found}: expected {expected}', 'training', 'group')
    if recipe.system is System.MLM and (validation or recipe.adapter):
        part = 'validation' if validation else 'adapter'
        raise read.error('pre-training takes neither a validation nor an adapter: leave them out', part)
    if validation and validation.run is None and recipe.system is not System.REPBERT:
        raise read.error('validation.run is missing: a reranker is validated on the hits of a run', 'validation')
    for number, source in enumerate(recipe.data):
        if (fault := source_fault(recipe, source)) is not None:
            raise read.error(f'data.{number}: {fault}', 'data', number)


def source_fault(recipe: Recipe, source: Source) -> str | None:
    """Why the recipe's system cannot be trained on a source, in words; None if it can."""
    if source.corpus and source.index:
        return 'give either corpus or index, not both'
    if recipe.system is System.MLM:
        return None if source.corpus is not None else 'pre-training needs a corpus'
    of_groups = bool(recipe.training.group)
    if source.triples is None and (source.topics is None or (source.qrels is None and not of_groups)):
        return 'give topics and qrels, or triples'
    if source.topics is not None and source.corpus is None and source.index is None:
        return 'name the corpus or the index that holds the passages'
    if of_groups:
        return _group_fault(recipe, source)
    if source.scores is not None:
        return 'scores are of a teacher: give teacher and training.group too'
    if source.triples is not None:
        return None
    if not source.negatives and recipe.system is not System.REPBERT:
        return 'negatives is 0, expected 1 or more'
    if source.negatives and not source.judged_only and source.run is None:
        return 'negatives are drawn from a run: give run, judged_only, or for RepBERT negatives: 0'
    return None


def _group_fault(recipe: Recipe, source: Source) -> str | None:
    if source.triples is not None or source.run is None or source.judged_only:
        return "with training.group, a query's candidates are a run's hits: give run, neither triples nor judged_only"
    if recipe.teacher is not None and not (source.scores or recipe.teacher.checkpoint):
        return 'there is no teacher: give scores, or teacher.checkpoint'
    if recipe.teacher is None and (source.qrels is None or source.scores):
        return 'without a teacher, groups need qrels and take no scores'
    return None
