"""Put trained adapters among the checkpoints that ship with the package, and print their catalog
entries.

    python tools/ship_checkpoint.py runs/train/repbert-demo --replace FOLDER='${MEDQUAD}' --replace
    OTHER='${RUNS}'

A card and a recipe that ship may not name folders of the machine that trained: --replace puts
another text in their place, also in the name of an adapter's base. The checkpoint gets the recipe's
name.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.checksums import digest, write_checksums
from pyserini_repbert.commands import command
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import atomic_folder, existing_file, human_size
from pyserini_repbert.models.checkpoints.checkpoint import verify

TEXTS = ('README.md', 'adapter_config.json', 'config.json', 'log.csv', 'recipe.yaml')
LOADED = ('adapter_config.json', 'config.json')  # covered by the checksums, beside the weights
RECIPE_HEADING = '\n## Recipe\n'
ROUNDED = '- weights kept in float16, trained in float32'
WEIGHTS = 'adapter_model.safetensors'
LARGEST = 40_000_000  # bytes, of all shipped checkpoints
DATA_LICENCES = 'trained on text under CC BY-SA (Wikipedia) and CC BY (MedQuAD)'
DOCSTRINGS = (
    ', and on docstrings under the PSF and BSD licences'  # if it learnt from a teacher's scores
)
ROOTED = re.compile(
    r'(?<![^\s\'"=\[(,:])/\w'
)  # an absolute path; not part of an address, not after a variable


def main(arguments: list[str]) -> int | None:
    """Run the script."""
    parser = command.Parser(
        description='Ship trained adapters; prints their entries for catalog.yaml.'
    )
    parser.add_argument(
        'folders', nargs='+', metavar='FOLDER', help='a checkpoint folder that `train` made'
    )
    parser.add_argument(
        '--replace',
        action='append',
        default=[],
        metavar='TEXT=WITH',
        help='in card, recipe and base',
    )
    parser.add_argument(
        '--half', action='store_true', help='keep weights in float16: half the size'
    )
    parser.add_argument(
        '--overwrite', action='store_true', help='replace checkpoints of these names'
    )
    options = parser.parse_args(arguments)
    replacements = [pair.partition('=') for pair in options.replace]
    for text, equals, _ in replacements:
        command.refuse(not (text and equals), f"--replace '{text}': TEXT=WITH was expected")
    for folder in options.folders:
        made = ship(
            Path(folder),
            {old: new for old, _, new in replacements},
            options.overwrite,
            options.half,
        )
        print(entry_text(made))
    total = sum(
        file.stat().st_size
        for file in (catalog.RESOURCES / 'checkpoints').rglob('*')
        if file.is_file()
    )
    print(f'shipped checkpoints take {human_size(total)} of {human_size(LARGEST)}', file=sys.stderr)
    return int(total > LARGEST)


def ship(folder: Path, replacements: dict[str, str], overwrite: bool, half: bool = False) -> Path:
    """Copy a checkpoint into the package; its folder there.

    Parameters
    ----------
    replacements : text -> text that takes its place, in card, recipe and base
    half : store weights in float16

    Raises
    ------
    InputError
        for a folder that is not an adapter with card, recipe and log, a base that is not in the
        catalog, a path of this machine that remains, or a checkpoint of this name without
        `overwrite`
    """
    import yaml

    texts = {}
    for name in TEXTS:
        texts[name] = existing_file(folder / name, 'checkpoint file').read_text(encoding='utf-8')
        for old, new in replacements.items():
            texts[name] = texts[name].replace(old, new)
        if found := next((line for line in texts[name].splitlines() if ROOTED.search(line)), None):
            raise InputError(
                f"{folder / name} names a path of this machine, '{found.strip()}': give --replace "
                f'PATH=…'
            )
    existing_file(folder / WEIGHTS, 'checkpoint file')
    verify(folder)
    base = json.loads(texts['adapter_config.json'])['base_model_name_or_path']
    if catalog.checkpoint_kind(base) is None:
        raise InputError(
            f"{folder} is an adapter over '{base}', which is not in the catalog: give --replace "
            f'{base}=NAME'
        )
    target = catalog.RESOURCES / 'checkpoints' / yaml.safe_load(texts['recipe.yaml'])['name']
    if target.exists():
        if not overwrite:
            raise InputError(f'{target} is there already: pass --overwrite')
        shutil.rmtree(target)
    with atomic_folder(target) as made:
        shutil.copyfile(folder / WEIGHTS, made / WEIGHTS)
        if half:
            halve(made / WEIGHTS)
            texts['README.md'] = texts['README.md'].replace(
                RECIPE_HEADING, f'{ROUNDED}\n{RECIPE_HEADING}', 1
            )
        for name in LOADED:
            (made / name).write_text(texts[name], encoding='utf-8')
        write_checksums(made)  # of what loading reads
        for name in TEXTS:
            (made / name).write_text(texts[name], encoding='utf-8')
    return target


def halve(file: Path) -> None:
    """Rewrite a safetensors file with its floating-point tensors as float16."""
    from safetensors.torch import load_file, save_file

    mode = file.stat().st_mode
    tensors = {
        name: value.half() if value.is_floating_point() else value
        for name, value in load_file(file).items()
    }
    save_file(tensors, file, metadata={'format': 'pt'})
    file.chmod(mode)  # safetensors makes files for their owner only


def entry_text(folder: Path) -> str:
    """The lines of catalog.yaml for a shipped checkpoint."""
    import yaml

    config, adapter = (
        json.loads((folder / name).read_text(encoding='utf-8'))
        for name in ('config.json', 'adapter_config.json')
    )
    recipe = yaml.safe_load((folder / 'recipe.yaml').read_text(encoding='utf-8'))
    ranking = ', '.join(
        f'{key}: {json.dumps(value) if not isinstance(value, str) else value}'
        for key, value in config['ranking'].items()
    )
    taught = 'teacher' in recipe
    dimension = (
        [f'    dimension: {config["hidden_size"]}']
        if config['ranking']['system'] == 'repbert'
        else []
    )
    return '\n'.join(
        [
            f'  {folder.name}:',
            f'    description: {recipe["description"].rstrip(".")}',
            *dimension,
            f'    licence: {recipe["licence"]}; {DATA_LICENCES}{DOCSTRINGS if taught else ""}',
            f'    ranking: {{{ranking}}}',
            f'    base: {adapter["base_model_name_or_path"]}',
            f'    resource: checkpoints/{folder.name}',
            f'    sha256: {{{WEIGHTS}: {digest(folder / WEIGHTS)}}}',
        ]
    )


if __name__ == '__main__':
    sys.exit(command.run(main))
