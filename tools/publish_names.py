"""Write the table of Pyserini's topics and judgments from a checkout of castorini/eval.

    python tools/publish_names.py CHECKOUT

The table has the commit that is checked out, names with their files, and of each file the size and
the MD5; a file that the checkout lacks has none.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from pyserini_repbert.lucene.published import table_path

KINDS = ('topics', 'qrels')


def main() -> None:
    """Write the table."""
    git = ['git', '-C', sys.argv[1]]
    commit = _output([*git, 'rev-parse', 'HEAD']).decode().strip()
    table: dict[str, Any] = {'repository': 'castorini/eval', 'commit': commit}
    for kind in KINDS:
        table[kind] = _names(git, kind)
    table['files'] = _files(git)
    table_path().write_text(json.dumps(table, indent=0, sort_keys=True) + '\n', encoding='utf-8')


def _output(command: list[str]) -> bytes:
    return subprocess.run(command, check=True, capture_output=True).stdout


def _names(git: list[str], kind: str) -> dict[str, Any]:
    """Names and other names of topics or judgments, with their files; topics have readers."""
    names: dict[str, Any] = json.loads(_output([*git, 'show', f'HEAD:{kind}.json']))
    aliases = json.loads(_output([*git, 'show', f'HEAD:{kind}-aliases.json']))
    for name, others in aliases.items():
        for other in others:
            names.setdefault(other, names[name])
    return names


def _files(git: list[str]) -> dict[str, dict[str, Any]]:
    """The size and the MD5 of each file; without the MD5 where the content is not here."""
    files = {}
    for line in _output([*git, 'ls-tree', '-r', 'HEAD', *KINDS]).decode().splitlines():
        blob, _, path = line.partition('\t')
        shown = subprocess.run([*git, 'cat-file', 'blob', blob.split()[2]], capture_output=True)
        entry: dict[str, Any] = {}
        if shown.returncode == 0:
            entry['md5'] = hashlib.md5(shown.stdout).hexdigest()
            entry['size'] = len(shown.stdout)
        files[path] = entry
    return files


if __name__ == '__main__':
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    main()
