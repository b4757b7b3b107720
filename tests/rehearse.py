"""Run every condition that could not be run, from download to score, on stand-ins for what it needs
(`make rehearsal`).

The stand-ins have the real names, formats and packing, and at most a thousand texts; the scores
mean nothing and are shown nowhere. A condition whose scores were all computed is REHEARSED; one
whose commands fail is a FAIL; one that the record names and that did not run is LOST. `--write`
makes the record anew instead of comparing with it. `--if-changed` runs nothing where nothing that
the rehearsal tries has changed since the commit of the record.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / 'regressions' / 'rehearsed.json'
# A folder of the real topics, judgments and runs has this one.
REAL = 'msmarco'


def main(arguments: Sequence[str] | None = None) -> int:
    """Status 0 where nothing failed, and nothing is lost that the record names."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.if_changed and not _is_due():
        return 0
    is_whole = not options.files and not options.condition
    if options.write and not is_whole:
        parser.error('--write records all conditions: give no file and no --condition')
    data = Path(options.data)
    if not (data / REAL).is_dir():
        parser.error(f'{data} lacks the folder {REAL}: name the real data with --data')
    folder = Path(options.folder).resolve()
    use_new_caches(folder)
    from rehearsal.running import rehearse

    # Read now, because the code that runs is the code of now.
    commit = commit_of_code()
    files = options.files or sorted(str(path) for path in (ROOT / 'regressions').glob('*.yaml'))
    start = time.monotonic()
    found = rehearse(files, options.condition, data, folder)
    seconds = round(time.monotonic() - start)
    for name, why in found.failed.items():
        print(f'FAIL {name}: {why}')
    for name, why in found.not_run.items():
        print(f'NOT RUN {name}: {why}')
    lost: list[str] = []
    if options.write:
        record = {'commit': commit, 'seconds': seconds, 'rehearsed': found.rehearsed}
        RECORD.write_text(json.dumps(record, indent=1) + '\n', encoding='utf-8')
    elif is_whole:
        lost = found.lost(json.loads(RECORD.read_text(encoding='utf-8'))['rehearsed'])
    for name in lost:
        print(f'LOST {name}: {RECORD.name} says that it was rehearsed')
    print(
        f'{len(found.rehearsed)} REHEARSED, {len(found.failed)} FAIL, {len(lost)} LOST, '
        f'{len(found.not_run)} NOT RUN in {seconds} s'
    )
    return 1 if found.failed or lost else 0


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('files', nargs='*', help='regression files; default: all')
    parser.add_argument(
        '--condition', action='append', default=[], help='only this one; repeatable'
    )
    parser.add_argument('--data', default='../shared/data', help='real topics, judgments and runs')
    parser.add_argument('--folder', default='runs/rehearsal', help='made anew')
    parser.add_argument(
        '--write', action='store_true', help=f'write {RECORD.name} instead of comparing with it'
    )
    parser.add_argument(
        '--if-changed',
        action='store_true',
        help=f'only where something that it tries has changed since the commit of {RECORD.name}',
    )
    return parser


def use_new_caches(folder: Path) -> None:
    """Remove what an earlier rehearsal left; downloads go to the folder, and to nowhere else."""
    if folder.exists():
        shutil.rmtree(folder)
    os.environ['PYSERINI_REPBERT_CACHE'] = str(folder / 'cache')
    os.environ['HF_HOME'] = str(folder / 'hf')
    for name in ('PYSERINI_REPBERT_OFFLINE', 'HF_HUB_OFFLINE', 'http_proxy', 'HTTP_PROXY'):
        os.environ.pop(name, None)


def _is_due() -> bool:
    """Whether something has changed since the commit of the record; says what, or that nothing
    has.
    """
    from rehearsal.changes import TRIED, changed_files

    commit = json.loads(RECORD.read_text(encoding='utf-8'))['commit']
    changed = changed_files(ROOT, commit)
    if changed is None:
        print(f'commit {commit}, which {RECORD.name} names, is not here: rehearsing')
        return True
    if changed:
        more = '' if len(changed) == 1 else f' and {len(changed) - 1} more'
        print(f'{changed[0]}{more} changed since commit {commit[:10]}: rehearsing')
        return True
    print(
        f'!!!! THE REGRESSIONS WERE NOT REHEARSED AGAIN: nothing in {", ".join(TRIED)} has changed '
        f'since commit {commit[:10]}, on which they passed'
    )
    return False


def commit_of_code() -> str:
    """The commit of the code here, with '-dirty' behind it where files differ from it."""
    describe = ['git', 'describe', '--always', '--dirty', '--abbrev=40', '--exclude=*']
    described = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=True)
    return described.stdout.strip()


if __name__ == '__main__':
    sys.exit(main())
