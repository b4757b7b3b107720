"""What a collection holds, from where, and what of it could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert.collection.file_fields import FileCounts
from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.sources import SyncReport, reading_of
from pyserini_repbert.files import files_below


@dataclass(frozen=True)
class SourceStatus:
    """A source of a collection.

    Attributes
    ----------
    name : a corpus by its path or its name; 'add'
    prefix : with which the docids of its documents begin; '' if it has none
    link : the prefix or the template of its files' addresses; '' if it has none
    main_content : whether only the main content of its pages is read
    title_column : of its tables, that is the title of their rows; '' if none was chosen
    documents : how many the collection has of it
    files : how many files they come from
    rows : how many of the documents are rows of tables
    synced : when it was synced, in ISO's form; '' if no release has noted that
    report : what the last sync says
    """

    name: str
    prefix: str
    link: str
    main_content: bool
    title_column: str
    documents: int
    files: int
    rows: int
    synced: str
    report: SyncReport


def source_states(generation: Generation) -> list[SourceStatus]:
    """The sources of a collection, in the order in which they came.

    Raises DamagedFileError for what a sync noted, if that cannot be read.
    """
    counts = generation.documents_by_source
    counts_of_files = generation.file_fields.counts
    states = []
    for row in generation.source_rows():
        try:
            report = SyncReport.parsed(row.unread) if row.unread else SyncReport('')
        except ValueError as error:
            raise generation.damage(f"the note of the last sync of '{row.name}'") from error
        documents = counts.get(row.source, 0)
        of_files = counts_of_files.get(row.source, FileCounts())
        link = generation.source_links.get(row.source, '')
        reading = reading_of(generation.source_formats.get(row.source, ''))
        states.append(
            SourceStatus(
                name=row.name,
                prefix=row.prefix,
                link=link,
                main_content=reading.main_content,
                title_column=reading.title_column,
                documents=documents,
                files=of_files.files,
                rows=of_files.rows,
                synced=row.synced,
                report=report,
            )
        )
    return states


@dataclass(frozen=True)
class StoredModel:
    """A further model of a collection: its kind, its name, and the bytes that a passage takes."""

    what: str
    encoder: str
    bytes_each: int


def stored_models(generation: Generation) -> list[StoredModel]:
    """The further models of a collection, with the disk space that they take.

    Raises DamagedFileError if a shard lacks their values.
    """
    models = []
    for kind, model in generation.settings.further_models.items():
        n_rows = 0
        n_bytes = 0
        for live in generation.shards:
            n_rows += len(live.shard)
            arrays = live.shard.rows_of(kind).arrays()
            n_bytes += sum(array.nbytes for array in arrays.values())
        models.append(StoredModel(kind.what, model.encoder, round(n_bytes / max(n_rows, 1))))
    return models


def folder_size(folder: Path) -> int:
    """The bytes of all files of a collection."""
    total = 0
    for path in files_below(folder):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            # A writer has removed it meanwhile.
            continue
    return total
