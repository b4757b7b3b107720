"""Whether a collection is whole: its files, SQLite's rows, its vectors, and Lucene's documents."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pyserini_repbert.collection.adaptation import judgments_of, learned_folder
from pyserini_repbert.collection.approximate import describe_ann
from pyserini_repbert.collection.layout import check_layout
from pyserini_repbert.collection.reading import Generation, LiveShard, open_generation
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.lucene.updating import check_lucene_index
from pyserini_repbert.search.adapted_folder import read_adapted

_ALIVE = 'since <= :generation AND until > :generation'
_ADVICE = 'restore the folder from a copy, or build the collection again'


def check_collection(folder: Path) -> str:
    """Compare everything in the newest generation with everything else.

    Returns a line that says what the collection holds, and a second one for its approximate index
    if there is one. Raises DamagedFileError for the first thing that does not fit.
    """
    check_layout(folder)
    generation = open_generation(folder)
    try:
        _check_store(generation)
        for live in generation.shards:
            live.shard.verify()
            _check_rows(generation, live)
            _check_terms(generation, live)
        _check_spans(generation)
        lucene = _check_lucene(generation)
        _check_judgments(generation)
        ann = describe_ann(generation)
    finally:
        generation.close()
    manifest = generation.manifest
    shards = '1 shard' if len(manifest.shards) == 1 else f'{len(manifest.shards)} shards'
    line = (
        f'{folder}: whole, generation {manifest.number}: {manifest.documents} documents, '
        f'{manifest.passages} passages in {shards}, encoder '
        f"'{manifest.settings.encoder}', language '{manifest.settings.language}'; {lucene}"
    )
    return f'{line}\n{ann}' if ann else line


def _check_store(generation: Generation) -> None:
    problems = generation.select('PRAGMA integrity_check(1)')
    if problems != [('ok',)]:
        raise _damage(generation, f'SQLite finds: {problems[0][0]}')
    count = generation.select(f'SELECT COUNT(*) FROM fields WHERE {_ALIVE}')[0][0]
    if count != len(generation):
        raise _damage(generation, f'{count} documents, its manifest says {len(generation)}')
    n_texts = generation.select(f'SELECT COUNT(*) FROM texts WHERE {_ALIVE}')[0][0]
    if n_texts != count:
        raise _damage(generation, f'{count} documents, but {n_texts} texts')


def _check_rows(generation: Generation, live: LiveShard) -> None:
    """Compare a shard's rows with the passages that SQLite has in it."""
    shard = live.shard
    rows = generation.select(
        'SELECT row, docno, number, input FROM passages '
        'WHERE shard = (SELECT shard FROM shards WHERE name IN (SELECT value FROM '
        f'json_each(:rows))) AND {_ALIVE} ORDER BY row',
        [shard.name],
    )
    expected = np.arange(len(shard))
    if live.live is not None:
        expected = np.flatnonzero(live.live)
    if [row[0] for row in rows] != expected.tolist():
        raise _damage(generation, f'the passages of shard {shard.name} are not its live rows')
    for row, docno, number, digest in rows:
        is_same = shard.documents[row] == docno and shard.numbers[row] == number
        if not is_same or shard.inputs[row].tobytes() != digest:
            raise _damage(generation, f'row {row} of shard {shard.name} is another passage')


def _check_terms(generation: Generation, live: LiveShard) -> None:
    """Check that a shard has weights of terms by the collection's model, if it has one."""
    if generation.settings.sparse_model is None:
        return
    terms = live.shard.terms
    if terms.model != generation.settings.sparse_key:
        raise _damage(generation, f'shard {live.shard.name} is of another sparse model')
    if len(terms.terms) != terms.offsets[-1]:
        raise _damage(generation, f'shard {live.shard.name} has {len(terms.terms)} weights')


def _check_spans(generation: Generation) -> None:
    """Look for passages that lie outside of their texts."""
    doubtful = generation.select(
        'SELECT docno, start, end, text FROM passages JOIN texts USING (docno) '
        'WHERE passages.since <= :generation AND passages.until > :generation '
        'AND texts.since <= :generation AND texts.until > :generation '
        'AND (start < 0 OR end < start OR end > length(text))'
    )
    for docno, start, end, text in doubtful:
        # SQLite's length ends at a character U+0000, which a text may have
        if not 0 <= start <= end <= len(text):
            docid = generation.docids([docno])[0]
            raise _damage(generation, f"a passage of document '{docid}' lies outside of its text")


def _check_judgments(generation: Generation) -> None:
    """Check the file of judgments, and what is in use of what was learned from them."""
    store = judgments_of(generation.folder)
    store.check()
    learning = store.in_use()
    if learning is not None:
        read_adapted(learned_folder(generation.folder, learning))


def _check_lucene(generation: Generation) -> str:
    """Compare Lucene's documents with those that have text; returns what to say of them."""
    folder = generation.lucene_folder
    if folder is None:
        model = generation.settings.sparse_model
        learned = '' if model is None else f"sparse model '{model.encoder}', "
        return f'{learned}no Lucene index'
    if not folder.is_dir():
        raise DamagedFileError(f'{folder} is missing: {_ADVICE}')
    rows = generation.select(
        f'SELECT docid FROM documents JOIN texts USING (docno) WHERE {_ALIVE} '
        'AND has_contents(title, text)'
    )
    try:
        counts = check_lucene_index(folder, [docid for (docid,) in rows])
    except InputError as error:
        raise DamagedFileError(f'{error}: {_ADVICE}') from error
    if counts.documents != len(rows):
        raise DamagedFileError(
            f'{folder} has {counts.documents} documents, {len(rows)} were expected: {_ADVICE}'
        )
    text = f'Lucene: {counts.documents} documents'
    if counts.dead:
        text += f', and {counts.dead} deleted ones that count until segments are merged'
    return text


def _damage(generation: Generation, what: str) -> DamagedFileError:
    return DamagedFileError(f'collection {generation.folder} is damaged, {what}: {_ADVICE}')
