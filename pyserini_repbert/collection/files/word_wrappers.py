"""Word documents without elements that mammoth ignores, and with what they hold.

Mammoth names them: 'An unrecognised element was ignored: w:fldSimple'.
"""

from __future__ import annotations

import io
import re
import zipfile
from typing import IO

# The words of these are in the elements within them: fields, furigana, directions of writing.
_WRAPPERS = re.compile(
    rb'</?w:(?:fldSimple|ruby|rubyBase|customXml|dir|bdo)(?:\s[^<>]{0,4000})?/?>'
)
# How a word is spoken, and how that is shown.
_SPOKEN = re.compile(
    rb'<w:rt>(?:(?!</?w:rt>)[\s\S]){0,4000}</w:rt>|'
    rb'<w:rubyPr>(?:(?!</?w:rubyPr>)[\s\S]){0,4000}</w:rubyPr>'
)
_PARTS = re.compile(r'word/(?:document\d*|footnotes|endnotes)\.xml')
_SIGNS = (b'<w:fldSimple', b'<w:ruby>', b'<w:customXml', b'<w:dir', b'<w:bdo')


def without_wrappers(stream: IO[bytes]) -> IO[bytes]:
    """A Word file as a stream; the given one, where it has no such element."""
    with zipfile.ZipFile(stream) as archive:
        changed: dict[str, bytes] = {}
        for name in archive.namelist():
            if _PARTS.fullmatch(name):
                content = archive.read(name)
                if any(sign in content for sign in _SIGNS):
                    changed[name] = _WRAPPERS.sub(b'', _SPOKEN.sub(b'', content))
        if changed:
            return _rewritten(archive, changed)
    stream.seek(0)
    return stream


def _rewritten(archive: zipfile.ZipFile, changed: dict[str, bytes]) -> IO[bytes]:
    written = io.BytesIO()
    with zipfile.ZipFile(written, 'w') as copy:
        for member in archive.infolist():
            copy.writestr(member, changed.get(member.filename) or archive.read(member))
    written.seek(0)
    return written
