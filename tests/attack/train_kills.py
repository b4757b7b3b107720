"""Kills trainings at every kill point, resumes them, and compares with one that was never stopped:
run by a test.

python train_kills.py FOLDER WAY EVERY SCENARIO=RECIPE …
    -> {SCENARIO: {"points": …, "killed": …, "failures": […]}}

WAY is 'kill', or 'copy': one run is copied at each kill point, which leaves what a kill does.
"""

import gc
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import kill_at
import safetensors.torch
import torch

torch.set_num_threads(1)
from pyserini_repbert.train.recipe_files import read_recipe  # noqa: E402
from pyserini_repbert.train.training import train  # noqa: E402


def imports() -> None:
    """What a run imports, imported once for all of them; nothing that starts a thread."""
    import importlib

    for name in (
        'transformers',
        'accelerate',
        'peft',
        'pyserini_repbert.train.trainer',
        'pyserini_repbert.train.validation',
        'pyserini_repbert.systems.repbert.training',
        'pyserini_repbert.tasks.cross_encoder',
        'pyserini_repbert.rerank',
    ):
        importlib.import_module(name)


def main(folder: Path, way: str, every: int, recipes: Mapping[str, str]) -> None:
    imports()
    # the Trainer collects garbage at its start, which takes a second with all that is imported
    gc.freeze()
    kill_at.native(safetensors.torch, 'save_file', 1)
    kill_at.native(torch, 'save', 1)
    found = {}
    for scenario, recipe in recipes.items():
        (folder / scenario).mkdir()
        found[scenario] = try_points(folder / scenario, way, every, recipe, scenario == 'overwrite')
    print(json.dumps(found))


def try_points(
    folder: Path, way: str, every: int, recipe_file: str, has_earlier: bool
) -> dict[str, object]:
    """What came of one training. `has_earlier`: an output of another one is in the way."""
    recipe = read_recipe(recipe_file)
    earlier = folder / 'earlier'
    if has_earlier:
        other = read_recipe(recipe_file, ('training.seed=7',))
        assert kill_at.run(lambda: train(other, earlier, device='cpu'), folder).status == 0
    place = folder / 'place'

    def fresh() -> None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        if has_earlier:
            shutil.copytree(earlier, place / 'out')

    def begin() -> None:
        train(recipe, place / 'out', device='cpu', overwrite=has_earlier)

    def resume() -> None:
        train(recipe, place / 'out', device='cpu', resume=True)

    fresh()
    whole = kill_at.run(begin, place)
    assert whole.status == 0, whole.output
    expected = kill_at.tree(place)
    failures = []
    numbers = whole.telling[::every]
    killed = kill_at.after_kills(begin, place, numbers, fresh)
    if way == 'copy':
        killed = kill_at.after_copies(begin, place, numbers, fresh, folder / 'copies')
    for number in killed:
        what = f'{number}: {whole.points[number]}'
        work = place / 'out.training'
        resumable = work.is_dir() or ((place / 'out/README.md').is_file() and not has_earlier)
        resumed = kill_at.run(resume if resumable else begin, place)
        if resumed.status:
            failures.append(f'{what}: not resumed: {resumed.output[-500:]}')
        elif (found := kill_at.tree(place)) != expected:
            names = sorted(
                name for name in {*found, *expected} if found.get(name) != expected.get(name)
            )
            failures.append(f'{what}: other bytes in {names}')
    return {'points': len(whole.telling), 'killed': len(numbers), 'failures': failures}


if __name__ == '__main__':
    named = dict(argument.split('=', 1) for argument in sys.argv[4:])
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), named)
