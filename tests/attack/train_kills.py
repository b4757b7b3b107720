"""Kills a training at every kill point, resumes it, and compares with one that was never stopped:
run by a test.

python train_kills.py FOLDER RECIPE SCENARIO EVERY    -> {"points": …, "killed": …, "failures": […]}
"""

import gc
import json
import shutil
import sys
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


def main(folder: Path, recipe_file: str, scenario: str, every: int) -> None:
    imports()
    # the Trainer collects garbage at its start, which takes a second with all that is imported
    gc.freeze()
    kill_at.native(safetensors.torch, 'save_file', 1)
    kill_at.native(torch, 'save', 1)
    recipe = read_recipe(recipe_file)
    earlier = folder / 'earlier'
    if scenario == 'overwrite':  # an output of another training is in the way
        other = read_recipe(recipe_file, ('training.seed=7',))
        assert kill_at.run(lambda: train(other, earlier, device='cpu'), folder).status == 0
    place = folder / 'place'

    def fresh() -> None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        if scenario == 'overwrite':
            shutil.copytree(earlier, place / 'out')

    def begin() -> None:
        train(recipe, place / 'out', device='cpu', overwrite=scenario == 'overwrite')

    fresh()
    whole = kill_at.run(begin, place)
    assert whole.status == 0, whole.output
    expected = kill_at.tree(place)
    failures = []
    numbers = whole.telling[::every]
    for number in numbers:
        fresh()
        ended = kill_at.run(begin, place, at=number)
        what = f'{number}: {whole.points[number]}'
        if not ended.killed:
            failures.append(f'{what}: not killed, status {ended.status}: {ended.output[-500:]}')
            continue
        work = place / 'out.training'
        resumable = work.is_dir() or (
            (place / 'out/README.md').is_file() and scenario != 'overwrite'
        )
        go_on = (
            (lambda: train(recipe, place / 'out', device='cpu', resume=True))
            if resumable
            else begin
        )
        resumed = kill_at.run(go_on, place)
        if resumed.status:
            failures.append(f'{what}: not resumed: {resumed.output[-500:]}')
        elif (found := kill_at.tree(place)) != expected:
            names = sorted(
                name for name in {*found, *expected} if found.get(name) != expected.get(name)
            )
            failures.append(f'{what}: other bytes in {names}')
    print(json.dumps({'points': len(whole.telling), 'killed': len(numbers), 'failures': failures}))


if __name__ == '__main__':
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
