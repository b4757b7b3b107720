"""Fetches resources: downloads go on where they stopped, are verified, and unpacked into what
commands expect.
"""

from __future__ import annotations

import fnmatch
import json
import shutil
import tarfile
import urllib.parse
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pyserini_repbert.checksums import digest
from pyserini_repbert.download import downloads_folder, fetch, fetch_entry
from pyserini_repbert.errors import DamagedFileError, PyseriniRepbertError, needs
from pyserini_repbert.files import ARCHIVE_ERRORS, atomic_file, atomic_folder
from pyserini_repbert.regression.resources import RECORD, NeededResource, entry_of


def fetched(missing: NeededResource, on_progress: Callable[[int], object]) -> str:
    """Fetch a resource: '' once it is here, downloaded and unpacked, else why it is not.

    Progress is in bytes.
    """
    fetch_one = _fetch_entry if missing.resource.catalog else _fetch_file
    try:
        fetch_one(missing, on_progress)
    except PyseriniRepbertError as error:
        return str(error)
    except OSError as error:
        return f'{error.filename or missing.resource.name}: {error.strerror or error}'
    return ''


def _fetch_file(missing: NeededResource, on_progress: Callable[[int], object]) -> None:
    resource = missing.resource
    target = missing.target
    assert target is not None  # a resource with an address has a path
    folder = target.parent
    names = [target.name]
    if resource.unpack:
        folder = downloads_folder()
        paths = (urllib.parse.urlsplit(address).path for address in resource.address)
        names = [resource.file] if resource.file else [path.rpartition('/')[2] for path in paths]
    md5 = (
        resource.md5 or None
    )  # a sha256 is that of the file at `path`, not of what the address gives
    parts = [
        fetch(address, folder / name, md5, missing.size, resource.name, on_progress)
        for name, address in zip(names, resource.address, strict=True)
    ]
    if resource.unpack:
        unpack(resource.unpack, parts, target)
    if (md5 is None or resource.unpack) and target.is_file():
        _record(target, ' and '.join(resource.address))


def _record(target: Path, source: str) -> None:
    """Write the SHA-256 of a file beside it; the file is removed where it differs from that of
    an earlier fetch.
    """
    record = target.with_name(f'{target.name}{RECORD}')
    sha256 = digest(target)
    if (
        record.is_file()
        and (known := record.read_text(encoding='utf-8').partition(' ')[0]) != sha256
    ):
        target.unlink()
        raise DamagedFileError(
            f'{source} gave another file than when it was first fetched (sha256 {sha256[:16]}…, '
            f'then {known[:16]}…): '
            f'see what has changed, then delete {record} and fetch it again'
        )
    with atomic_file(record) as stream:
        stream.write(f'{sha256}  {target.name}\n')


def _fetch_entry(missing: NeededResource, on_progress: Callable[[int], object]) -> None:
    from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
    from pyserini_repbert.names.corpora import collection_file

    entry = entry_of(missing.resource)
    if 'download' in entry.values:
        fetch_entry(entry, on_progress)
    if entry.kind == 'collections':
        collection_file(entry)
    else:
        open_checkpoint(entry.name, entry.kind)  # converts it, or says what to install


_SHOWN = 5  # members that an error lists


def unpack(how: str, downloads: Sequence[Path], target: Path) -> None:
    """Make `target` out of downloads.

    `gzip` copies a text, `join` concatenates texts, both compressed if the target's name ends in
    .gz. `member GLOB` takes the first file of an archive (.zip, .tar, .tar.gz, .tar.xz) whose name,
    without its folders, fits; `members GLOB` takes all that fit into a folder. `candidates GLOB`
    makes a run of MS MARCO's `qid docid query passage` lines; `paragraphs GLOB` makes JSON lines of
    TREC CAR's paragraphs.
    """
    word, _, pattern = how.partition(' ')
    if word in ('gzip', 'join'):
        with atomic_file(target, 'wb') as unpacked:
            for path in downloads:
                with open(path, 'rb') as text:
                    shutil.copyfileobj(text, unpacked, 1 << 20)
                    text.seek(max(text.tell() - 1, 0))
                    if text.read() not in (b'', b'\n'):  # its last line has no end
                        unpacked.write(b'\n')
    elif word == 'members':
        with atomic_folder(target) as folder, _whole_archive(downloads[0]):
            for name, stream in _members(downloads[0], pattern):
                with open(folder / Path(name).name, 'wb') as copy:
                    shutil.copyfileobj(stream, copy, 1 << 20)
    else:
        with atomic_file(target, 'wb') as unpacked, _whole_archive(downloads[0]):
            members = _members(downloads[0], pattern)  # which closes the archive when it goes
            _, stream = next(members)
            if word == 'member':
                shutil.copyfileobj(stream, unpacked, 1 << 20)
            else:
                converted = _candidates if word == 'candidates' else _paragraphs
                unpacked.writelines(converted(stream, downloads[0]))


@contextmanager
def _whole_archive(archive: Path) -> Iterator[None]:
    """Turn what reading a damaged archive raises into one DamagedFileError."""
    try:
        yield
    except (*ARCHIVE_ERRORS, zipfile.BadZipFile) as error:
        problem, *_ = str(error).splitlines() or [
            type(error).__name__
        ]  # tarfile's other lines: each kind tried
        damaged = f'{archive} is not a whole archive ({problem.rstrip(":")})'
        raise DamagedFileError(f'{damaged}: delete it and fetch it again') from error


def _members(archive: Path, pattern: str) -> Iterator[tuple[str, IO[bytes]]]:
    """(name, stream) of the files of an archive that fit, in its order; DamagedFileError if none
    does.
    """
    names = []
    fits = False
    for name, stream in _files(archive):
        names.append(name)
        if fnmatch.fnmatchcase(Path(name).name, pattern):
            fits = True
            yield name, stream
    if not fits:
        listed = f'{", ".join(names[:_SHOWN])}{" …" if len(names) > _SHOWN else ""}' or 'nothing'
        changed = 'its layout has changed; unpack it by hand, see its source'
        raise DamagedFileError(f'{archive} holds {listed}, expected {pattern}: {changed}')


def _files(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for item in packed.infolist():
                if not item.is_dir():
                    yield item.filename, packed.open(item)
    else:
        with tarfile.open(archive) as tar:
            for member in tar:
                stream = tar.extractfile(member) if member.isreg() else None
                if stream is not None:
                    yield member.name, stream


def _candidates(lines: IO[bytes], archive: Path) -> Iterator[bytes]:
    """`qid docid rank` of MS MARCO's top1000 files, whose queries are mixed; the file's order is
    taken for the rank.
    """
    ranks: Counter[bytes] = Counter()
    for number, line in enumerate(lines, 1):
        values = line.split(b'\t')
        if len(values) < 2 or not values[0].isdigit():
            raise DamagedFileError(
                f"{archive}: line {number} is not 'qid docid query passage': its layout has changed"
            )
        ranks[values[0]] += 1
        yield b'%s\t%s\t%d\n' % (values[0], values[1].strip(), ranks[values[0]])


def _paragraphs(stream: IO[bytes], archive: Path) -> Iterator[bytes]:
    """JSON lines (`id`, `contents`) of TREC CAR's paragraphs, read by its own library."""
    with needs('trec-car-tools', "TREC CAR's paragraphs", 'car'):
        from trec_car.read_data import iter_paragraphs
    try:
        for paragraph in iter_paragraphs(stream):
            record = {'id': paragraph.para_id, 'contents': ' '.join(paragraph.get_text().split())}
            yield json.dumps(record, ensure_ascii=False).encode() + b'\n'
    except (*ARCHIVE_ERRORS, OSError):
        raise
    except Exception as error:  # the library lets every error of its CBOR parser through
        raise DamagedFileError(
            f'{archive} holds no TREC CAR paragraphs ({error}): fetch it again'
        ) from error
