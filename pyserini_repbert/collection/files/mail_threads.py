"""Which mails of a folder answer another one there: they are read without their quotes of it.

What a file says of itself is a part of how the file was read, which the records of a collection
keep. So a sync opens no mail that is as it was, and reads a reply again if the mail that it answers
has come or gone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.errors import MessageError
from email.message import EmailMessage
from pathlib import Path
from typing import Self

from pyserini_repbert.collection.files.mail_headers import header, parse_message
from pyserini_repbert.data.file_records import FileRecords
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import open_binary

_MOST_BYTES = 1 << 20  # of a message's header
_IDENTIFIER = re.compile(r'<([^<>\s]{1,1000})>')
_HEAD = re.compile(r'(?:^| )message=<([^<>\s]{0,1000})> answered=<([^<>\s]{0,1000})>')
# The first line of a file of Apple Mail: how many bytes the message below has.
APPLE_SIZE = re.compile(rb'[ \t]*(\d{1,10})[ \t]*\r?\n')


@dataclass(frozen=True)
class MailHead:
    """Which message a file has, and which one it answers.

    Attributes
    ----------
    identifier : its Message-ID; '' for none
    answered : the Message-ID of the mail that it answers; '' for none
    """

    identifier: str = ''
    answered: str = ''

    @classmethod
    def of(cls, message: EmailMessage) -> Self:
        """The head of a message."""
        own = _IDENTIFIER.findall(header(message, 'message-id'))
        return cls(own[0] if own else '', answered_mail(message))

    @classmethod
    def parsed(cls, way: str) -> Self | None:
        """The head in what was stored of how a file was read; None for a file of another kind."""
        stored = _HEAD.search(way)
        return None if stored is None else cls(stored[1], stored[2])

    def __str__(self) -> str:
        return f'message=<{self.identifier}> answered=<{self.answered}>'


def answered_mail(message: EmailMessage) -> str:
    """The Message-ID of the mail that a message answers; '' for none."""
    stated = header(message, 'in-reply-to') or header(message, 'references')
    identifiers = _IDENTIFIER.findall(stated)
    return identifiers[-1] if identifiers else ''


def read_head(path: Path) -> MailHead:
    """The head of the message in a file; an empty one if it cannot be read."""
    lines = []
    size = 0
    try:
        with open_binary(path) as stream:
            while size < _MOST_BYTES and (line := stream.readline(_MOST_BYTES)).strip():
                lines.append(line)
                size += len(line)
        if lines and APPLE_SIZE.fullmatch(lines[0]):
            del lines[0]
        return MailHead.of(parse_message(b''.join(lines)))
    except (OSError, InputError, MessageError, LookupError, ValueError, AttributeError):
        # Who reads the file says what is wrong.
        return MailHead()


class MailThreads:
    """The mails of a corpus, each of which may answer another.

    Parameters
    ----------
    heads : by the files of the mails
    """

    def __init__(self, heads: Mapping[Path, MailHead]) -> None:
        self._heads = heads
        self._identifiers = frozenset(head.identifier for head in heads.values())

    @classmethod
    def of_files(cls, files: Mapping[str, Path], records: FileRecords | None) -> Self:
        """The mails in files, which are opened unless they are as they were before.

        Parameters
        ----------
        files : by their paths in the corpus
        records : what was stored of them; None: all are opened
        """
        heads = {}
        for name, path in files.items():
            way = '' if records is None else records.way_before(name, path)
            heads[path] = MailHead.parsed(way) or read_head(path)
        return cls(heads)

    def answers_another(self, path: Path) -> bool:
        """Whether the mail in a file answers another mail of the corpus."""
        head = self._heads[path]
        is_known = bool(head.answered) and head.answered in self._identifiers
        return is_known and head.answered != head.identifier

    def way_of(self, path: Path) -> str:
        """How the mail in a file is read, which depends on the other mails."""
        quote = 'left out' if self.answers_another(path) else 'read'
        return f'{self._heads[path]} quote {quote}'
