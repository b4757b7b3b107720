"""Reading recipes from YAML, and checking them before anything expensive begins."""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.errors import InputError, UnknownNameError
from pyserini_repbert.files import StrPath
from pyserini_repbert.train.recipe import Recipe, Source, System
from pyserini_repbert.train.schema import build, with_settings, with_variables

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
        for anything that is not as it should be, in one line that names file and key
    """
    import yaml

    found = Path(path)
    try:
        content = yaml.safe_load(found.read_text(encoding='utf-8'))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f'{found} is not YAML ({" ".join(str(error).split())})') from error
    if not isinstance(content, dict):
        raise InputError(f'{found} is no recipe: a mapping with name, system, base, data and training was expected')
    content = with_variables(with_settings(content, settings), str(found))
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    recipe: Recipe = build(Recipe, {**content, 'text': text}, str(found))
    check(recipe, str(found))
    return recipe


def check(recipe: Recipe, where: str) -> None:
    """Raise InputError where parts of a recipe do not go together."""
    training = recipe.training
    for name in ('steps', 'batch_size', 'accumulate', 'shuffle', 'log_every', 'save_every'):
        if getattr(training, name) < 1:
            raise InputError(f'{where}: training.{name} is {getattr(training, name)}, expected 1 or more')
    for name in ('scale', 'anchor'):
        if (getattr(training, name) or 0) < 0:
            raise InputError(f'{where}: training.{name} is {getattr(training, name)}, expected 0 or more')
    if training.unit_layer and recipe.system is not System.REPBERT:
        raise InputError(f"{where}: training.unit_layer is for RepBERT, not for '{recipe.system}': leave it out")
    if training.schedule not in ('linear', 'constant'):
        raise InputError(f"{where}: training.schedule is '{training.schedule}', expected linear or constant")
    if training.precision not in ('float32', 'bfloat16', 'float16'):
        raise InputError(f"{where}: training.precision is '{training.precision}': float32, bfloat16 or float16")
    if not recipe.data:
        raise InputError(f'{where}: data is empty: name at least one source')
    if recipe.validation is not None and recipe.validation.every < 1:
        raise InputError(f'{where}: validation.every is {recipe.validation.every}, expected 1 or more')
    if recipe.system is System.MLM and (recipe.validation or recipe.adapter):
        raise InputError(f'{where}: pre-training takes neither a validation nor an adapter: leave them out')
    if recipe.validation and recipe.validation.run is None and recipe.system is not System.REPBERT:
        raise InputError(f'{where}: validation.run is missing: a reranker is validated on the hits of a run')
    for number, source in enumerate(recipe.data):
        check_source(recipe.system, source, f'{where}: data.{number}')


def check_source(system: System, source: Source, where: str) -> None:
    """Raise InputError where a source lacks what the system trains on."""
    if source.corpus and source.index:
        raise InputError(f'{where}: give either corpus or index, not both')
    if system is System.MLM:
        if source.corpus is None:
            raise InputError(f'{where}: pre-training needs a corpus')
        return
    if source.triples is None and (source.topics is None or source.qrels is None):
        raise InputError(f'{where}: give topics and qrels, or triples')
    if source.topics is not None and source.corpus is None and source.index is None:
        raise InputError(f'{where}: name the corpus or the index that holds the passages')
    if source.triples is not None:
        return
    needs = system is not System.REPBERT
    if source.negatives < (1 if needs else 0):
        raise InputError(f'{where}: negatives is {source.negatives}, expected {1 if needs else 0} or more')
    if source.negatives and not source.judged_only and source.run is None:
        raise InputError(f'{where}: negatives are drawn from a run: give run, judged_only, or for RepBERT negatives: 0')
