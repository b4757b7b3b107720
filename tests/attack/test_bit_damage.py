"""One flipped bit in any file of an index: `index check` refuses it in one line, whatever the
file's times say.

Opening, which remembers checksums of files that seem untouched, refuses it as soon as it reads the
file; it never ends with anything but an error of this package, and without verification never with
a traceback.
"""

import contextlib
import os
import random

import indexes
import numpy as np
import pytest
from folders import all_documents

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import JUDGMENTS
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.excerpts import read_excerpts
from pyserini_repbert.collection.field_counts import FieldCounter
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.generation import open_generation
from pyserini_repbert.collection.judgments import Judgment, JudgmentStore
from pyserini_repbert.collection.passage_vectors import PassageVectors
from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.index.check import check_index
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.faiss_layout import FaissFolder
from pyserini_repbert.index.manifest import SETTINGS, SHARD
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.pipeline.part_file import open_part_file
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.trace import Notes

KINDS = {'dense': indexes.dense, 'epic': indexes.epic, 'faiss': indexes.faiss}
OPENED = {'dense': DenseBundle, 'epic': TermWeightsBundle, 'faiss': FaissFolder}
# Of the bytes of an index, one in so many has a bit flipped; all have with `--exhaustive`. Three
# shards have the same files: one in twelve is as much of each format as one in four of a shard.
QUICK = 50
SLOW = 12
# Of zeros, so many times fewer are flipped: most bytes of SQLite's pages are unused.
ZEROS = 16
UNREAD = (SETTINGS, SHARD)  # by a search: resuming and checking read them


def flips(path, every, seed):
    """Yield (byte, bit) of a file: all for every=1, else one bit of about one byte in `every`, and
    of fewer zeros.
    """
    chosen = random.Random(seed)
    for place, byte in enumerate(path.read_bytes()):
        bits = range(8)
        if every > 1:
            share = every if byte else every * ZEROS
            bits = [chosen.randrange(8)] * (chosen.randrange(share) == 0)
        for bit in bits:
            yield place, bit


def flipped(path, place, bit):
    """Flip a bit where it lies, and set the file's times back."""
    status = path.stat()
    with open(path, 'r+b') as stream:
        stream.seek(place)
        byte = stream.read(1)[0]
        stream.seek(place)
        stream.write(bytes([byte ^ (1 << bit)]))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def refused(work, path, where):
    """What is wrong with how `work` takes damage: nothing, where it is refused in one line."""
    try:
        work()
    except PyseriniRepbertError as error:
        folder = path.parent.name
        return [] if '\n' not in str(error) and folder in str(error) else [f'{where}: {error!r}']
    except BaseException as error:
        return [f'{where}: {type(error).__name__}: {error}']
    return [f'{where}: accepted']


def unverified(kind, folder):
    """Read all of an index without its checksums: any answer, or an error of ours."""
    opened = OPENED[kind](folder, verify=False)
    if kind != 'faiss':
        list(opened.passages())
        opened.texts(['d0', 'd4', 'nowhere'])
        opened.docids(np.arange(len(opened)))


@pytest.mark.parametrize('share', [QUICK, pytest.param(SLOW, marks=pytest.mark.slow)])
@pytest.mark.parametrize('kind', KINDS)
def test_every_flipped_bit_of_an_index_is_refused(kind, share, tmp_path, one_in):
    # The files of FAISS are small.
    every = one_in(min(share, 3) if kind == 'faiss' else share)
    index = KINDS[kind](tmp_path / 'index')
    check_index(index)
    OPENED[kind](index)  # which remembers the checksums
    failures = []
    cases = 0
    for path in sorted(path for path in index.rglob('*') if path.is_file()):
        for place, bit in flips(path, every, seed=len(path.name)):
            cases += 1
            where = f'{path.relative_to(index)} byte {place} bit {bit}'
            flipped(path, place, bit)
            failures += refused(lambda: check_index(index), path, f'check: {where}')
            if place % 8 != bit and every == 1:
                flipped(path, place, bit)
                continue  # of a byte, one bit is also tried by opening
            if path.name not in UNREAD:
                failures += refused(lambda: OPENED[kind](index), path, f'open: {where}')
            if kind != 'faiss':  # what FAISS reads unverified is FAISS's
                try:
                    unverified(kind, index)
                except PyseriniRepbertError:
                    pass
                except BaseException as error:
                    failures.append(f'unverified: {where}: {type(error).__name__}: {error}')
            flipped(path, place, bit)
    print(f'{kind}: {cases} bits, {len(failures)} failures')
    assert failures == [] and cases > (50 if every > 1 else 1000)
    check_index(index)


def faults(path, every, seed, read):
    """What is wrong with how `read` takes flipped bits of a file: it gives None, says what is
    wrong, or refuses it.
    """
    whole = path.read_bytes()
    failures = []
    cases = 0
    for place, bit in flips(path, every, seed):
        cases += 1
        flipped(path, place, bit)
        try:
            fault = read()
        except PyseriniRepbertError as error:
            fault = None if path.name in str(error) else str(error)
        except BaseException as error:
            fault = f'{type(error).__name__}: {error}'
        failures += [f'{place}.{bit}: {fault}'] if fault else []
        path.write_bytes(whole)
    assert cases > 50
    return failures


@pytest.mark.parametrize('share', [10, pytest.param(2, marks=pytest.mark.slow)])
def test_flipped_bits_of_a_part_file_are_refused_or_cost_a_batch(share, tmp_path, one_in):
    output = tmp_path / 'out.txt'
    settings = {'run': 'x', 'stages': [1]}
    batches = [{f'q{n}': Ranking(['a', 'b'], [2.0, float(n)])} for n in range(3)]
    with open_part_file(output, settings) as part:
        for number, batch in enumerate(batches):
            part.append(number, batch, Notes())

    def read():
        with open_part_file(output, settings, resume=True) as part:
            if any(part.batches[number][0] != batches[number] for number in part.batches):
                return 'other scores'
            return None if len(part.batches) >= 2 else f'{len(part.batches)} batches are left'

    assert faults(output.with_name('out.txt.part'), one_in(share), 5, read) == []


DOCUMENTS = [
    {'id': 'a', 'title': 'Cats', 'text': 'the cat sat on the mat. ' * 4, 'year': 2020, 'kind': 'X'},
    {
        'id': 'b',
        'title': 'red blue',
        'text': 'a dog ate the fish, big and small.',
        'list': ['p', 1],
    },
    {'id': 'c', 'text': 'birds in the tree.', 'made': '2020-01-02 10:00'},
    {'id': 'd', 'text': ''},
]


def read_collection(folder):
    """What a collection answers without its check, by what is asked."""
    with (
        contextlib.closing(open_generation(folder)) as generation,
        contextlib.closing(FieldCounter(generation)) as counter,
    ):
        docids = [document['id'] for document in DOCUMENTS]
        docnos = generation.docnos(docids)
        numbers = {}
        for docno, spans in generation.passages(docnos.tolist()).items():
            numbers[docno] = [span.number for span in spans]
        vectors = PassageVectors(generation)
        return {
            'documents': generation.documents(docids),
            'fields': generation.fields(docids),
            'excerpts': read_excerpts(generation, numbers),
            'docids of rows': vectors.docids(np.arange(len(vectors))),
            'counts': counter.counts(),
            'filter': DocumentFilter('docid:* AND NOT year:[2000 TO *]').mask(generation).tolist(),
            'versions': generation.versions(docids),
            'all': [document.docid for document in all_documents(generation)],
            'numbers': vectors.numbers.tolist(),
        }


@pytest.mark.parametrize('share', [400, pytest.param(100, marks=pytest.mark.slow)])
def test_a_flipped_bit_of_a_collection_is_refused_or_changes_no_answer(
    share, tiny_checkpoint, tmp_path, one_in
):
    """A check refuses whatever changes an answer; reading never ends in anything but an error."""
    folder = tmp_path / 'mine'
    settings = {'passage_tokens': 10, 'overlap': 3, 'sparse': 'none'}
    with Collection.open(folder, encoder=str(tiny_checkpoint()), **settings) as collection:
        collection.sync(DOCUMENTS)
    JudgmentStore(folder / JUDGMENTS).add([Judgment('which cat', 'a', 2, 'ann')])
    expected = read_collection(folder)
    failures = []
    cases = 0
    for path in sorted(path for path in folder.rglob('*') if path.stat().st_size):
        if path.is_dir() or 'record' in path.name:
            continue
        every = one_in(share)
        for place, bit in flips(path, every, seed=len(path.name)):
            cases += 1
            where = f'{path.relative_to(folder)} byte {place} bit {bit}'
            flipped(path, place, bit)
            is_refused = True
            try:
                check_collection(folder)
                is_refused = False
            except PyseriniRepbertError as error:
                failures += [f'check: {where}: {error}'] if '\n' in str(error) else []
            except Exception as error:
                failures.append(f'check: {where}: {type(error).__name__}: {error}')
            try:
                answer = read_collection(folder)
                if not is_refused and answer != expected:
                    failures.append(f'accepted: {where}')
                if answer['documents'] != expected['documents'] and None not in answer['documents']:
                    failures.append(f'shown: {where}')
                JudgmentStore(folder / JUDGMENTS).judgments()
            except PyseriniRepbertError as error:
                failures += [] if is_refused else [f'only read: {where}: {error}']
            except Exception as error:
                failures.append(f'read: {where}: {type(error).__name__}: {error}')
            flipped(path, place, bit)
    print(f'{cases} bits, {len(failures)} failures', *failures, sep='\n')
    assert failures == [] and cases > 50
    check_collection(folder)
