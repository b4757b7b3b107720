"""Messages of Outlook, written by hand: a file of storages and streams, and one property each."""

import struct

_SECTOR = 512
_SHORT_SECTOR = 64
_END = 0xFFFFFFFE
_NONE = 0xFFFFFFFF
_FAT = 0xFFFFFFFD
_TEXT = 0x001F
_BYTES = 0x0102
_TIME = 0x0040
_STORAGE = 1
_STREAM = 2
_ROOT = 5
SUBJECT = 0x0037
BODY = 0x1000
HTML = 0x1013
SENT = 0x0039
SENDER = 0x0C1A
SENDER_ADDRESS = 0x5D01
TO = 0x0E04
HEADERS = 0x007D
RTF = 0x1009


def outlook(properties, inner=()):
    """A file with a message.

    Parameters
    ----------
    properties : values by their numbers: texts, bytes, or an int for a time
    inner : properties of the messages that it has as attachments
    """
    return _file_of(_storage(properties, inner, header=32))


def _storage(properties, inner=(), header=24):
    """The streams and storages of a message, by their names."""
    entries = {}
    rows = bytes(header)
    for number, value in properties.items():
        if isinstance(value, int):
            rows += struct.pack('<IIQ', number << 16 | _TIME, 6, value)
            continue
        kind = _TEXT if isinstance(value, str) else _BYTES
        content = value.encode('utf-16-le') if isinstance(value, str) else value
        rows += struct.pack('<IIII', number << 16 | kind, 6, len(content), 0)
        entries[f'__substg1.0_{number:04X}{kind:04X}'] = content
    entries['__properties_version1.0'] = rows
    for number, message in enumerate(inner):
        entries[f'__attach_version1.0_#{number:08X}'] = {
            '__properties_version1.0': bytes(8),
            '__substg1.0_3701000D': _storage(message),
        }
    return entries


def _file_of(tree):
    """A compound file whose streams all are short, and stand in the root's own stream."""
    directory = [b'']
    short = b''
    starts = []

    def add(entries):
        """Add the entries of a storage; returns the number of the first."""
        nonlocal short
        following = _NONE
        for name, content in reversed(entries.items()):
            number = len(directory)
            directory.append(b'')
            if isinstance(content, dict):
                entry = _entry(name, _STORAGE, following, child=add(content))
            else:
                start = len(short) // _SHORT_SECTOR
                n_sectors = -(-len(content) // _SHORT_SECTOR)
                starts.extend([*range(start + 1, start + n_sectors), _END][:n_sectors])
                short += content.ljust(n_sectors * _SHORT_SECTOR, b'\0')
                first = start if content else _END
                entry = _entry(name, _STREAM, following, start=first, size=len(content))
            directory[number] = entry
            following = number
        return following

    first = add(tree)
    listing = _sectors(b''.join(directory[1:]) + bytes(128))
    short_fat = _sectors(struct.pack(f'<{len(starts)}I', *starts), fill=b'\xff')
    n_listing = len(listing) // _SECTOR
    n_short_fat = len(short_fat) // _SECTOR
    content = _sectors(short)
    root = _entry(
        'Root Entry', _ROOT, _NONE, child=first, start=n_listing + n_short_fat, size=len(short)
    )
    listing = _sectors(root + b''.join(directory[1:]))
    lengths = [len(listing) // _SECTOR, n_short_fat, len(content) // _SECTOR]
    fat = []
    for length in lengths:
        fat += [*range(len(fat) + 1, len(fat) + length), _END]
    header = struct.pack(
        '<8s16xHHHHH6xIIIIIIIIII',
        b'\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1',
        *(0x3E, 3, 0xFFFE, 9, 6),
        *(0, 1, 0, 0, 4096, lengths[0], n_short_fat, _END, 0, len(fat)),
    )
    fat_sector = _sectors(struct.pack(f'<{len(fat) + 1}I', *fat, _FAT), fill=b'\xff')
    header = header.ljust(_SECTOR, b'\xff')
    return header + listing + short_fat + content + fat_sector


def _sectors(content, fill=b'\0'):
    return content.ljust(-(-len(content) // _SECTOR) * _SECTOR, fill)


def _entry(name, kind, following, child=_NONE, start=0, size=0):
    """An entry of the directory: its name, its kind, and the numbers of others."""
    written = name.encode('utf-16-le')
    return struct.pack(
        '<64sHBBIII36xIQ', written, len(written) + 2, kind, 1, _NONE, following, child, start, size
    )
