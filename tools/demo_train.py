"""Train the demo checkpoints by the recipes in the package.

Candidates for the training questions come first, then each model.

    python tools/demo_train.py --data FOLDER --work FOLDER [--only repbert-demo,epic-demo] [--device
    cpu]

What exists is not made again, and a stopped training continues.
`ship_checkpoint.py` ships a checkpoint folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from demo_candidates import VALIDATION_DEPTH, write_material
from demo_commands import package_command
from demo_pairs import rerank, write_pairs

from pyserini_repbert.commands.command import Parser, run
from pyserini_repbert.errors import InputError

HITS = 50
MEDQUAD = (
    'corpus.jsonl.gz',
    'train.queries.tsv.gz',
    'train.qrels.txt.gz',
    'liveqa.topics.tsv',
    'liveqa.qrels.txt',
)
QED = ('qed-dev.jsonlines.gz', 'xquad.en.json.gz')


@dataclass(frozen=True)
class Training:
    """A checkpoint and its recipe.

    Attributes
    ----------
    variable, needs : the recipe's variable for the checkpoint that it starts from, and the name of
        that; '' for none
    taught : whether it learns from a teacher's scores, which `demo_candidates` collects
    reranked : whether it learns, and is validated, on candidates in the order of the checkpoint
        that it needs
    """

    name: str
    recipe: str
    variable: str = ''
    needs: str = ''
    taught: bool = True
    reranked: bool = False


TRAININGS = (
    Training('repbert-demo', 'demo-repbert'),
    Training('colbert-demo', 'demo-colbert'),
    Training('epic-first-demo', 'demo-epic-first', taught=False),
    Training('epic-second-demo', 'demo-epic-second', 'START', 'epic-first-demo'),
    Training('epic-demo', 'demo-epic', 'START', 'epic-second-demo'),
    Training('monobert-first-demo', 'demo-monobert-first'),
    Training('monobert-demo', 'demo-monobert', 'START', 'monobert-first-demo'),
    Training('duobert-demo', 'demo-duobert', 'START', 'monobert-demo', reranked=True),
    Training('vanilla-demo', 'demo-vanilla', 'START', 'monobert-demo'),
    Training('cedr-knrm-demo', 'demo-cedr-knrm', 'VANILLA', 'vanilla-demo'),
    Training('cedr-pacrr-demo', 'demo-cedr-pacrr', 'VANILLA', 'vanilla-demo'),
    Training('cedr-drmm-demo', 'demo-cedr-drmm', 'VANILLA', 'vanilla-demo'),
)


def main(arguments: list[str]) -> int | None:
    """Train what is missing."""
    options = _parser().parse_args(arguments)
    data = Path(options.data).resolve()
    work = Path(options.work).resolve()
    _check_files(options.data, data)
    wanted = _choose(options.only)
    for training in wanted:
        _check_start(training, wanted, work)
    if not all(training.taught for training in wanted):
        bm25_runs(data / 'medquad', work)
    if any(training.taught for training in wanted):
        write_material(data, work / 'material', options.teacher_precision)
    for training in TRAININGS:
        if training in wanted:
            train(training, data / 'medquad', work, options.device)
    return None


def _check_files(given: str, data: Path) -> None:
    """Raise InputError for a file of the data that is not there."""
    for folder, names in (('medquad', MEDQUAD), ('qed', QED)):
        absent = [name for name in names if not (data / folder / name).is_file()]
        if absent:
            raise InputError(
                f'--data {given}: {", ".join(absent)} not found in its folder {folder}'
            )


def _choose(only: str | None) -> list[Training]:
    """The trainings of these names, separated by commas; all for None."""
    if not only:
        return list(TRAININGS)
    known = {training.name: training for training in TRAININGS}
    for name in only.split(','):
        if name not in known:
            raise InputError(f"checkpoint '{name}' is unknown: expected {', '.join(known)}")
    return [known[name] for name in only.split(',')]


def _check_start(training: Training, wanted: Sequence[Training], work: Path) -> None:
    """Raise InputError if a training has nothing to start from.

    The checkpoint that it goes on from has to be there or to be trained.
    """
    if not training.needs or training.needs in [other.name for other in wanted]:
        return
    if not (work / training.needs).is_dir() and not (work / training.name).is_dir():
        raise InputError(
            f'{training.name} goes on from {training.needs}: train that first, or leave out --only'
        )


def bm25_runs(medquad: Path, work: Path) -> None:
    """BM25's hits for the training questions, from which negatives are drawn."""
    index = work / 'medquad.lucene'
    named = {
        'demo-train': ('demo', 'demo-train'),
        'demo-xquad': ('demo', 'demo-xquad'),
        'medquad-train': (str(index), str(medquad / 'train.queries.tsv.gz')),
    }
    for name, (where, topics) in named.items():
        output = work / 'runs' / f'{name}.txt'
        if output.is_file():
            continue
        if where == str(index) and not index.is_dir():
            corpus = ['--corpus', str(medquad / 'corpus.jsonl.gz'), '--fields', 'answer']
            package_command(['index', 'lucene', *corpus, '--output', str(index)])
        source = ['--sparse', f'bm25@{where}', '--topics', topics]
        package_command(['search', *source, '--hits', str(HITS), '--output', str(output)])


def mono_runs(work: Path, checkpoint: Path) -> None:
    """Make duoBERT's training candidates, and its validation candidates, in monoBERT's order."""
    write_pairs(work, checkpoint)
    run = work / 'material/validation.run.txt'
    output = work / 'runs/validation.mono.txt'
    if not output.is_file():
        rerank(work, run, 'validation', checkpoint, VALIDATION_DEPTH, output)


def train(training: Training, medquad: Path, work: Path, device: str) -> None:
    """Train one checkpoint, unless it exists; continue a stopped training.

    Parameters
    ----------
    training : the checkpoint and its recipe
    medquad, work : MedQuAD's folder, and the work folder
    device : what computes
    """
    output = work / training.name
    if output.is_dir():
        return
    variables = {'MEDQUAD': str(medquad)}
    if training.taught:
        variables['MATERIAL'] = str(work / 'material')
    if training.reranked:
        mono_runs(work, work / training.needs)
    if training.reranked or not training.taught:
        variables['RUNS'] = str(work / 'runs')
    if training.variable:
        variables[training.variable] = str(work / training.needs)
    words = ['train', training.recipe]
    for name, value in variables.items():
        words += ['--set', f'variables.{name}={value}']
    words += ['--device', device, '--output', str(output)]
    if output.with_name(f'{output.name}.training').is_dir():
        words.append('--resume')
    package_command(words)


def _parser() -> Parser:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--data', required=True, help='the folder that holds medquad/ and qed/')
    parser.add_argument('--work', required=True, help='where runs and checkpoints are kept')
    parser.add_argument(
        '--only', metavar='NAMES', help='checkpoints, separated by commas; default: all'
    )
    parser.add_argument(
        '--teacher-precision', default='bfloat16', help="of the teacher's vectors; or float32"
    )
    parser.add_argument('--device', default='auto', help='cpu, or auto: a GPU where there is one')
    return parser


if __name__ == '__main__':
    sys.exit(run(main))
