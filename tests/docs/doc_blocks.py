"""The fenced blocks of a Markdown page, and what is to be done with each.

- `sh`, `bash` and `python` blocks are run, in order; a `text` block right below one is its standard
  output.
- A block with `title="NAME"` is the content of that file, for the blocks below it.
- `<!-- not run: REASON -->` above a block says why it is not run, `<!-- fails -->` that it ends
  with an error (its standard error is then the output), `<!-- numbers vary: REASON -->` above an
  output that numbers are not compared.
- `<!-- files: PAGE -->` says that the page begins with the files that another one leaves.
- In an output, a line `…` stands for any lines.
"""

import re
from dataclasses import dataclass
from pathlib import Path

RUN = ('sh', 'bash', 'python')
OUTPUT = 'text'
_FENCE = re.compile(r'(?P<indent> *)(?P<ticks>```+)(?P<language>\w*)(?P<rest>.*)')
_TITLE = re.compile(r'title="([^"]+)"')
_FILES = re.compile(r'^<!-- files: (\S+) -->$', re.MULTILINE)
_TAG = re.compile(r'\s*<!-- (not run|fails|numbers vary)(?:: (.+))? -->')


@dataclass(frozen=True, eq=False)
class Block:
    """One fenced block.

    Attributes
    ----------
    line, end : of its first line of content, and of its closing fence, from 1
    tags : what the HTML comments above it say: 'not run', 'fails', 'numbers vary' -> reason
    """

    language: str
    title: str
    content: str
    line: int
    end: int
    tags: dict[str, str]
    directly_below: bool


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a page. ValueError where a fence is not closed or a reason is
    missing.
    """
    found: list[Block] = []
    tags: dict[str, str] = {}
    prose = True
    lines = path.read_text(encoding='utf-8').split('\n')
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if tag := _TAG.fullmatch(line):
            if tag[1] != 'fails' and not tag[2]:
                raise ValueError(f'{path.name}:{number}: {line.strip()} gives no reason')
            tags[tag[1]] = tag[2] or ''
        elif opening := _FENCE.fullmatch(line):
            start = number
            closing = opening['indent'] + opening['ticks']
            while number < len(lines) and lines[number].rstrip() != closing:
                number += 1
            if number == len(lines):
                raise ValueError(f'{path.name}:{start}: this block is not closed')
            content = '\n'.join(
                text.removeprefix(opening['indent']) for text in lines[start:number]
            )
            if opening['language'] == OUTPUT and content.strip() == '…':
                raise ValueError(f'{path.name}:{start}: this output says nothing')
            title = _TITLE.search(opening['rest'])
            found.append(
                Block(
                    opening['language'],
                    title[1] if title else '',
                    content,
                    start + 1,
                    number + 1,
                    tags,
                    not prose,
                )
            )
            number += 1
            tags = {}
            prose = False
        elif line.strip():
            tags = {}
            prose = True
    return found


def files_from(path: Path) -> Path | None:
    """The page with whose files a page begins."""
    named = _FILES.search(path.read_text(encoding='utf-8'))
    return path.parent.joinpath(named[1]).resolve() if named else None


def runs(block: Block) -> bool:
    """Whether a block is to be run."""
    return block.language in RUN and not block.title and 'not run' not in block.tags


def output_of(all_blocks: list[Block], place: int) -> Block | None:
    """The block that shows the output of the one at `place`, if there is one."""
    below = all_blocks[place + 1] if place + 1 < len(all_blocks) else None
    shows = (
        below is not None and below.language == OUTPUT and not below.title and below.directly_below
    )
    return below if shows else None
