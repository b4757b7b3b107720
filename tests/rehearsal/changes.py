"""Whether anything that the rehearsal tries has changed since the commit that it passed on."""

import subprocess
from pathlib import Path

# Below the repository's root. The record itself says nothing that a rehearsal could try.
TRIED = (
    'regressions/*.yaml',
    'regressions/shared',
    'pyserini_repbert/regression',
    'pyserini_repbert/data',
    'pyserini_repbert/collection/files',
    'pyserini_repbert/catalog.toml',
    'pyserini_repbert/download.py',
    'pyserini_repbert/names/corpora.py',
    'pyserini_repbert/names/topics.py',
    'tests/rehearsal',
    'tests/rehearse.py',
    'tests/one_process.py',
    'tests/redirected.py',
)


def changed_files(root: Path, commit: str) -> list[str] | None:
    """The files of `TRIED` that differ from a commit; None where the commit is not here.

    `root` is the root of the repository. Files that git does not know count, too.
    """
    changed = _lines(root, 'diff', '--name-only', commit, '--', *TRIED)
    if changed is None:
        return None
    new = _lines(root, 'ls-files', '--others', '--exclude-standard', '--', *TRIED)
    return changed + (new or [])


def _lines(root: Path, *arguments: str) -> list[str] | None:
    """What git prints; None where it fails."""
    done = subprocess.run(['git', *arguments], cwd=root, capture_output=True, text=True)
    return None if done.returncode else done.stdout.splitlines()
