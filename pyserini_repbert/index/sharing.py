"""An index as two files that another machine installs: a tarball, and a JSON entry that describes and pins it."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO, NotRequired

from typing_extensions import TypedDict  # pydantic needs this one below Python 3.12

from pyserini_repbert import catalog
from pyserini_repbert.data.json_values import checked, parse_json
from pyserini_repbert.disk import human_size
from pyserini_repbert.download import downloads_folder, fetch
from pyserini_repbert.errors import DamagedFileError, InputError, MissingResourceError
from pyserini_repbert.files import ARCHIVE_ERRORS, StrPath, atomic_file, atomic_folder, digest, existing_file
from pyserini_repbert.index.check import check_index

FORMAT = 1
_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]{0,99}')
_LEFT_OUT = ('write.lock',)
_BLOCK = 1 << 20

Progress = Callable[[int], object]


class SharedIndex(TypedDict):
    """The JSON entry of a published index.

    `size` is the tarball's, `unpacked` that of the files in it, both in bytes; `holds` is the summary of `check_index`;
    `url` is the tarball's address, for an entry without the tarball beside it.
    """

    format: int
    name: str
    description: str
    file: str
    size: int
    unpacked: int
    md5: str
    sha256: str
    holds: str
    url: NotRequired[str]


def publish_index(
    folder: StrPath,
    output: StrPath,
    name: str,
    description: str = '',
    url: str | None = None,
    on_progress: Progress | None = None,
) -> Path:
    """Write OUTPUT/NAME.tar.gz and OUTPUT/NAME.json from an undamaged index; returns the entry's path.

    The same index gives the same bytes.

    Parameters
    ----------
    url : the http(s) address that the tarball will have
    on_progress : called with the number of bytes packed since the last call

    Raises
    ------
    InputError
        where the name cannot be used, the url is no address, the files exist already, or the output lies in the index
    DamagedFileError
        where the index is not as it was written
    """
    check_name(name)
    source, tarball, entry = Path(folder), Path(output) / f'{name}.tar.gz', Path(output) / f'{name}.json'
    if source.resolve() in (Path(output).resolve(), *Path(output).resolve().parents):
        raise InputError(f'output {output} lies in the index {source}: give another folder')
    for path in (tarball, entry):
        if path.exists():
            raise InputError(f'{path} exists: remove it, or give another name')
    if url is not None:
        _check_url(url)
    holds = check_index(source).replace(f'{source}: whole, ', '').partition('\n')[0]
    files = sorted(path for path in source.rglob('*') if path.is_file() and path.name not in _LEFT_OUT)
    tarball.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(tarball, 'wb') as stream:
        _pack(stream, source, files, name, on_progress)
    values = SharedIndex(
        format=FORMAT,
        name=name,
        description=description or holds,
        file=tarball.name,
        size=tarball.stat().st_size,
        unpacked=sum(path.stat().st_size for path in files),
        md5=digest(tarball, 'md5'),
        sha256=digest(tarball),
        holds=holds,
    )
    if url is not None:
        values['url'] = url
    with atomic_file(entry) as stream:
        stream.write(json.dumps(values, indent=1, ensure_ascii=False) + '\n')
    return entry


def install_index(entry: StrPath, on_progress: Progress | None = None) -> Path:
    """Install an index from its entry, with the tarball beside the entry or at its url; returns the index folder.

    From then on the index is found by its name. The tarball is unpacked only if it has the pinned checksum; nothing is
    written outside the folder, which appears only when the index in it is undamaged.

    Parameters
    ----------
    on_progress : called with the number of bytes unpacked since the last call

    Raises
    ------
    InputError
        for a file that is no entry, or a name that is taken
    MissingResourceError
        where the tarball is neither here nor can be fetched
    DamagedFileError
        for a tarball that is not the entry's, or holds anything but the index's files, or a damaged index
    """
    path = Path(entry)
    values = read_entry(path)
    target = installed_folder(values['name'])
    if target.exists():
        raise InputError(f"an index '{values['name']}' is installed already: remove {target} first")
    tarball = path.with_name(values['file'])
    if not tarball.is_file():
        if 'url' not in values:
            raise MissingResourceError(f'{tarball} is not here: put it beside {path}')
        size = human_size(values['size'])
        tarball = fetch(values['url'], downloads_folder() / values['file'], values['md5'], size, values['name'])
    if tarball.stat().st_size != values['size'] or digest(tarball) != values['sha256']:
        raise DamagedFileError(f'{tarball} is not the file that {path} describes: fetch it again')
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(target) as folder:
        _unpack(tarball, folder, values, on_progress)
        check_index(folder)
    return target


def installed_folder(name: str) -> Path:
    """The folder of an installed index of this name, whether or not it exists."""
    return catalog.cache_folder() / 'installed' / name


def check_name(name: str) -> None:
    """Raises InputError unless `name` is 1 to 100 letters, digits, '.', '-' or '_', and no index of the catalog."""
    if not _NAME.fullmatch(name):
        raise InputError(f"'{name[:60]}' cannot name an index: use up to 100 letters, digits, dots and dashes")
    if catalog.find('indexes', name):
        raise InputError(f"'{name}' is an index of the catalog: choose another name", parameters=('name',))


def read_entry(path: Path) -> SharedIndex:
    """An entry from its file. Raises InputError for anything else."""
    try:
        values = checked(SharedIndex, parse_json(existing_file(path, 'index entry').read_bytes()))
        if values['format'] != FORMAT:
            raise ValueError(f'format {values["format"]}, this release reads {FORMAT}')
        check_name(values['name'])
        if values['file'] != f'{values["name"]}.tar.gz':
            raise ValueError(f"file is '{values['file'][:60]}', '{values['name']}.tar.gz' was expected")
        if not re.fullmatch('[0-9a-f]{32}', values['md5']) or not re.fullmatch('[0-9a-f]{64}', values['sha256']):
            raise ValueError('md5 and sha256 are no checksums')
        if 'url' in values:
            _check_url(values['url'])
    except (ValueError, InputError) as error:
        raise InputError(f'{path} is no entry of an index ({error}): make one with index publish') from error
    return values


def _check_url(url: str) -> None:
    if not url.startswith(('https://', 'http://')) or len(url.split()) != 1:
        raise InputError(f"'{url[:60]}' is no address: one that begins with https:// was expected")


def _pack(stream: IO[bytes], source: Path, files: list[Path], name: str, on_progress: Progress | None) -> None:
    """Write a tar of files without owners and times: the same files give the same bytes on every machine."""
    with tarfile.open(fileobj=stream, mode='w', format=tarfile.PAX_FORMAT) as tar:
        for path in files:
            member = tarfile.TarInfo(str(PurePosixPath(name, path.relative_to(source).as_posix())))
            member.size, member.mode = path.stat().st_size, 0o644
            with open(path, 'rb') as content:
                tar.addfile(member, content)
            if on_progress is not None:
                on_progress(member.size)


def _unpack(tarball: Path, folder: Path, values: SharedIndex, on_progress: Progress | None) -> None:
    left = values['unpacked']
    try:
        with tarfile.open(tarball, 'r:gz') as tar:
            for member in tar:
                place = _place(member, values['name'], tarball)
                left -= member.size
                if left < 0:
                    raise DamagedFileError(f'{tarball} holds more than its entry says: it is not unpacked')
                target = folder / place
                target.parent.mkdir(parents=True, exist_ok=True)
                content = tar.extractfile(member)
                if content is None or target.exists():
                    raise DamagedFileError(f"{tarball} holds '{place}' twice, or not at all: it is not unpacked")
                with content, open(target, 'wb') as output:
                    shutil.copyfileobj(content, output, _BLOCK)
                if on_progress is not None:
                    on_progress(member.size)
    except ARCHIVE_ERRORS as error:
        raise DamagedFileError(f'{tarball} is no tarball ({error}): fetch it again') from error


def _place(member: tarfile.TarInfo, name: str, tarball: Path) -> PurePosixPath:
    """A member's path below the index folder. Raises DamagedFileError for a member that no index has."""
    path = PurePosixPath(member.name)
    if (
        not member.isreg()
        or path.is_absolute()
        or '..' in path.parts
        or path.parts[:1] != (name,)
        or len(path.parts) < 2
    ):
        raise DamagedFileError(
            f"{tarball} holds '{member.name[:60]}', which is no file of its index: it is not unpacked"
        )
    return PurePosixPath(*path.parts[1:])
