"""Fetches resources.

Downloads continue where they stopped, are verified, and are unpacked into the files that commands
expect.
"""

from __future__ import annotations

import fnmatch
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from pyserini_repbert.archives import Member, archive_members
from pyserini_repbert.checksums import digest
from pyserini_repbert.download import download_name, fetch, fetch_entry
from pyserini_repbert.errors import DamagedFileError, PyseriniRepbertError, needs
from pyserini_repbert.files import atomic_file, atomic_folder
from pyserini_repbert.offline import downloads_folder
from pyserini_repbert.regression.placeholders import file_name_problem
from pyserini_repbert.regression.resources import RECORD, SOURCE, MissingResource, entry_of
from pyserini_repbert.regression.schema import Resource

_SHOWN = 5  # members that an error lists
_COPIED = 1 << 20  # bytes at a time
# Turns a member of an archive, the second argument, into lines.
_Conversion = Callable[[IO[bytes], Path], Iterator[bytes]]


def fetch_missing(missing: MissingResource, on_progress: Callable[[int], object]) -> str:
    """Fetch a resource: '' once it is here, downloaded and unpacked, otherwise why it is not.

    Progress is in bytes.
    """
    try:
        if missing.resource.catalog:
            _fetch_entry(missing, on_progress)
        else:
            _fetch_file(missing, on_progress)
    except PyseriniRepbertError as error:
        return str(error)
    except OSError as error:
        return f'{error.filename or missing.resource.name}: {error.strerror or error}'
    return ''


def _fetch_file(missing: MissingResource, on_progress: Callable[[int], object]) -> None:
    resource = missing.resource
    target = missing.target
    assert target is not None  # a resource with an address has a path
    # A sha256 is of the file at `path`, not of what the address gives.
    md5 = resource.md5 or None
    downloads = []
    paths = _download_paths(missing)
    is_fetched = not all(path.exists() for path in paths)
    for address, path in zip(resource.address, paths, strict=True):
        download = fetch(address, path, md5, missing.size, resource.name, on_progress)
        downloads.append(download)
    if resource.unpack:
        unpack(resource.unpack, downloads, target)
    if resource.sha256 and resource.path.startswith('{downloads}/'):
        _check_sha256(target, resource, downloads)
    # What a user put there has no source that it could be compared with.
    if is_fetched and (md5 is None or resource.unpack) and target.is_file():
        _record_checksum(target, resource.source_line)


def _check_sha256(target: Path, resource: Resource, downloads: Sequence[Path]) -> None:
    """Raise DamagedFileError if the file made from downloads is not the expected one.

    The file is then removed, unless it is itself the download.
    """
    sha256 = digest(target)
    if sha256 == resource.sha256:
        return
    if target not in downloads:
        target.unlink()
    names = ', '.join(map(str, downloads))
    raise DamagedFileError(
        f'{resource.name} has sha256 {sha256[:16]}…, expected {resource.sha256[:16]}…: delete '
        f'{names} and fetch it again'
    )


def _download_paths(missing: MissingResource) -> list[Path]:
    """Where the file from each address is put: at the target, or at the path from which it is
    unpacked.
    """
    resource = missing.resource
    if not resource.unpack:
        assert missing.target is not None
        return [missing.target]
    folder = downloads_folder()
    return [folder / download_name(address, resource.file) for address in resource.address]


def _record_checksum(target: Path, source: str) -> None:
    """Write the SHA-256 of a file beside it.

    If the file differs from an earlier fetch's, removes it and raises DamagedFileError.
    """
    record = target.with_name(f'{target.name}{RECORD}')
    sha256 = digest(target)
    if record.is_file():
        known = record.read_text(encoding='utf-8').partition(' ')[0]
        if known != sha256:
            target.unlink()
            raise DamagedFileError(
                f'{source} has changed its file since it was first fetched (sha256 '
                f'{sha256[:16]}…, then {known[:16]}…): see what has changed, then delete {record} '
                f'and fetch it again'
            )
    with atomic_file(record) as stream:
        stream.write(f'{sha256}  {target.name}\n{SOURCE}{source}\n')


def _fetch_entry(missing: MissingResource, on_progress: Callable[[int], object]) -> None:
    from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
    from pyserini_repbert.names.corpora import collection_file

    entry = entry_of(missing.resource)
    if 'download' in entry.values:
        fetch_entry(entry, on_progress)
    if entry.kind == 'collections':
        collection_file(entry)
    else:
        # Converts the checkpoint, or says what to install.
        open_checkpoint(entry.name, entry.kind)


def unpack(how: str, downloads: Sequence[Path], target: Path) -> None:
    """Make `target` out of downloads.

    `gzip` copies text, `join` concatenates texts; both compress if the target's name ends in .gz.
    `member GLOB` takes the first file of an archive (.zip, .tar, .tar.gz, .tar.xz) whose name,
    without its folders, fits; `members GLOB` takes all that fit into a folder. `candidates GLOB`
    makes a run of MS MARCO's `qid docid query passage` lines; `paragraphs GLOB` makes JSON lines of
    TREC CAR's paragraphs.
    """
    word, _, pattern = how.partition(' ')
    if word in ('gzip', 'join'):
        _join(downloads, target)
    elif word == 'members':
        _unpack_all(downloads[0], pattern, target)
    else:
        _unpack_one(downloads[0], pattern, target, _CONVERSIONS.get(word))


def _join(downloads: Sequence[Path], target: Path) -> None:
    """Write texts one after another, each with an end of its last line."""
    with atomic_file(target, 'wb') as joined:
        for path in downloads:
            with open(path, 'rb') as text:
                shutil.copyfileobj(text, joined, _COPIED)
                text.seek(max(text.tell() - 1, 0))
                if text.read() not in (b'', b'\n'):
                    joined.write(b'\n')


def _unpack_all(archive: Path, pattern: str, target: Path) -> None:
    """Make a folder of the files of an archive that fit."""
    member_by_name: dict[str, str] = {}
    with atomic_folder(target) as folder:
        for member in _members(archive, pattern):
            name = Path(member.name).name
            problem = file_name_problem(name)
            if problem:
                raise DamagedFileError(f'{archive}: {problem}')
            if name in member_by_name:
                raise DamagedFileError(
                    f'{archive} holds {member_by_name[name]} and {member.name}, which have one '
                    f'name: unpack it by hand, see its source'
                )
            member_by_name[name] = member.name
            with open(folder / name, 'wb') as copy:
                shutil.copyfileobj(member.stream, copy, _COPIED)


def _unpack_one(archive: Path, pattern: str, target: Path, convert: _Conversion | None) -> None:
    """Write the first file of an archive that fits, converted if `convert` is given."""
    with atomic_file(target, 'wb') as unpacked:
        # Held by a name: the archive is closed when the generator goes.
        members = _members(archive, pattern)
        member = next(members)
        if convert is None:
            shutil.copyfileobj(member.stream, unpacked, _COPIED)
        else:
            unpacked.writelines(convert(member.stream, archive))


def _members(archive: Path, pattern: str) -> Iterator[Member]:
    """The files of an archive that fit, in its order. Raises DamagedFileError if none fits."""
    names: list[str] = []
    fits = False
    for member in archive_members(archive):
        if len(names) <= _SHOWN:
            names.append(member.name)
        if fnmatch.fnmatchcase(Path(member.name).name, pattern):
            fits = True
            yield member
    if not fits:
        listed = ', '.join(names[:_SHOWN]) or 'nothing'
        if len(names) > _SHOWN:
            listed += ' …'
        changed = 'its layout has changed; unpack it by hand, see its source'
        raise DamagedFileError(f'{archive} holds {listed}, expected {pattern}: {changed}')


def _candidates(lines: IO[bytes], archive: Path) -> Iterator[bytes]:
    """`qid docid rank` of MS MARCO's top1000 files.

    Their queries are mixed. The file's order is taken for the rank.
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
    except (DamagedFileError, OSError):
        raise
    except Exception as error:
        # The library lets every error of its CBOR parser through.
        raise DamagedFileError(
            f'{archive} holds no TREC CAR paragraphs ({error}): fetch it again'
        ) from error


_CONVERSIONS: dict[str, _Conversion] = {'candidates': _candidates, 'paragraphs': _paragraphs}
