"""Documents that got another docid, and texts that went from one document to another.

A grade belongs to the text that it was given to, so judgments follow both.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyserini_repbert.collection.store import FOREVER
from pyserini_repbert.data.origins import docid_of_path

_READ_AT_ONCE = 500  # documents
_DIGEST_BYTES = 16


@dataclass(frozen=True)
class Rename:
    """The docid that a text had, and the one that it has now.

    `new` is '' for a text that is gone, if the document `old` has the text of another one now.
    """

    old: str
    new: str


@dataclass(frozen=True)
class _Candidate:
    """A document that was deleted or added."""

    docid: str
    title: str

    @property
    def name(self) -> str:
        """The last part of its docid: the name of its file."""
        return self.docid.rpartition('/')[2]


def find_renames(
    connection: sqlite3.Connection, generation: int, source: int, gone: Sequence[int]
) -> list[Rename]:
    """Which documents of a source have only got another docid.

    Texts are compared, and each document is taken once. Of several with the same text, one with the
    same file name is preferred, then one with the same title.

    Parameters
    ----------
    connection : of the writer, which has staged what the source has
    generation : the one that is staged
    source : its number
    gone : the numbers of the documents that it no longer has
    """
    by_text: dict[bytes, list[_Candidate]] = {}
    for digest, candidate in _read_gone(connection, gone):
        by_text.setdefault(digest, []).append(candidate)
    if not by_text:
        return []
    renames = []
    for digest, candidate in _read_new(connection, generation, source):
        before = by_text.get(digest)
        if before:
            old = _take_likest(before, candidate)
            renames.append(Rename(old.docid, candidate.docid))
    return renames


def find_lost(
    connection: sqlite3.Connection,
    generation: int,
    source: int,
    gone: Sequence[int],
    *,
    renames: Sequence[Rename],
) -> list[str]:
    """The docids of documents that are gone, and that no new document of the same file replaces.

    A file may now be read as different documents: by rows that have other docids, or as one
    document.

    Parameters
    ----------
    connection : of the writer, which has staged what the source has
    generation : the one that is staged
    source : its number
    gone : the numbers of the documents that it no longer has
    renames : documents that only got another docid
    """
    passed_over: set[str] = set()
    for rename in renames:
        passed_over.update((rename.old, rename.new))
    n_new: Counter[str] = Counter()
    whole_files = set()
    for docid, file in _read_new_files(connection, generation, source):
        if docid not in passed_over:
            n_new[file] += 1
        if docid.endswith(docid_of_path(file)):
            whole_files.add(file)
    lost = []
    for docid, file in _read_files(connection, gone):
        if docid in passed_over or file in whole_files:
            continue
        if n_new[file] > 0:
            n_new[file] -= 1
        else:
            lost.append(docid)
    return lost


def find_moves(
    connection: sqlite3.Connection,
    generation: int,
    renames: Sequence[Rename],
    judged: Collection[str],
) -> list[Rename]:
    """Where texts went of documents that have other texts with the next generation.

    Two documents may swap their texts, or one may take the text of another one that was deleted or
    has a new text. A document may also become a copy of a judged one. Its previous text no longer
    exists, and neither do the grades given to it.

    Parameters
    ----------
    connection : of the writer, which has staged the generation
    generation : the one that is staged
    renames : what `find_renames` found
    judged : the docids with a judgment
    """
    ended, begun = _read_changed_texts(connection, generation)
    for rename in renames:
        ended.pop(rename.old, None)
        begun.pop(rename.new, None)
    moves = _match_texts(ended, begun)
    left = {move.old for move in moves}
    come = {move.new for move in moves}
    changed = [docid for docid in begun if docid in ended and docid not in left]
    replaced = [docid for docid in changed if docid in come]
    edited = [docid for docid in changed if docid not in come and docid in judged]
    if edited:
        # The judged documents that have, and had, the texts that were judged.
        followed = [move.new for move in (*renames, *moves) if move.old in judged]
        known = [docid for docid in judged if docid not in begun]
        texts = set(_read_live(connection, [*followed, *known]))
        replaced += [docid for docid in edited if begun[docid].digest in texts]
    return moves + _without_successor(replaced)


def find_returns(
    connection: sqlite3.Connection,
    generation: int,
    moves: Sequence[Rename],
    judged: Mapping[str, Sequence[str]],
) -> list[Rename]:
    """Which judged texts of deleted documents are back, in documents with other docids.

    Texts are compared with their titles, since of a deleted document only the version is known.

    Parameters
    ----------
    connection : of the writer, which has staged the generation
    generation : the one that is staged
    moves : what `find_renames` and `find_moves` found
    judged : the versions that were judged, by docid
    """
    old_by_version = _gone_versions(connection, generation, judged)
    if not old_by_version:
        return []
    come = {move.new for move in moves}
    new_by_old: dict[str, str] = {}
    for docid, version in _read_new_versions(connection, generation):
        old = old_by_version.get(version, docid)
        if docid != old and docid not in come:
            new_by_old.setdefault(old, docid)
    returns = [Rename(old, new) for old, new in new_by_old.items()]
    # The docid's previous text was another one, which no longer exists.
    left = {move.old for move in moves} | set(new_by_old)
    displaced = [docid for docid in new_by_old.values() if docid not in left]
    return returns + _without_successor(displaced)


def _without_successor(docids: Sequence[str]) -> list[Rename]:
    """Documents that exist, but no longer have their judged texts."""
    return [Rename(docid, '') for docid in docids]


def _gone_versions(
    connection: sqlite3.Connection, generation: int, judged: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """The docid of each judged version, of documents that the generation before does not have.

    A document that already existed keeps its grades, or `find_moves` says where they go.
    """
    were_live = connection.execute(
        'SELECT docid FROM documents JOIN fields USING (docno) WHERE since < :generation '
        'AND until >= :generation AND docid IN (SELECT value FROM json_each(:docids))',
        {'generation': generation, 'docids': json.dumps(list(judged))},
    )
    passed_over = {docid for (docid,) in were_live}
    old_by_version: dict[str, str] = {}
    for docid, versions in sorted(judged.items()):
        if docid not in passed_over:
            old_by_version.update(dict.fromkeys(versions, docid))
    return old_by_version


def _read_new_versions(
    connection: sqlite3.Connection, generation: int
) -> Iterator[tuple[str, str]]:
    """The docid and the version of each document whose text or title has changed."""
    rows = connection.execute(
        'SELECT docid, text_digest FROM staged CROSS JOIN fields USING (docno) '
        f'JOIN documents USING (docno) WHERE since = :generation AND until = {FOREVER} '
        'AND NOT EXISTS (SELECT 1 FROM fields AS before WHERE before.docno = staged.docno '
        'AND before.until = :generation AND before.text_digest = fields.text_digest) '
        'ORDER BY staged.docno',
        {'generation': generation},
    )
    for docid, digest in rows:
        yield docid, digest.hex()


@dataclass(frozen=True)
class _Text:
    """A document's text, by its digest."""

    digest: bytes
    document: _Candidate


def _read_changed_texts(
    connection: sqlite3.Connection, generation: int
) -> tuple[dict[str, _Text], dict[str, _Text]]:
    """The texts that end and those that begin with a generation, by docid.

    A document whose title alone has changed is left out.
    """
    ended = _read_staged(
        connection, 'texts.until = :generation AND since < :generation', generation
    )
    if not ended:
        return {}, {}
    begun = _read_staged(connection, f'since = :generation AND texts.until = {FOREVER}', generation)
    for docid in list(ended):
        if docid in begun and begun[docid].digest == ended[docid].digest:
            del ended[docid]
            del begun[docid]
    return ended, begun


def _read_staged(
    connection: sqlite3.Connection, condition: str, generation: int
) -> dict[str, _Text]:
    rows = connection.execute(
        'SELECT docid, title, text FROM staged CROSS JOIN texts USING (docno) '
        f'JOIN documents USING (docno) WHERE {condition} ORDER BY staged.docno',
        {'generation': generation},
    )
    return {document.docid: _Text(digest, document) for digest, document in _digested(rows)}


def _match_texts(ended: Mapping[str, _Text], begun: Mapping[str, _Text]) -> list[Rename]:
    """Each text that ends in one document and begins in another, once."""
    by_text: dict[bytes, list[_Candidate]] = {}
    for text in ended.values():
        by_text.setdefault(text.digest, []).append(text.document)
    moves = []
    for text in begun.values():
        before = by_text.get(text.digest)
        if before:
            old = _take_likest(before, text.document)
            moves.append(Rename(old.docid, text.document.docid))
    return moves


def _read_live(connection: sqlite3.Connection, docids: Sequence[str]) -> Iterator[bytes]:
    """The digests of the texts that documents have with the next generation."""
    rows = connection.execute(
        'SELECT docid, title, text FROM documents JOIN texts USING (docno) '
        f'WHERE until = {FOREVER} AND docid IN (SELECT value FROM json_each(?))',
        [json.dumps(docids)],
    )
    for digest, _ in _digested(rows):
        yield digest


def _take_likest(before: list[_Candidate], new: _Candidate) -> _Candidate:
    """Take the document out of `before` that is most like a new one."""
    old = min(before, key=lambda known: _unlikeness(known, new))
    before.remove(old)
    return old


def _unlikeness(old: _Candidate, new: _Candidate) -> tuple[bool, bool]:
    return old.name != new.name, old.title != new.title


def _read_gone(
    connection: sqlite3.Connection, gone: Sequence[int]
) -> Iterator[tuple[bytes, _Candidate]]:
    for first in range(0, len(gone), _READ_AT_ONCE):
        docnos = gone[first : first + _READ_AT_ONCE]
        rows = connection.execute(
            'SELECT docid, title, text FROM texts JOIN documents USING (docno) '
            f'WHERE until = {FOREVER} AND docno IN (SELECT value FROM json_each(?)) ORDER BY docno',
            [json.dumps(docnos)],
        )
        yield from _digested(rows)


def _read_new(
    connection: sqlite3.Connection, generation: int, source: int
) -> Iterator[tuple[bytes, _Candidate]]:
    """The documents of a source that are staged, and were not in the generation before."""
    rows = connection.execute(
        'SELECT docid, title, text FROM staged CROSS JOIN fields USING (docno) '
        f'JOIN texts ON texts.docno = staged.docno AND texts.until = {FOREVER} '
        'JOIN documents ON documents.docno = staged.docno '
        f'WHERE fields.since = :generation AND fields.until = {FOREVER} '
        'AND fields.source = :source AND NOT EXISTS (SELECT 1 FROM fields AS before '
        'WHERE before.docno = staged.docno AND before.until = :generation) ORDER BY staged.docno',
        {'generation': generation, 'source': source},
    )
    yield from _digested(rows)


def _read_new_files(
    connection: sqlite3.Connection, generation: int, source: int
) -> Iterator[tuple[str, str]]:
    """The docid and the file of each staged document that the generation before did not have.

    Documents that come from no file are left out.
    """
    yield from connection.execute(
        'SELECT docid, file FROM staged CROSS JOIN fields USING (docno) '
        f'JOIN origins ON origins.docno = staged.docno AND origins.until = {FOREVER} '
        'JOIN documents ON documents.docno = staged.docno '
        f'WHERE fields.since = :generation AND fields.until = {FOREVER} '
        "AND fields.source = :source AND file > '' AND NOT EXISTS (SELECT 1 FROM fields AS before "
        'WHERE before.docno = staged.docno AND before.until = :generation) ORDER BY staged.docno',
        {'generation': generation, 'source': source},
    )


def _read_files(connection: sqlite3.Connection, docnos: Sequence[int]) -> Iterator[tuple[str, str]]:
    """The docid and the file of live documents; '' for one that comes from no file."""
    for first in range(0, len(docnos), _READ_AT_ONCE):
        yield from connection.execute(
            "SELECT docid, COALESCE(file, '') FROM documents LEFT JOIN origins "
            f'ON origins.docno = documents.docno AND until = {FOREVER} '
            'WHERE documents.docno IN (SELECT value FROM json_each(?)) ORDER BY documents.docno',
            [json.dumps(docnos[first : first + _READ_AT_ONCE])],
        )


def _digested(rows: sqlite3.Cursor) -> Iterator[tuple[bytes, _Candidate]]:
    """The digest of each text, with its document.

    For a page that is only a heading, the title is compared. Documents without any words are left
    out.
    """
    for docid, title, text in rows:
        words = text or (title and f'\0{title}')
        if words:
            digest = hashlib.blake2b(words.encode(), digest_size=_DIGEST_BYTES).digest()
            yield digest, _Candidate(docid, title)
