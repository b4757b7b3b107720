"""Ship trained adapters with the package, and print their catalog entries.

    python tools/ship_checkpoint.py runs/train/repbert-demo --replace FOLDER='${MEDQUAD}' --replace
    OTHER='${RUNS}'

A card and a recipe in the package may not name folders of the machine that trained: --replace
puts another text there, and into the name of an adapter's base. The checkpoint gets the recipe's
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
# If it learned from a teacher's scores.
DOCSTRINGS = ', and on docstrings under the PSF and BSD licences'
# An absolute path; not part of an address, not after a variable.
ROOTED = re.compile(r'(?<![^\s\'"=\[(,:])/\w')


def main(arguments: list[str]) -> int | None:
    """Run the script."""
    parser = command.Parser(
        description='Ship trained adapters; prints their entries for catalog.toml.'
    )
    add = parser.add_argument
    add('folders', nargs='+', metavar='FOLDER', help='a checkpoint folder that `train` made')
    add(
        '--replace',
        action='append',
        default=[],
        metavar='TEXT=WITH',
        help='in card, recipe and base',
    )
    add('--half', action='store_true', help='keep weights in float16: half the size')
    add('--overwrite', action='store_true', help='replace checkpoints of these names')
    options = parser.parse_args(arguments)
    replacements = {}
    for pair in options.replace:
        old, equals, new = pair.partition('=')
        command.refuse(not (old and equals), f"--replace '{old}': TEXT=WITH was expected")
        replacements[old] = new
    for folder in options.folders:
        target = ship(Path(folder), replacements, options.overwrite, options.half)
        print(entry_text(target))
    shipped = [path for path in (catalog.RESOURCES / 'checkpoints').rglob('*') if path.is_file()]
    total = sum(path.stat().st_size for path in shipped)
    print(f'shipped checkpoints take {human_size(total)} of {human_size(LARGEST)}', file=sys.stderr)
    return int(total > LARGEST)


def ship(folder: Path, replacements: dict[str, str], overwrite: bool, half: bool = False) -> Path:
    """Copy a checkpoint into the package; its folder there.

    Parameters
    ----------
    folder : a checkpoint folder that `train` made
    replacements : text -> text that takes its place, in card, recipe and base
    overwrite : replace a checkpoint of this name
    half : store weights in float16

    Raises
    ------
    InputError
        for a folder that is not an adapter with card, recipe and log, a base that is not in the
        catalog, a path of this machine that remains, or a checkpoint of this name without
        `overwrite`
    """
    import yaml

    texts = {name: read_text(folder / name, replacements) for name in TEXTS}
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
        # Of what loading reads: the other texts come later.
        write_checksums(made)
        for name in TEXTS:
            (made / name).write_text(texts[name], encoding='utf-8')
    return target


def read_text(path: Path, replacements: dict[str, str]) -> str:
    """A file's text with its replacements. Raises InputError for a path of this machine in it."""
    text = existing_file(path, 'checkpoint file').read_text(encoding='utf-8')
    for old, new in replacements.items():
        text = text.replace(old, new)
    for line in text.splitlines():
        if ROOTED.search(line):
            raise InputError(
                f"{path} names a path of this machine, '{line.strip()}': give --replace PATH=…"
            )
    return text


def halve(file: Path) -> None:
    """Rewrite a safetensors file with its floating-point tensors as float16."""
    from safetensors.torch import load_file, save_file

    mode = file.stat().st_mode
    tensors = load_file(file)
    for name, value in tensors.items():
        if value.is_floating_point():
            tensors[name] = value.half()
    save_file(tensors, file, metadata={'format': 'pt'})
    # safetensors makes files for their owner only.
    file.chmod(mode)


def entry_text(folder: Path) -> str:
    """The lines of catalog.toml for a shipped checkpoint; KIND is encoders or rerankers."""
    import yaml

    config = json.loads((folder / 'config.json').read_text(encoding='utf-8'))
    adapter = json.loads((folder / 'adapter_config.json').read_text(encoding='utf-8'))
    recipe = yaml.safe_load((folder / 'recipe.yaml').read_text(encoding='utf-8'))
    ranking = []
    for key, value in config['ranking'].items():
        ranking.append(f'{key} = {json.dumps(value)}')
    licence = f'{recipe["licence"]}; {DATA_LICENCES}'
    if 'teacher' in recipe:
        licence += DOCSTRINGS
    description = recipe['description'].rstrip('.')
    lines = [f'[KIND.{folder.name}]', f'description = {json.dumps(description)}']
    if config['ranking']['system'] == 'repbert':
        lines.append(f'dimension = {config["hidden_size"]}')
    lines += [
        f'licence = {json.dumps(licence)}',
        f'ranking = {{{", ".join(ranking)}}}',
        f'base = {json.dumps(adapter["base_model_name_or_path"])}',
        f'resource = "checkpoints/{folder.name}"',
        f'sha256 = {{"{WEIGHTS}" = "{digest(folder / WEIGHTS)}"}}',
    ]
    return '\n'.join(lines)


if __name__ == '__main__':
    sys.exit(command.run(main))
