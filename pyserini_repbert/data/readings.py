"""How the files of a corpus are read, as a collection stores it with a source."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

# Each file of a folder by its own kind.
BY_KIND = 'files'
_MAIN_CONTENT = 'main-content'


@dataclass(frozen=True)
class Reading:
    """How the files of a corpus are read.

    Attributes
    ----------
    fmt : the format of all files, such as 'html', or `BY_KIND`; '' if that is not decided
    text_kind : as what .txt files are read, such as 'tsv'; '' if there are none
    main_content : whether navigation, headers and footers of pages are left out
    title_column : the column of tables that is the title of their rows; '' if that is not decided
    """

    fmt: str = ''
    text_kind: str = ''
    main_content: bool = False
    title_column: str = ''

    @classmethod
    def parsed(cls, text: str) -> Reading:
        """What a collection stores: 'html', 'files:text', 'files::main-content', 'files:::Name'."""
        fmt, _, further = text.partition(':')
        text_kind, _, further = further.partition(':')
        content, _, title_column = further.partition(':')
        return cls(fmt, text_kind, content == _MAIN_CONTENT, unquote(title_column))

    def rendered(self) -> str:
        """What a collection stores; '' for anything but a file."""
        content = _MAIN_CONTENT if self.main_content else ''
        parts = [self.fmt, self.text_kind, content, quote(self.title_column, safe='')]
        return ':'.join(parts).rstrip(':')
