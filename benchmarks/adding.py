"""One document added to a collection until a question finds it, in processor milliseconds.

    OMP_NUM_THREADS=1 python benchmarks/adding.py --index FOLDER [--adds 4]

The collection is copied, opened and asked some questions. Then documents are added one by one, and
each is searched for. The first one loads what writes; `doctor` makes the archive of Java's classes,
with which this takes less.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import figures
from figures import Figure

from pyserini_repbert.collection import Collection

_QUESTIONS = ('transistor circuits', 'wave guides', 'the ionosphere', 'dielectric constants')
_ROUNDS = 5


def add_until_found(collection: Collection, number: int) -> float:
    """The processor milliseconds of adding a document and finding it."""
    start = time.process_time()
    collection.add([{'id': f'new-{number}', 'text': f'the zymurgical quokka number{number}'}])
    (best,) = collection.search(f'zymurgical quokka number{number}', 1)
    milliseconds = 1000 * (time.process_time() - start)
    if best.docid != f'new-{number}':
        sys.exit(f'the new document was not found: {best}')
    return milliseconds


def main() -> None:
    """Add, search, and print."""
    parser = figures.parser(__doc__)
    parser.add_argument('--index', type=Path, required=True, help='a collection, which is copied')
    parser.add_argument('--adds', type=int, default=4, help='how many documents; default: 4')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copied = shutil.copytree(options.index, Path(folder) / 'collection')
        with Collection.open(copied) as collection:
            for question in _QUESTIONS * _ROUNDS:
                collection.search(question)
            times = [add_until_found(collection, number) for number in range(options.adds)]
    first, *others = times
    found = [Figure('the first document until it is found', first, 'ms')]
    if others:
        found.append(Figure('a further document until it is found', median(others), 'ms'))
    figures.tell(options, found)


if __name__ == '__main__':
    main()
