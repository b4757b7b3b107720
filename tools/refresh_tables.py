"""Run the commands of a Markdown page again and put their output beneath them.

After a block of shell commands, everything between `<!-- output -->` and the next `<!-- end -->` is
replaced:

    python tools/refresh_tables.py regressions/dl19-dl20.fusion.md --data FOLDER

`$DATA` in a command stands for the folder given; only commands of this package are run.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

from pyserini_repbert.commands.command import Parser, run
from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.files import atomic_file, existing_file

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(
    r'(?P<fence>```sh\n(?P<commands>(?:(?!```).)*)```\n\n<!-- output -->\n).*?(?=<!-- end -->)',
    re.DOTALL,
)


def main(arguments: list[str]) -> int | None:
    """Refresh the page, or with --check say whether it is up to date."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('page', help='Markdown file')
    parser.add_argument('--data', required=True, help='what $DATA stands for')
    parser.add_argument(
        '--check', action='store_true', help='change nothing; status 1 if the page is out of date'
    )
    options = parser.parse_args(arguments)
    page = existing_file(options.page, 'Markdown page').read_text(encoding='utf-8')
    if not BLOCK.search(page):
        raise InputError(
            f'{options.page} has no commands that are followed by <!-- output --> and <!-- end -->'
        )

    def refresh(match: re.Match[str]) -> str:
        return match['fence'] + output_of(match['commands'], options.data)

    fresh = BLOCK.sub(refresh, page)
    if options.check:
        print(f'{options.page} is {"up to date" if fresh == page else "out of date"}')
        return int(fresh != page)
    with atomic_file(options.page) as stream:
        stream.write(fresh)
    return None


def output_of(commands: str, data: str) -> str:
    """What the commands, one a line, print; a line that ends in a backslash continues on the next.

    Raises InputError for a command that is not this package's, PyseriniRepbertError for one that
    fails.
    """
    printed = []
    for command in commands.replace('\\\n', ' ').splitlines():
        words = [word.replace('$DATA', data) for word in shlex.split(command)]
        if words[:2] != ['python', '-m'] or not words[2].startswith('pyserini_repbert.'):
            raise InputError(
                f"'{command[:60]}' is not a command of this package: python -m pyserini_repbert.…"
            )
        process = subprocess.run(
            [sys.executable, *words[1:], '--quiet'], cwd=ROOT, text=True, capture_output=True
        )
        if process.returncode:
            raise PyseriniRepbertError(f"'{command[:60]}' failed: {process.stderr.strip()}")
        if process.stdout.strip():
            printed.append(process.stdout.strip())
    return '\n' + '\n\n'.join(printed) + '\n\n'


if __name__ == '__main__':
    sys.exit(run(main))
