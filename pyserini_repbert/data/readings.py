"""How the files of a corpus are read, as a collection stores it with a source."""

from __future__ import annotations

from dataclasses import dataclass

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
    """

    fmt: str = ''
    text_kind: str = ''
    main_content: bool = False

    @classmethod
    def parsed(cls, text: str) -> Reading:
        """What a collection stores: 'html', 'files:text', 'files::main-content'."""
        fmt, _, further = text.partition(':')
        text_kind, _, content = further.partition(':')
        return cls(fmt, text_kind, content == _MAIN_CONTENT)

    def rendered(self) -> str:
        """What a collection stores; '' for what is not a file."""
        parts = [self.fmt, self.text_kind, _MAIN_CONTENT if self.main_content else '']
        return ':'.join(parts).rstrip(':')
