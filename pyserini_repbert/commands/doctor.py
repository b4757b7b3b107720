"""`python -m pyserini_repbert.doctor`: what this machine has and lacks, each with the fix."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from pyserini_repbert.commands.command import parser
from pyserini_repbert.doctor.checks import CHECKS, Finding, Status


def findings() -> Iterator[Finding]:
    """The findings of all checks, in order; a check that raises is reported as a failure."""
    for name, check in CHECKS.items():
        try:
            yield from check()
        except Exception as error:
            yield Finding(name, Status.FAIL, f'{type(error).__name__}: {error}', 'reinstall the package named here')


def main(arguments: list[str]) -> int:
    """Print the report; status 1 if a required part fails."""
    flags = parser('doctor', 'What this machine has and lacks, each with the fix.')
    flags.add_argument('--json', action='store_true', help='a JSON list instead of lines')
    options = flags.parse_args(arguments)
    report = []
    for finding in findings():
        report.append(finding)
        if not options.json:
            print(f'{finding.status:<4}  {finding.check:<28}  {finding.found}')
            if finding.fix:
                print(f'{"":<4}  {"":<28}  fix: {finding.fix}')
    if options.json:
        print(json.dumps([asdict(finding) for finding in report], indent=1, ensure_ascii=False))
    return 1 if any(finding.status is Status.FAIL for finding in report) else 0
