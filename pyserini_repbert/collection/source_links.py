"""Links from documents to their origins: web addresses, or files on this machine.

A source may have a template of the addresses of its files. Without one, the files of a folder on
this machine get `file:` addresses. What a document itself says, in its field `url`, comes first.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlsplit

from pyserini_repbert.addresses import FILE_SCHEME, address_problem
from pyserini_repbert.errors import InputError

_LOCAL = f'{FILE_SCHEME}///'
_PATH = '{path}'
_ANCHOR = '{anchor}'
_PLACEHOLDER = re.compile(r'\{[^{}]*\}?|\}')
_CONTROL = re.compile(r'[\x00-\x1f\x7f]')
# The characters of an address besides letters and digits; percent-encoded ones do not change.
_OF_ADDRESSES = "%:/?#[]@!$&'()*+,;="
_LONGEST = 2_000
_SHOWN = 200


@dataclass(frozen=True)
class LinkTemplate:
    """The addresses of a source's files.

    Attributes
    ----------
    text : an address in which `{path}` means the path of a file in its source, and `{anchor}` the
        last heading above a passage
    """

    text: str

    @classmethod
    def parsed(cls, text: str) -> LinkTemplate:
        """The template that a user gives, or a prefix, which a file's path and an anchor follow.

        Raises InputError for anything but an http, https or file address.
        """
        problem = _template_problem(text)
        if problem:
            raise InputError(
                f'{text[:_SHOWN]!r} cannot be what the addresses of files begin with: {problem}',
                parameters=('url_prefix',),
            )
        if _PATH not in text and _ANCHOR not in text:
            slash = '' if text.endswith('/') else '/'
            text = f'{text}{slash}{_PATH}#{_ANCHOR}'
        return cls(text)

    @classmethod
    def of_source(cls, name: str, link: str) -> LinkTemplate | None:
        """The addresses of a source's files; None if they have none.

        Parameters
        ----------
        name : of the source: a path, or another name
        link : the value that a user gave, as `parsed` takes it; '' for nothing
        """
        return cls.parsed(link) if link else cls.of_local_files(name)

    @classmethod
    def of_local_files(cls, source: str) -> LinkTemplate | None:
        """The addresses of the files of a folder, or of a file, of this machine; None for others.

        `source` is its path.
        """
        path = Path(source)
        # These answer no for a path that may not be looked up.
        if not path.is_absolute() or not os.path.exists(path):
            return None
        folder = path if os.path.isdir(path) else path.parent
        return cls(f'{folder.as_uri()}/{_PATH}#{_ANCHOR}')

    def address(self, file: str, anchor: str = '') -> str:
        """The address of a file; '' for a path that leaves the source.

        Parameters
        ----------
        file : its path in the source, with slashes; '' for a document that has no file
        anchor : of a heading in it, or 'page=3' of a PDF; '' for none
        """
        path = PurePosixPath(file)
        if not file or path.is_absolute() or '..' in path.parts:
            return ''
        filled = self.text.replace(_PATH, quote(file, errors='replace'))
        return filled.replace(_ANCHOR, quote(anchor, safe='=', errors='replace')).removesuffix('#')


def _template_problem(text: str) -> str:
    """What is wrong with a template; '' for one that can be used."""
    if len(text) > _LONGEST:
        return f'at most {_LONGEST:,} characters are allowed'
    for placeholder in _PLACEHOLDER.findall(text):
        if placeholder not in (_PATH, _ANCHOR):
            return f'{placeholder[:_SHOWN]} is unknown, only {_PATH} and {_ANCHOR} are replaced'
    plain = text.replace(_PATH, 'path').replace(_ANCHOR, 'anchor')
    if text.startswith(_LOCAL):
        # An error within the path would also be an error in a web address.
        plain = plain.replace(_LOCAL, 'https://localhost/', 1)
    if address_problem(plain):
        return 'expected https://, http:// or file:///, white space and what is beyond ASCII as %XX'
    if '{' in urlsplit(text).netloc:
        return f'{_PATH} and {_ANCHOR} follow the host'
    return ''


def web_address(value: object) -> str:
    """The address of http or https that a document names as its own, percent-encoded; '' for any
    other value.
    """
    if not isinstance(value, str) or len(value) > _LONGEST or _CONTROL.search(value):
        return ''
    address = quote(value.strip(), safe=_OF_ADDRESSES, errors='replace')
    return '' if address_problem(address) else address
