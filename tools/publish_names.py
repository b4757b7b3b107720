"""Write the table of Pyserini's topics and judgments from a checkout of castorini/eval.

    python tools/publish_names.py CHECKOUT

The table has the commit that is checked out, names with their files, and of each file the size and
the MD5; a file that the checkout lacks has none. Run it with Pyserini 1.6: names of that version
that the checkout no longer has are added, with their files as of `FORMER_COMMIT`.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from pyserini_repbert.lucene.compat import import_pyserini, named_files, path_of
from pyserini_repbert.lucene.published import table_path

KINDS = ('topics', 'qrels')
# The last commit with the queries of BEIR that SPLADE had encoded
FORMER_COMMIT = 'b6a89ced27a9742f45ac51ffb4397664cee98e9d'
FORMER_FOLDER = 'topics-and-qrels'


def main() -> None:
    """Write the table."""
    git = ['git', '-C', sys.argv[1]]
    commit = _output([*git, 'rev-parse', 'HEAD']).decode().strip()
    table: dict[str, Any] = {'repository': 'castorini/eval', 'commit': commit}
    for kind in KINDS:
        table[kind] = _names(git, kind)
    table['files'] = _files(git)
    _add_former_topics(git, table)
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
        files[path] = _file(git, blob.split()[2])
    return files


def _file(git: list[str], content: str) -> dict[str, Any]:
    """The size and the MD5 of a file by git's name of its content; nothing if it is not here."""
    shown = subprocess.run([*git, 'cat-file', 'blob', content], capture_output=True)
    if shown.returncode != 0:
        return {}
    return {'md5': hashlib.md5(shown.stdout).hexdigest(), 'size': len(shown.stdout)}


def _add_former_topics(git: list[str], table: dict[str, Any]) -> None:
    """Add to the table the topics of Pyserini 1.6 that it lacks."""
    search = import_pyserini('pyserini.search._base')
    for name, entry in named_files(search, 'topics').items():
        if name in table['topics']:
            continue
        file = path_of(search, 'topics', name).name
        reader = entry.readerClass.getName()
        table['topics'][name] = {'path': file, 'reader_class': reader}
        if f'topics/{file}' in table['files']:
            continue
        former = f'{FORMER_FOLDER}/{file}'
        content = _output([*git, 'rev-parse', f'{FORMER_COMMIT}:{former}']).decode().strip()
        details = _file(git, content)
        details['former'] = f'{FORMER_COMMIT}/{former}'
        table['files'][f'topics/{file}'] = details


if __name__ == '__main__':
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    main()
