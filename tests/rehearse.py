"""Run every condition that could not be run, from download to score, on stand-ins for what it needs
(`make rehearsal`).

The stand-ins have the real names, formats and packing, and at most a thousand texts; the scores
mean nothing and are shown nowhere. A condition whose scores were all computed is REHEARSED; one
whose commands fail is a FAIL.
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Status 0 where nothing failed, and nothing is lost that a report names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('files', nargs='*', help='regression files; default: all')
    parser.add_argument(
        '--condition', action='append', default=[], help='only this one; repeatable'
    )
    parser.add_argument('--data', default='../shared/data', help='real topics, judgments and runs')
    parser.add_argument('--folder', default='runs/rehearsal', help='made anew')
    parser.add_argument('--report', help='write what was rehearsed (regressions/rehearsed.json)')
    parser.add_argument('--expect', help='a report: all that it names has to be rehearsed again')
    options = parser.parse_args(arguments)
    folder = Path(options.folder).resolve()
    if folder.exists():
        shutil.rmtree(folder)
    os.environ['PYSERINI_REPBERT_CACHE'] = str(folder / 'cache')
    os.environ['HF_HOME'] = str(folder / 'hf')
    for name in ('PYSERINI_REPBERT_OFFLINE', 'HF_HUB_OFFLINE', 'http_proxy', 'HTTP_PROXY'):
        os.environ.pop(name, None)
    from rehearsal.running import rehearse

    files = options.files or sorted(str(path) for path in (ROOT / 'regressions').glob('*.yaml'))
    start = time.monotonic()
    found = rehearse(files, options.condition, Path(options.data), folder)
    for name, why in found.failed.items():
        print(f'FAIL {name}: {why}')
    for name, why in found.not_run.items():
        print(f'NOT RUN {name}: {why}')
    lost: list[str] = []
    if options.expect:
        recorded = json.loads(Path(options.expect).read_text(encoding='utf-8'))
        lost = [name for name in recorded['rehearsed'] if name not in found.rehearsed]
    for name in lost:
        print(f'LOST {name}: {options.expect} says that it was rehearsed')
    seconds = time.monotonic() - start
    print(
        f'{len(found.rehearsed)} REHEARSED, {len(found.failed)} FAIL, {len(found.not_run)} NOT '
        f'RUN in {seconds:.0f} s'
    )
    if options.report:
        commit = subprocess.run(
            ['git', 'rev-parse', '--short', 'HEAD'], cwd=ROOT, capture_output=True, text=True
        )
        record = {
            'commit': commit.stdout.strip(),
            'seconds': round(seconds),
            'rehearsed': found.rehearsed,
        }
        Path(options.report).write_text(json.dumps(record, indent=1) + '\n', encoding='utf-8')
    return 1 if found.failed or lost else 0


if __name__ == '__main__':
    sys.exit(main())
